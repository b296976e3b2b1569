package facts

import (
	"fmt"

	"github.com/tidemark-im/tidemark/readstate"
)

// EffectKind says what kind of fact an outbox row announces.
type EffectKind uint8

const (
	// TaskMessage announces a message of a task.
	TaskMessage EffectKind = iota + 1
	// TaskActivity announces a typed activity of a task.
	TaskActivity
)

// PayloadVersion is the version of the outbox rows that carry frozen recipients (RT-223).
const PayloadVersion = 2

// EventKey orders the outbox rows of one workspace: the LSN of the fact's commit, and the row's
// place within the commit, so that it needs no counter of its own.
type EventKey uint64

// eventsPerCommit is the room for places within one commit; a group has fewer rows.
const eventsPerCommit = 1 << 12

// EventKeyOf makes the key of a row; place counts from 0 within the commit.
func EventKeyOf(lsn readstate.LSN, place int) EventKey {
	return EventKey(lsn)*eventsPerCommit + EventKey(place)
}

// LSN returns the commit that wrote the row.
func (k EventKey) LSN() readstate.LSN { return readstate.LSN(k / eventsPerCommit) }

// OutboxRow is what one fact has to cause once it is committed: who must know is frozen here, in
// the fact's own transaction, and no later change of watchers or assignee touches it. It is
// written once; what becomes of it is kept beside it by whoever works the outbox off.
type OutboxRow struct {
	Workspace WorkspaceKey
	Key       EventKey
	Version   uint8 // PayloadVersion; a row of an older version has no recipients of its own
	Kind      EffectKind
	Scope     readstate.ScopeKey
	Seq       readstate.Seq // of the message or of the activity, by Kind
	ID        string        // the message's or the activity's id
	Actor     readstate.MemberKey
	// Humans are counted, Agents are woken; the actor is in neither. Both ascend by key, and
	// together they are at most MaxRecipients.
	Humans    []readstate.MemberKey
	Agents    []readstate.MemberKey
	CreatedAt int64 // milliseconds, for display
}

// stageEffect stages the one outbox row of a fact, at the fact's own place in the commit.
func (g *group) stageEffect(w *workspace, row OutboxRow) error {
	if w.effects == eventsPerCommit {
		return broken("outbox", fmt.Errorf("more than %d rows in one commit", eventsPerCommit))
	}
	row.Workspace, row.Key = w.Key, EventKeyOf(w.LSN, w.effects)
	row.Version, row.CreatedAt = PayloadVersion, g.clock
	w.effects++
	g.effects = max(g.effects, w.effects)
	g.changes.Outbox = append(g.changes.Outbox, row)
	return nil
}
