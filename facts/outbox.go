package facts

import (
	"context"

	"github.com/tidemark-im/tidemark/readstate"
)

// OutboxStore keeps what becomes of outbox rows once they are committed: who works on which, the
// wakes that follow from them, where wakes are sent to, and what could not be delivered. Package
// outbox drives it.
//
// Every method that writes is one short transaction of its own. It changes no unread value, so it
// raises no LSN; it checks the term of each workspace that it touches and leaves out those which
// somebody else owns by now (ErrNotOwner where there is only one). A method fails with
// ErrUnavailable as those of Store do; then nobody knows whether it happened, and nothing is
// wrong either way: a row that was not settled is taken again when its lease has run out.
type OutboxStore interface {
	// View is that of Store: names of workspaces, members and scopes are read through it.
	View(ctx context.Context) (View, error)

	EffectStore
	WakeStore
	WebhookStore

	// DeadLetters returns what was given up in a workspace, ascending by id, those after the
	// given one.
	DeadLetters(ctx context.Context, w WorkspaceKey, after LetterID, limit int) ([]DeadLetter, error)
	// Requeue takes a dead letter up again: an outbox row with a new budget, a wake at the end
	// of its recipient's queue. An unknown letter is ErrNotFound.
	Requeue(ctx context.Context, r Requeue) error
	// ReleaseLeases frees what owners of earlier terms held, who can settle nothing any more. It
	// returns how many leases there were.
	ReleaseLeases(ctx context.Context, terms TermOf, now int64) (int, error)
	// Purge forgets what is settled and old, at most so many rows, and says how many.
	Purge(ctx context.Context, p OutboxPurge) (int, error)
	// OutboxGauges counts what is there now, up to a bound where counting takes long.
	OutboxGauges(ctx context.Context, now int64) (OutboxGauges, error)
}

// TermOf says whether this process owns a workspace, and with which term. It is called within
// transactions, so it must answer from memory.
type TermOf func(WorkspaceKey) (term uint64, owned bool)

// Lease is somebody's time with what they took. Token is unique to one claim; what is settled with
// another token than that of the row is not theirs any more.
type Lease struct {
	Owner string // for people
	Token uint64 // not zero
	Until int64  // milliseconds; from then on anybody may take it
}

// EffectStore keeps the state of outbox rows.
type EffectStore interface {
	// FreshEffects returns the workspaces with rows that nobody has looked at yet.
	FreshEffects(ctx context.Context) ([]WorkspaceKey, error)
	// ClaimEffects leases rows that are due, and such that nobody has looked at, in that order.
	// A row stays behind as long as an earlier row of one of its agents is not finished.
	ClaimEffects(ctx context.Context, c EffectClaim) (EffectBatch, error)
	// SettleEffects records how far claimed rows have come. The wakes of a delivered row are
	// queued in the same transaction.
	SettleEffects(ctx context.Context, s EffectSettlement) (EffectsSettled, error)
}

// EffectState is what has become of an outbox row.
type EffectState uint8

const (
	EffectLeased    EffectState = iota + 1 // somebody works on it, until the lease ends
	EffectDeferred                         // waits for a condition: nothing has failed
	EffectFailed                           // waits for the next attempt
	EffectBehind                           // waits for an earlier row of one of its agents
	EffectDelivered                        // everything it has to cause is durable
	EffectDead                             // given up, see DeadLetter
)

// Effect is a claimed outbox row.
type Effect struct {
	OutboxRow
	WorkspaceID readstate.WorkspaceID
	Failures    int  // attempts that failed
	Deferrals   int  // attempts that found a condition not met
	Waited      bool // it was claimed before
}

// EffectClaim asks for work. The lease's Until lies after Now.
type EffectClaim struct {
	Terms TermOf
	Lease Lease
	Now   int64
	// Fresh are the workspaces to look for rows that nobody has looked at, in this order. A batch
	// takes at most FreshRows from each, so that none keeps the others waiting.
	Fresh     []WorkspaceKey
	FreshRows int
	Rows      int // most rows of a batch
	// Recipients bounds the recipients of all rows together; the first row comes in any case.
	Recipients int
	// BehindFor is how long a row that is behind another is left alone, if nothing moves it.
	BehindFor int64
}

// EffectBatch is what was claimed: ascending by workspace and key.
type EffectBatch struct {
	Effects []Effect
	// Left are those of Fresh that may have more.
	Left    []WorkspaceKey
	NextDue int64 // when the next row is due that is not now; zero for none
}

// EffectOutcome is how an attempt ended: EffectDelivered, EffectDeferred, EffectFailed, EffectBehind
// or EffectDead.
type EffectOutcome struct {
	Effect *Effect
	State  EffectState
	DueAt  int64 // when to try again
	Error  string
}

// EffectSettlement settles rows of one claim, ascending by workspace and key.
type EffectSettlement struct {
	Terms    TermOf
	Lease    Lease
	Now      int64
	Outcomes []EffectOutcome
	// Held are agents who still wait for an earlier row: a delivered row of theirs becomes
	// EffectBehind. It is read and added to, so that one claim may be settled in parts; it is not
	// nil.
	Held map[readstate.MemberKey]struct{}
	// QueueLimit bounds the wakes that wait for one recipient. The oldest beyond it are given up.
	QueueLimit int
	BehindFor  int64
}

// EffectsSettled is what became of a settlement.
type EffectsSettled struct {
	States   []EffectState // of each outcome as it was recorded; zero for a lease that was lost
	Wakes    int           // queued
	Overflow int           // wakes given up for want of room
	Woken    []Recipient   // whose queues have grown, each once
	Freed    bool          // rows that were behind are due now
}
