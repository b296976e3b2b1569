package facts

import (
	"context"

	"github.com/tidemark-im/tidemark/readstate"
)

// Recipient is the number of somebody to whom wakes are delivered: an agent or a webhook.
type Recipient int64

// AgentRecipient is the queue of an agent.
func AgentRecipient(m readstate.MemberKey) Recipient { return Recipient(m) }

// Agent returns the agent whose queue it is; false for a webhook's.
func (r Recipient) Agent() (readstate.MemberKey, bool) { return readstate.MemberKey(max(r, 0)), r > 0 }

// Webhook returns the webhook whose queue it is; false for an agent's.
func (r Recipient) Webhook() (WebhookKey, bool) { return WebhookKey(max(-r, 0)), r < 0 }

// Workspace returns the workspace to which the queue belongs.
func (r Recipient) Workspace() WorkspaceKey {
	if r < 0 {
		r = -r
	}
	return WorkspaceKey(r >> 32)
}

// WakeKey is a wake's position in its recipient's queue, from 1, never used again.
type WakeKey uint64

// WakeKind says what a wake is about.
type WakeKind uint8

const (
	WakeTaskMessage     WakeKind = iota + 1 // a message of a task was delivered to an agent
	WakeTaskActivity                        // an activity of a task was
	WakeUnreadThreshold                     // a member's badge has reached a threshold
	WakeUnreadIdle                          // a member has left something unread for a while
)

// WakeRow is what a recipient has to be told, in numbers.
type WakeRow struct {
	Recipient Recipient
	Key       WakeKey
	Kind      WakeKind
	Event     uint64              // the outbox row's key; of a webhook's the LSN at which it fired
	Scope     readstate.ScopeKey  // zero for a webhook's
	Seq       readstate.Seq       // of the message or activity
	ID        string              // its id
	Actor     readstate.MemberKey // of a webhook's the member concerned
	Amount    uint64              // unread messages, of a webhook's
	CreatedAt int64               // milliseconds
}

// Wake is a WakeRow with the names that a receiver knows.
type Wake struct {
	WakeRow
	WorkspaceID readstate.WorkspaceID
	ScopeID     readstate.ScopeID
	ScopeType   readstate.ScopeType
	ActorID     readstate.MemberID // an erased member's pseudonym
}

// WakeStore keeps queues of wakes and the endpoints to which they are sent.
type WakeStore interface {
	// ClaimWakes leases queues that are due, each with its first wakes.
	ClaimWakes(ctx context.Context, c WakeClaim) (WakeBatch, error)
	// SettleWakes records what was delivered, read, refused or given up.
	SettleWakes(ctx context.Context, s WakeSettlement) (WakesSettled, error)
	// Wakes returns the first wakes of a queue above a position.
	Wakes(ctx context.Context, r Recipient, above WakeKey, limit int) ([]Wake, error)
	// PutEndpoint says where wakes of a recipient are sent from now on. It enables an endpoint
	// that was disabled. With an empty URL wakes wait to be read.
	PutEndpoint(ctx context.Context, e EndpointChange) error
	// Endpoint returns a recipient's queue; false if there never was one.
	Endpoint(ctx context.Context, r Recipient) (EndpointRow, bool, error)
	// ForgetRecipient drops an agent's endpoint and whatever waits for it.
	ForgetRecipient(ctx context.Context, term uint64, r Recipient) error
}

// WakeClaim asks for queues: so many whose endpoint answers in time, and so many of the others.
type WakeClaim struct {
	Terms       TermOf
	Lease       Lease
	Now         int64
	Quick, Slow int
	Burst       int   // wakes of each queue
	Oldest      int64 // wakes created before it are given up, milliseconds
}

// WakeBatch is what was claimed.
type WakeBatch struct {
	Queues  []WakeQueue
	Expired int   // wakes given up because of their age
	NextDue int64 // when the next queue is due that is not now; zero for none
	More    bool  // more are due than were asked for
}

// WakeQueue is a claimed queue.
type WakeQueue struct {
	EndpointRow
	WorkspaceID readstate.WorkspaceID
	MemberID    readstate.MemberID // of an agent's queue
	WebhookID   string             // of a webhook's
	Wakes       []Wake             // ascending
}

// EndpointRow is a recipient's queue and where it is sent to.
type EndpointRow struct {
	Recipient Recipient
	URL       string // empty: wakes wait to be read
	Secret    []byte
	Disabled  bool    // the endpoint said that it is gone
	Slow      bool    // its last answer was late or none
	Last      WakeKey // the highest position given out
	Waiting   int     // wakes
	Attempts  int     // that the first of them has cost
	Streak    int     // failures since the last success
	Error     string
}

// EndpointChange sets an endpoint.
type EndpointChange struct {
	Term      uint64
	Recipient Recipient
	URL       string
	Secret    []byte
	Now       int64
}

