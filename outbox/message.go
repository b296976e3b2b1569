package outbox

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tidemark-im/tidemark/facts"
)

// Types of messages.
const (
	TypeTaskMessage     = "task.message"
	TypeTaskActivity    = "task.activity"
	TypeUnreadThreshold = "unread.threshold"
	TypeUnreadIdle      = "unread.idle"
)

// Message is what a wake tells its receiver, as it is sent. It is the same with every attempt.
// A wake of an agent has the fields of a task's event, one of a webhook those of a badge.
type Message struct {
	Type      string `json:"type"`
	Workspace string `json:"workspace"`
	// Agent is who is woken: one address may serve many.
	Agent      string `json:"agent,omitempty"`
	Scope      string `json:"scope,omitempty"`
	ScopeType  string `json:"scopeType,omitempty"`
	MessageID  string `json:"messageId,omitempty"`
	ActivityID string `json:"activityId,omitempty"`
	Seq        uint64 `json:"seq,omitempty"`
	Actor      string `json:"actor,omitempty"`

	Webhook string  `json:"webhook,omitempty"`
	Member  string  `json:"member,omitempty"`
	Unread  *uint64 `json:"messages,omitempty"` // badge messages of the member when it fired

	CreatedAt string `json:"createdAt"` // RFC 3339, of the fact
	// Event names what happened: for a task the same to all who are told of it.
	Event string `json:"event"`
}

// EventID names an outbox row for ever.
func EventID(row *facts.OutboxRow) string { return eventID(row.Workspace, uint64(row.Key)) }

func eventID(w facts.WorkspaceKey, event uint64) string { return fmt.Sprintf("evt_%d_%d", w, event) }

// WakeID names one recipient's copy of an event: the header webhook-id of every attempt. It is of
// letters, digits and underscores.
func WakeID(w *facts.WakeRow) string {
	space := w.Recipient.Workspace()
	if agent, ok := w.Recipient.Agent(); ok {
		return fmt.Sprintf("wake_%d_%d_%d", space, w.Event, uint32(agent))
	}
	return firingID(w)
}

// firingID names what a webhook fired: for whom, why, and at which commit.
func firingID(w *facts.WakeRow) string {
	why := "threshold"
	if w.Kind == facts.WakeUnreadIdle {
		why = "idle"
	}
	hook, _ := w.Recipient.Webhook()
	return fmt.Sprintf("unread_%d_%d_%d_%d_%s", w.Recipient.Workspace(), uint32(hook),
		uint32(w.Actor), w.Event, why)
}

// message writes a wake down; to is the recipient's name.
func message(w *facts.Wake, to string) Message {
	m := Message{
		Workspace: string(w.WorkspaceID),
		CreatedAt: time.UnixMilli(w.CreatedAt).UTC().Format("2006-01-02T15:04:05.000Z07:00"),
	}
	if _, ok := w.Recipient.Webhook(); ok {
		m.Type = TypeUnreadThreshold
		if w.Kind == facts.WakeUnreadIdle {
			m.Type = TypeUnreadIdle
		}
		m.Webhook, m.Member, m.Unread = to, string(w.ActorID), &w.Amount
		m.Event = firingID(&w.WakeRow)
		return m
	}
	m.Agent, m.Scope, m.ScopeType = to, string(w.ScopeID), w.ScopeType.String()
	m.Seq, m.Actor = uint64(w.Seq), string(w.ActorID)
	m.Event = eventID(w.Recipient.Workspace(), w.Event)
	if w.Kind == facts.WakeTaskActivity {
		m.Type, m.ActivityID = TypeTaskActivity, w.ID
	} else {
		m.Type, m.MessageID = TypeTaskMessage, w.ID
	}
	return m
}

// encode is the body that is sent.
func (m *Message) encode() []byte {
	body, err := json.Marshal(m)
	if err != nil {
		panic(err) // texts and numbers always have a JSON form
	}
	return body
}
