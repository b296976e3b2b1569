package substrate

import (
	"context"
	"fmt"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// Source is where a publisher has dots from.
type Source interface {
	// Follow begins to watch a workspace; an error where it is not served here. Changed is called, from
	// commits, when something may have changed: it must not wait.
	Follow(ctx context.Context, w readstate.WorkspaceID, changed func()) (Following, error)
}

// Following is a workspace that is watched. It is used by one goroutine.
type Following interface {
	// Add and Remove change whose dots are watched.
	Add(members ...readstate.MemberID) error
	Remove(members ...readstate.MemberID)
	// Changed returns members whose dots may have changed, none if there are none left.
	Changed() []readstate.MemberID
	// Dot is a member's dot of this moment; false where it is not known now. It waits for nothing.
	Dot(ctx context.Context, m readstate.MemberID) (Dot, bool)
	// Lost reports that the workspace is not served any more.
	Lost() bool
	Close()
}

// Nobody is the source of a process that serves no workspace.
var Nobody Source = nobody{}

type nobody struct{}

// Follow implements Source.
func (nobody) Follow(context.Context, readstate.WorkspaceID, func()) (Following, error) {
	return nil, unread.ErrNoWorkspace
}

// Engine is the source of an engine's memory.
func Engine(e *tidemark.Engine) Source { return engine{e} }

type engine struct{ *tidemark.Engine }

// Follow implements Source.
func (e engine) Follow(
	ctx context.Context, w readstate.WorkspaceID, changed func(),
) (Following, error) {
	space := e.Workspace(w)
	watch, err := space.Watch()
	if err != nil {
		return nil, fmt.Errorf("follow dots: %w", err)
	}
	term, err := e.Term(ctx, w) // now that memory is open: what it shows is of this term or lost
	if err != nil {
		watch.Close()
		return nil, fmt.Errorf("follow dots: %w", err)
	}
	watch.OnReady(changed)
	return &following{engine: e.Engine, id: w, space: space, term: term, Watch: watch}, nil
}

type following struct {
	engine *tidemark.Engine
	id     readstate.WorkspaceID
	space  *tidemark.Workspace
	term   uint64
	*unread.Watch
}

// Changed implements Following.
func (f *following) Changed() []readstate.MemberID {
	var out []readstate.MemberID
	for _, d := range f.Next(batch) {
		if len(out) == 0 || out[len(out)-1] != d.Member {
			out = append(out, d.Member)
		}
	}
	return out
}

// Dot implements Following. The member is being watched, so what is not loaded is on its way.
func (f *following) Dot(ctx context.Context, m readstate.MemberID) (Dot, bool) {
	if _, state := f.space.HasUnread(m); state != unread.Ready {
		return Dot{}, false
	}
	s, err := f.space.Summary(ctx, m)
	if err != nil || !s.Complete || s.State != unread.Ready {
		return Dot{}, false
	}
	// Memory that went meanwhile may be another term's by now.
	if f.Lost() || f.engine.Serves(f.id) != nil {
		return Dot{}, false
	}
	return Dot{
		Key: Key{f.id, m}, Term: f.term, LSN: s.LSN, Unread: s.HasUnread, Badge: s.Badge,
	}, true
}

// Lost implements Following.
func (f *following) Lost() bool {
	select {
	case <-f.Watch.Lost():
		return true
	default:
		return f.engine.Serves(f.id) != nil
	}
}
