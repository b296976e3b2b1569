package model

import "errors"

// Kind says what an [Op] does.
type Kind uint8

// The kinds of operations, each with its one-line form. Members are written A, B,
// ..., scopes s1, s2, ...; parts in brackets may be left out.
const (
	// create s1 channel|dm|task [shared] [planned], create s2 thread s1 [root=1],
	// create s3 session A
	OpCreate Kind = iota + 1
	// post s1 A [as=B] [@B,C] [everyone] [broadcast] [unreadable] [baseline] [to=B]
	// [expires=9] [saw=4]
	OpPost
	OpEdit         // edit s1 3 [@B,C] [everyone]
	OpRemove       // remove s1 3
	OpRewind       // rewind s1 3
	OpTrim         // trim s1 3
	OpMove         // move s1 3,4 s2 [count] [to=B]
	OpAdvanceClock // clock 5
	OpExpire       // expire 5
	OpJoin         // join s1 A [from=3] [read=2]
	OpLeave        // leave s1 A
	OpShow         // show s1 A
	OpHide         // hide s1 A
	OpRead         // read s1 A 5 [v=0] [service]
	OpReadAll      // readall A [s1:5:0] [s2:4] [service]
	OpMarkUnread   // unread s1 A [from=3] [v=0] [service]
	OpSetLevel     // level s1 A all|mentions|none|inherit [until=9] [service]
	OpFollow       // follow s2 A
	OpUnfollow     // unfollow s2 A
	OpArchive      // archive s1
	OpUnarchive    // unarchive s1
	OpBlock        // block A B
	OpUnblock      // unblock A B
	OpActivity     // activity s1 A [low] [to=B]
	OpActivityRead // actread s1 A 3 [service]
	OpTask         // task s1 A [assignee=B|nobody] [status=2] [title=3]
	OpRunState     // run s3 [active] [thinking]
	OpMerge        // merge s3 s4
	OpFork         // fork s3 s5
	numKinds
)

// Op is one operation. Which fields matter depends on Kind; the others stay zero,
// except Version, whose "none" is [NoVersion] for the kinds that carry one.
// Slices belong to the Op and are not changed by the world.
type Op struct {
	Kind   Kind
	Scope  ScopeID  // the scope acted on; source of a move, merge or fork
	Member MemberID // whose row; author, actor, blocker, or owner of a new session
	Other  MemberID // notify principal of a post, assignee (0: nobody), or the member blocked
	To     ScopeID  // target of a move, merge or fork; parent of a new thread

	Type   ScopeKind // kind of a new scope
	Shared bool      // history of a new scope
	// Planned is a new task that finds the recipients of what happens there by itself.
	Planned bool

	// Seq is the entry to edit or remove, the last one kept by a rewind or taken by a
	// trim, or the root of a new thread (0: none).
	Seq  Seq
	Seqs []Seq // entries to move, ascending

	Mentions   []MemberID // named members, as a set
	Recipients []MemberID // of a task's entry or activity, as a set
	Everyone   bool
	Broadcast  bool    // a thread reply that is also an entry of the parent
	Unreadable bool    // gets no revision
	Baseline   bool    // copied history: gets no revision
	Count      bool    // a move that gives new revisions
	Expires    Seconds // 0: never

	// Revision is the one read through; on a post what its author saw (0: nothing), on a
	// join the cursor given (0: none).
	Revision  Revision
	From      Revision    // effective revision of a join, or X of a manual mark (0: none)
	Version   Version     // expected version, or NoVersion
	Activity  ActivitySeq // activity read through
	Items     []ReadItem  // of OpReadAll
	Level     Level
	Until     Seconds // end of the level; 0: never
	Service   bool    // a trusted service acts for the member
	LowSignal bool    // an activity that never counts
	Assigns   bool    // a task gets Other as its assignee
	Status    Word    // of a task; 0: as it is
	Title     Word    // likewise
	Active    bool    // session run state
	Thinking  bool
	Advance   Seconds // how far the clock goes
}

// ReadItem is one read of an OpReadAll.
type ReadItem struct {
	Scope    ScopeID
	Revision Revision
	Version  Version // or NoVersion
}

// Why an operation is refused. A refusal changes nothing.
var (
	// ErrInvalid: the operation makes no sense in any state, or not for this kind of scope.
	ErrInvalid = errors.New("invalid")
	// ErrNotFound: no such scope, entry or row, or out of the member's reach.
	ErrNotFound = errors.New("not found")
	// ErrFuture: a revision, activity or effective point that does not exist yet.
	ErrFuture = errors.New("in the future")
	// ErrConflict: a manual mark that names another version than the current one.
	ErrConflict = errors.New("version conflict")
	// ErrForbidden: somebody who is known and may not.
	ErrForbidden = errors.New("forbidden")
	// ErrMismatch: the scope exists already and is another one.
	ErrMismatch = errors.New("mismatch")
	// ErrReplaced: the session was merged into another.
	ErrReplaced = errors.New("replaced")
)

// Outcome tells what an accepted operation did.
type Outcome struct {
	Changed bool // whether anything durable changed; a stale read changes nothing

	Seq      Seq      // of the appended entry (post), of the last one (move)
	Revision Revision // likewise; 0 when it has none
	// CopySeq and CopyRevision are those of a broadcast reply's entry in the parent.
	CopySeq      Seq
	CopyRevision Revision

	Activity ActivitySeq // of the recorded activity, of a task's last one
	Changes  int         // how many fields of a task changed
	Items    []ReadResult
}

// ReadResult is the answer to one item of an OpReadAll: items stand alone.
type ReadResult struct {
	Changed bool
	Err     error // nil, or as OpRead would return it
}
