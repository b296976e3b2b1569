package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/inbox"
	"github.com/tidemark-im/tidemark/readstate"
)

// InboxBadge is the number on the bell. Its keys are those of the badge's own definition.
type InboxBadge struct {
	AcceptedThrough     uint64   `json:"accepted_through"`
	AcknowledgedThrough uint64   `json:"acknowledged_through"`
	Count               int      `json:"count"`
	ProjectedThrough    uint64   `json:"projected_through"`
	Senders             []string `json:"senders"`
	TailRows            int      `json:"tail_rows"`
}

func newInboxBadge(b *inbox.Badge) InboxBadge {
	return InboxBadge{
		AcceptedThrough: uint64(b.Accepted), AcknowledgedThrough: uint64(b.Acknowledged),
		Count: len(b.Senders), ProjectedThrough: uint64(b.Projected), Senders: texts(b.Senders),
		TailRows: b.TailRows,
	}
}

func texts[T ~string](ids []T) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = string(id)
	}
	return out
}

// InboxSent answers a send to an inbox.
type InboxSent struct {
	MessageID string `json:"messageId"`
	Position  uint64 `json:"position"`
	LSN       uint64 `json:"lsn"`
	Duplicate bool   `json:"duplicate"`
}

func (p InboxSent) status() int {
	if p.Duplicate {
		return http.StatusOK
	}
	return http.StatusCreated
}

// InboxOpened is an inbox as it was opened.
type InboxOpened struct {
	SnapshotID      string         `json:"snapshotId"`
	ObservedThrough uint64         `json:"observedThrough"`
	Senders         []string       `json:"senders"`
	Messages        []InboxMessage `json:"messages"`
}

// InboxMessage is something that was addressed to the member.
type InboxMessage struct {
	Position  uint64          `json:"position"`
	Sender    string          `json:"sender"`
	Scope     string          `json:"scope,omitempty"`
	MessageID string          `json:"messageId,omitempty"`
	Text      string          `json:"text,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	CreatedAt time.Time       `json:"createdAt"`
}

// InboxAcknowledged is the receipt of an acknowledgement.
type InboxAcknowledged struct {
	AcknowledgedThrough uint64 `json:"acknowledgedThrough"`
	Duplicate           bool   `json:"duplicate"`
}

type inboxTextBody struct {
	OpID string `json:"opId"`
	Text string `json:"text"`
}

type inboxAckBody struct {
	OpID       string `json:"opId"`
	SnapshotID string `json:"snapshotId"`
}

type inboxParams struct {
	memberParams
	Member readstate.MemberID `query:"member" id:"member" doc:"Services: the member who acts"`
}

func (s *Server) addInbox() {
	const path = memberPath + "/inbox"
	add(s, route{
		method: http.MethodPost, path: path + "/messages", id: "sendToInbox", tag: "inbox",
		statuses: []int{http.StatusCreated, http.StatusOK},
		about:    "Send a text to a member's inbox.",
	}, sendToInbox)
	add(s, route{
		method: http.MethodPost, path: path + ":open", id: "openInbox", tag: "inbox",
		about: "Show what is new, and keep what was shown. It acknowledges nothing.",
	}, openInbox)
	add(s, route{
		method: http.MethodPost, path: path + "/acks", id: "acknowledgeInbox", tag: "inbox",
		about: "Say that an opened inbox has been looked at. What came later stays new.",
	}, acknowledgeInbox)
	add(s, route{
		method: http.MethodGet, path: path + "/badge", id: "inboxBadge", tag: "inbox",
		about: "How many accounts have sent something new. Changes nothing.",
	}, func(c *call, p *inboxParams, _ *none) (InboxBadge, error) {
		box, at, err := c.inbox(p)
		if err != nil {
			return InboxBadge{}, err
		}
		b, err := box.Badge(c.ctx(), at)
		return newInboxBadge(&b), err
	})
}

// inbox settles whose inbox it is and who asks: nobody but the member, also where a service does it
// for them.
func (c *call) inbox(p *inboxParams) (*inbox.Inbox, inbox.Access, error) {
	who, err := c.subject(p.Member)
	if err == nil && who != p.M {
		err = refuse(CodeForbidden, "an inbox is its member's alone")
	}
	if err == nil && c.server.inbox == nil {
		err = refuse(CodeUnavailable, "this server has no inboxes")
	}
	return c.server.inbox, inbox.Access{Workspace: p.WS, Member: p.M, By: who}, err
}

func sendToInbox(c *call, p *inboxParams, b *inboxTextBody) (InboxSent, error) {
	sender, err := c.subject(p.Member)
	if err != nil {
		return InboxSent{}, err
	}
	r, err := c.ws.SendInbox(c.ctx(), facts.SendInbox{
		To: p.M, Sender: sender, OpID: b.OpID, Text: b.Text,
		By: facts.Actor{Member: sender, Trusted: c.trusted()},
	})
	return InboxSent{
		MessageID: r.MessageID, Position: uint64(r.Seq), LSN: uint64(r.LSN), Duplicate: r.Duplicate,
	}, err
}

func openInbox(c *call, p *inboxParams, _ *none) (InboxOpened, error) {
	box, at, err := c.inbox(p)
	if err != nil {
		return InboxOpened{}, err
	}
	o, err := box.Open(c.ctx(), at)
	out := InboxOpened{
		SnapshotID: o.Snapshot, ObservedThrough: uint64(o.Observed), Senders: texts(o.Senders),
		Messages: make([]InboxMessage, len(o.Items)),
	}
	for i := range o.Items {
		item := &o.Items[i]
		out.Messages[i] = InboxMessage{
			Position: uint64(item.Position), Sender: string(item.Sender), Scope: string(item.Scope),
			MessageID: item.MessageID, Text: item.Text, Payload: json.RawMessage(item.Payload),
			CreatedAt: time.UnixMilli(item.CreatedAt).UTC(),
		}
	}
	return out, err
}

func acknowledgeInbox(c *call, p *inboxParams, b *inboxAckBody) (InboxAcknowledged, error) {
	box, at, err := c.inbox(p)
	if err != nil {
		return InboxAcknowledged{}, err
	}
	r, err := box.Acknowledge(c.ctx(), at, inbox.Ack{OpID: b.OpID, Snapshot: b.SnapshotID})
	return InboxAcknowledged{
		AcknowledgedThrough: uint64(r.Acknowledged), Duplicate: r.Duplicate,
	}, err
}

// hintTime bounds how long a stream waits for the badge that goes with a hint.
const hintTime = time.Second

// inboxHints reads the badges that streams send along with hints; nil where there are no inboxes.
func (c *call) inboxHints() func(ctx context.Context, m readstate.MemberID) any {
	box, ws := c.server.inbox, c.ws.ID()
	if box == nil {
		return nil
	}
	return func(ctx context.Context, m readstate.MemberID) any {
		ctx, cancel := context.WithTimeout(ctx, hintTime)
		defer cancel()
		b, err := box.Badge(ctx, inbox.Access{Workspace: ws, Member: m, By: m})
		if err != nil {
			return nil // it is a hint: whoever asks for the badge learns why there is none
		}
		return newInboxBadge(&b)
	}
}
