package readsync

import "errors"

// Kind is what an operation does.
type Kind string

const (
	Read   Kind = "read"
	Unread Kind = "unread"
)

// Operation is a read or a manual mark that the server has not decided on.
type Operation struct {
	ID      string `json:"id"`
	Session string `json:"session"`
	Kind    Kind   `json:"kind"`
	// Revision is the one that was observed, inclusive; zero for a mark.
	Revision Revision `json:"revision"`
	// ExpectedVersion is the version that was observed, or that the operation After brings about.
	ExpectedVersion Version `json:"expectedVersion"`
	After           string  `json:"after,omitempty"`
	// Flips says that the manual flag was to change when the operation was made.
	Flips bool `json:"flips"`
	// Attempts are the sendings that may have reached the server, of a mark; two stands for more.
	// Reads are not counted: repeating one changes nothing.
	Attempts int `json:"attempts"`
	// CreatedAt is the time of making in milliseconds since 1970, for giving up only.
	CreatedAt int64 `json:"createdAt"`
}

// intended tells whether the state is what the operation makes of the version it expects: the next
// version, its flag, and a mark that begins nowhere, as all marks of this client do.
func (o *Operation) intended(s State) bool {
	return s.Version == o.ExpectedVersion+1 && s.ManualUnread == (o.Kind == Unread) &&
		s.FromRevision == 0
}

// Answer is what came of sending an operation.
type Answer struct {
	// Status is that of HTTP; zero when there was no answer.
	Status int `json:"status"`
	// Code is the server's own name of a refusal. A refusal without one is not the server's: some
	// other machine on the way made it.
	Code string `json:"code,omitempty"`
	// State is the authoritative one, nil when the answer carries none.
	State *State `json:"state,omitempty"`
	// Unsent says that the operation cannot have reached the server.
	Unsent bool `json:"unsent,omitempty"`
}

// Verdict is what an answer means for its operation.
type Verdict string

const (
	Accepted    Verdict = "accepted"    // done: it leaves the outbox
	Rejected    Verdict = "rejected"    // never to be done: it leaves the outbox, and is told
	Postponed   Verdict = "postponed"   // not decided: it is sent again later
	Credentials Verdict = "credentials" // not decided: it is sent again with another token
)

// CodeReplaced is the refusal of a session id that leads to another session.
const CodeReplaced = "scope_replaced"

const codeConflict = "version_conflict"

// Verdict reads an answer. Only the server's own refusals are final, or say something of the token: a
// page of a proxy does not.
func (a *Answer) Verdict() Verdict {
	switch a.Status {
	case 200:
		if a.State != nil {
			return Accepted
		}
	case 401:
		if a.Code != "" {
			return Credentials
		}
	case 400, 403, 404, 405, 409, 413, 415:
		if a.Code != "" {
			return Rejected
		}
	}
	return Postponed
}

// uncertain tells whether the operation may have been carried out though the answer decides nothing.
func (a *Answer) uncertain() bool {
	return !a.Unsent && a.Status != 401 && a.Status != 429
}

// Loss is an operation that will never be done.
type Loss struct {
	Operation Operation `json:"operation"`
	Reason    Reason    `json:"reason"`
	Answer    Answer    `json:"answer"` // zero unless the reason is a refusal
}

// Reason says why an operation was lost.
type Reason string

const (
	Refused    Reason = "refused"    // by the server
	Dependent  Reason = "dependent"  // it built on one that did not come out as meant
	Superseded Reason = "superseded" // the session was merged into another one
	TooOld     Reason = "too_old"    // given up before the server forgets what it knows of it
)

// Change is what happens to an outbox in one step. It is written as one, then applied.
type Change struct {
	Put    []Operation `json:"put,omitempty"` // new ones at the end, known ones where they are
	Remove []string    `json:"remove,omitempty"`
	Lost   []Loss      `json:"lost,omitempty"` // they are in Remove, too
	// Done are the operations in Remove that came out as they were meant to.
	Done []string `json:"done,omitempty"`
}

// Empty tells whether there is nothing to write.
func (c *Change) Empty() bool { return len(c.Put) == 0 && len(c.Remove) == 0 }

const (
	// MaxOperations bounds an outbox: each session has a few operations, since reads that wait are
	// folded.
	MaxOperations = 10_000
	// GiveUpAfter is the age, in milliseconds, at which an operation is given up: a day before the
	// server forgets the receipts of operations.
	GiveUpAfter = 29 * 24 * 3600 * 1000
	// clockSlack is how far, in milliseconds, an operation may lie in the future without having been
	// made by a clock that was wrong.
	clockSlack = 3600 * 1000
	// clockFloor is a time, in milliseconds since 1970, that every clock has passed which was ever
	// set: a machine without a battery begins long before it.
	clockFloor = 1_735_689_600_000
)

var (
	// ErrFull means that an outbox has MaxOperations.
	ErrFull = errors.New("the outbox is full")
	// ErrStale means that what was observed does not hold any more, so that a mark on top of it
	// would be one on something unseen.
	ErrStale = errors.New("the state has changed since it was seen")
)
