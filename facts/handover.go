package facts

import (
	"context"
	"fmt"

	"github.com/tidemark-im/tidemark/readstate"
)

// handover is a workspace that comes to a lane, or goes from it.
type handover struct {
	row  WorkspaceRow          // comes, where it has an id
	gone readstate.WorkspaceID // goes, else
	done chan struct{}         // closed once memory knows
}

// Adopt makes a shared lane the owner of a workspace whose term the caller has just raised in the
// store: it goes on from the row's term and LSN. It returns once Dropped was called for it. An earlier
// ownership of the same workspace is forgotten.
func (l *Lane) Adopt(ctx context.Context, row WorkspaceRow) error {
	if err := l.handOver(ctx, &handover{row: row}); err != nil {
		return fmt.Errorf("adopt workspace %q: %w", row.ID, err)
	}
	return nil
}

// Release ends the ownership of a workspace. It returns once the commits under way are applied and
// Released was called: from then on operations get ErrNotOwner, and nothing of it is written. One that
// the lane does not own is released already.
func (l *Lane) Release(ctx context.Context, id readstate.WorkspaceID) error {
	if err := l.handOver(ctx, &handover{gone: id}); err != nil {
		return fmt.Errorf("release workspace %q: %w", id, err)
	}
	return nil
}

// handOver waits until a handover is done. When ctx ends first it returns its error, and the handover
// happens all the same if it was taken.
func (l *Lane) handOver(ctx context.Context, h *handover) error {
	if !l.cfg.Shared {
		return fmt.Errorf("%w: the lane owns all workspaces", ErrInvalid)
	}
	h.done = make(chan struct{})
	select {
	case l.handovers <- h:
	case <-l.stop:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-h.done:
		return nil
	case <-l.ended:
		select {
		case <-h.done:
			return nil
		default:
			return ErrClosed
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take carries out a handover between two groups. What is remembered goes: of a workspace that comes
// back others may have changed everything.
func (l *Lane) take(h *handover) {
	g := l.group
	g.rolledBack()
	a := applied{handover: h}
	if h.row.ID != "" {
		if w := g.workspaces[h.row.ID]; w != nil {
			g.disown(w)
		}
		g.own(h.row)
		a.dropped = []WorkspaceRow{h.row}
	} else if w := g.workspaces[h.gone]; w != nil {
		g.disown(w)
		a.released = []readstate.WorkspaceID{h.gone}
	}
	l.applies <- a
}

// losing says what becomes of memory of workspaces that somebody else turned out to own: a shared
// lane has to do without them, and one that owns everything reads them again.
func (l *Lane) losing(a applied, lost []WorkspaceRow) applied {
	if !l.cfg.Shared {
		a.dropped = lost
		return a
	}
	for i := range lost {
		a.released = append(a.released, lost[i].ID)
	}
	return a
}

// serving reports that the lane may write now.
func (l *Lane) serving() bool { return l.cfg.Serving == nil || l.cfg.Serving() }

// withhold answers requests that may not be run.
func (l *Lane) withhold(backlog []*request) {
	for _, r := range backlog {
		r.result, r.err = nil, fmt.Errorf("%s: %w: the lease is over", r.op.name(), ErrUnavailable)
	}
	l.applies <- applied{requests: backlog}
}