// WakeOutcome says how far a claimed queue has come, or what its reader has acknowledged.
type WakeOutcome struct {
	Recipient Recipient
	Through   WakeKey // delivered, inclusive; zero for nothing
	// Read is the acknowledgement of a reader, who has no lease; what follows is not looked at.
	Read bool
	// Lease ends with the outcome. DueAt is when the queue may be taken again, if anything is in
	// it; zero for at once.
	Lease    Lease
	DueAt    int64
	Slow     bool
	Attempts int // that the first wake has cost by now
	Streak   int
	Dead     WakeKey // the wake above Through that is given up, zero for none
	Disable  bool
	Error    string
}

// WakeSettlement settles queues.
type WakeSettlement struct {
	Terms    TermOf
	Now      int64
	Outcomes []WakeOutcome
}

// WakesSettled is what became of a settlement.
type WakesSettled struct {
	Removed int // wakes that do not wait any more
	Dead    int // of them, given up
	Lost    int // outcomes of leases that were lost
}

// LetterID names a dead letter; ids ascend and are never used again.
type LetterID uint64

// DeadLetter is an outbox row or a wake that was given up.
type DeadLetter struct {
	Letter    LetterID
	Workspace WorkspaceKey
	Wake      // of a row without Recipient and Key
	Row       bool
	Overflow  bool // there was no room; otherwise attempts or time ran out
	Attempts  int
	Error     string
	DiedAt    int64
	MemberID  readstate.MemberID // of the agent
	WebhookID string
}

// Requeue names a dead letter to take up again.
type Requeue struct {
	Term       uint64
	Workspace  WorkspaceKey
	Letter     LetterID
	Now        int64
	QueueLimit int
}

// OutboxPurge says what is old: rows delivered before Delivered, letters that died before Dead,
// both in milliseconds.
type OutboxPurge struct {
	Terms           TermOf
	Delivered, Dead int64
	Limit           int
}

// GaugeBound is the most that a gauge of OutboxGauges counts.
const GaugeBound = 100_000

// OutboxGauges is what there is now. Each number of rows counts up to GaugeBound.
type OutboxGauges struct {
	Fresh     int // rows that nobody has looked at
	Leased    int
	Deferred  int
	Failed    int
	Behind    int
	Dead      int   // letters
	OldestAt  int64 // when the oldest unfinished row was written, milliseconds; zero for none
	Waiting   int   // wakes
	Queues    int   // recipients with wakes that wait
	Endpoints int   // with an address
	Disabled  int
}

// WebhookKey is the interned number of a webhook; like other keys it carries its workspace.
type WebhookKey uint64

// Recipient is the queue of the webhook.
func (k WebhookKey) Recipient() Recipient { return -Recipient(k) }

// WebhookRow is one webhook. It fires for members; Threshold and Idle say when, zero for never.
type WebhookRow struct {
	Key         WebhookKey
	Workspace   WorkspaceKey
	WorkspaceID readstate.WorkspaceID // not stored
	ID          string
	Threshold   uint64 // badge messages
	Idle        int64  // milliseconds
	Members     []WebhookState
	Endpoint    EndpointRow
	CreatedAt   int64
}

// WebhookState is what a webhook remembers of one member.
type WebhookState struct {
	Webhook  WebhookKey
	Member   readstate.MemberKey
	MemberID readstate.MemberID // not stored
	// Seen says that the member's badge has been looked at since the webhook was made.
	Seen  bool
	Armed bool // below the threshold since it fired last
	// IdleSince is since when something has been unread without a read, milliseconds; zero for not.
	// IdleLSN is the commit since which it is. IdleFired says that it was told.
	IdleSince int64
	IdleLSN   readstate.LSN
	IdleFired bool
}

// Firing is an event of a webhook.
type Firing struct {
	Webhook WebhookKey
	Member  readstate.MemberKey
	Kind    WakeKind
	LSN     readstate.LSN
	Amount  uint64
}

// WebhookStore keeps webhooks and what they remember.
type WebhookStore interface {
	// PutWebhook makes or changes a webhook. What it remembers of members it had before stays. It
	// returns the row as stored. ErrLimit means that the workspace has most of them already.
	PutWebhook(ctx context.Context, p PutWebhook) (WebhookRow, error)
	// RemoveWebhook drops a webhook with its queue; false if there is none.
	RemoveWebhook(ctx context.Context, term uint64, w WorkspaceKey, id string) (bool, error)
	// Webhooks returns webhooks with their members, ascending by key, those after the given one.
	// A zero workspace asks for those of all.
	Webhooks(ctx context.Context, w WorkspaceKey, after WebhookKey, limit int) ([]WebhookRow, error)
	// SettleWebhooks stores states and queues what has fired, in one transaction. The states of
	// members whom a webhook no longer watches are left out, and those that are stored already,
	// each with its member's firings: a settlement may be repeated.
	SettleWebhooks(ctx context.Context, s WebhookSettlement) (EffectsSettled, error)
}

// PutWebhook is a webhook as it shall be.
type PutWebhook struct {
	Term uint64
	Now  int64
	Most int // webhooks of the workspace
	// Row's Key is not looked at.
	Row WebhookRow
}

// WebhookSettlement stores what webhooks have seen.
type WebhookSettlement struct {
	Terms      TermOf
	Now        int64
	States     []WebhookState
	Firings    []Firing
	QueueLimit int
}
