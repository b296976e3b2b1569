package substrate

import (
	"context"
	"errors"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
)

// Key names a member in a workspace.
type Key struct {
	Workspace readstate.WorkspaceID
	Member    readstate.MemberID
}

// Dot is what is unread of a member in a workspace, whole, as of a commit in a term.
type Dot struct {
	Key
	Term   uint64
	LSN    readstate.LSN
	Unread bool
	Badge  readstate.Badge
}

// Supersedes reports that d is at least as new as other: of a higher term, or in the same term of the
// same commit or a later one. Of two dots of one commit the one that arrives last counts, since the
// end of a mute changes a dot without a commit.
func (d *Dot) Supersedes(other *Dot) bool {
	return d.Term > other.Term || d.Term == other.Term && d.LSN >= other.LSN
}

// ErrAway means that the store cannot be reached.
var ErrAway = errors.New("the substrate is out of reach")

// ErrBudget means that more is wanted at once than a limit allows.
var ErrBudget = errors.New("over the budget of the substrate")

// Ear is told what others say. Its functions must not wait. Nil ones are not called.
type Ear struct {
	// Begun is called when nothing is missed from now on, again after each loss of the connection.
	Begun func()
	// Wanted has keys that somebody wants.
	Wanted func(keys []Key)
	// Dots has dots that were published and changed something.
	Dots func(dots []Dot)
}

// Store keeps dots for a while, and passes on what is said. It is safe for concurrent use. Every
// error means that nothing is known of what was asked.
type Store interface {
	// Want notes that dots are wanted for keep from now on and tells who listens. What is beyond the
	// store's bounds is left out.
	Want(ctx context.Context, keys []Key, keep time.Duration) (refused int, err error)
	// Wanted returns workspaces of which dots are wanted, at most limit, in no order.
	Wanted(ctx context.Context, limit int) ([]readstate.WorkspaceID, error)
	// WantedIn returns members of a workspace whose dots are wanted, at most limit.
	WantedIn(ctx context.Context, w readstate.WorkspaceID, limit int) ([]readstate.MemberID, error)
	// Publish writes dots of one workspace and term, each unless a newer one is there, and tells who
	// listens of those that changed. They last for keep.
	Publish(ctx context.Context, dots []Dot, keep time.Duration) (refused int, err error)
	// Read returns the dots that are known; others are absent.
	Read(ctx context.Context, keys []Key) ([]Dot, error)
	// Listen hears until ctx ends or the connection is lost, and returns why.
	Listen(ctx context.Context, ear Ear) error
}

// Limits bound the substrate. The zero value of each is its default.
type Limits struct {
	// Keep is how long a dot and the wish for it last. Both are renewed after a third of it.
	// Default 30 s.
	Keep time.Duration
	// Every is the time between looks at what is wanted, and between attempts to reach the store.
	// Default 2 s.
	Every time.Duration
	// Coalesce is how long changes wait for further ones. Default 50 ms.
	Coalesce time.Duration
	// Timeout bounds one exchange with the store. Default 1 s.
	Timeout time.Duration
	// Patience is how long a list waits for dots that nobody wanted before. Default 300 ms.
	Patience time.Duration
	// Members bounds those of one workspace whose dots are published. Default 10,000.
	Members int
	// Workspaces bounds those of which one process publishes dots. Default 10,000.
	Workspaces int
	// Keys bounds what one process wants and follows. Default 100,000.
	Keys int
}

func (l *Limits) defaults() {
	for _, d := range []struct {
		value *time.Duration
		is    time.Duration
	}{
		{&l.Keep, 30 * time.Second}, {&l.Every, 2 * time.Second}, {&l.Coalesce, 50 * time.Millisecond},
		{&l.Timeout, time.Second}, {&l.Patience, 300 * time.Millisecond},
	} {
		if *d.value <= 0 {
			*d.value = d.is
		}
	}
	for _, d := range []struct {
		value *int
		is    int
	}{{&l.Members, 10_000}, {&l.Workspaces, 10_000}, {&l.Keys, 100_000}} {
		if *d.value <= 0 {
			*d.value = d.is
		}
	}
}

// batch bounds what one exchange with the store carries.
const batch = 500
