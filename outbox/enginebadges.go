package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

const (
	// badgePage is how many scopes one look at a member takes in.
	badgePage = 100
	// maxShown bounds the unread scopes of a member in which reads are noticed. In further ones a
	// read is noticed by what it leaves of the badge only.
	maxShown = 1000
	// badgesAtOnce bounds the changes that one answer of a feed is made of.
	badgesAtOnce = 512
	// badgeRetry is how long a feed waits for a member who is being loaded.
	badgeRetry = time.Second
)

// EngineBadges are the badges of the members of an engine, from its memory. Members who are
// followed stay loaded.
func EngineBadges(e *tidemark.Engine) Badges { return engineBadges{e} }

type engineBadges struct{ engine *tidemark.Engine }

// Follow implements Badges.
func (e engineBadges) Follow(
	_ context.Context, w readstate.WorkspaceID, members []readstate.MemberID,
) (BadgeFeed, error) {
	space := e.engine.Workspace(w)
	// The watch comes first: what changes while the members are looked at comes again.
	watch, err := space.Watch(members...)
	if err != nil {
		return nil, fmt.Errorf("follow badges: %w", err)
	}
	f := &engineFeed{
		space: space, watch: watch, owed: members,
		shown: make(map[readstate.MemberID]map[readstate.ScopeID]cursors, len(members)),
	}
	return f, nil
}

// cursors say how far a member has read in a scope.
type cursors struct {
	read     readstate.Revision
	activity readstate.Seq
	manual   bool
}

func cursorsOf(row *unread.Row) cursors {
	return cursors{read: row.Row.Read, activity: row.Row.Activity.Read, manual: row.Row.Manual.Set}
}

// readSince reports that the member has read, or has taken a manual mark back.
func (c cursors) readSince(before cursors) bool {
	return c.read > before.read || c.activity > before.activity || before.manual && !c.manual
}

// engineFeed is the BadgeFeed of an engine.
type engineFeed struct {
	space *tidemark.Workspace
	watch *unread.Watch
	owed  []readstate.MemberID // to be looked at
	later []readstate.MemberID // likewise, after a pause
	shown map[readstate.MemberID]map[readstate.ScopeID]cursors
}

// Next implements BadgeFeed.
func (f *engineFeed) Next(ctx context.Context) ([]Badge, error) {
	for {
		if len(f.owed) > 0 {
			badge, ok, err := f.look(ctx, f.owed[0])
			if err != nil {
				return nil, err
			}
			f.owed = f.owed[1:]
			if ok {
				return []Badge{badge}, nil
			}
			continue
		}
		if badges := f.deltas(); len(badges) > 0 {
			return badges, nil
		}
		if err := f.wait(ctx); err != nil {
			return nil, err
		}
	}
}

// Close implements BadgeFeed.
func (f *engineFeed) Close() { f.watch.Close() }

var errLost = errors.New("memory of the workspace was dropped")

func (f *engineFeed) wait(ctx context.Context) error {
	if len(f.owed) > 0 {
		return nil
	}
	var retry <-chan time.Time
	if len(f.later) > 0 {
		timer := time.NewTimer(badgeRetry)
		defer timer.Stop()
		retry = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.watch.Lost():
		return errLost
	case <-f.watch.Ready():
	case <-retry:
		f.owed, f.later = f.later, nil
	}
	return nil
}

// look takes the present badge of a member; false if it cannot be known now.
func (f *engineFeed) look(ctx context.Context, m readstate.MemberID) (Badge, bool, error) {
	shown := map[readstate.ScopeID]cursors{}
	var badge Badge
	for at := ""; ; {
		page, err := f.space.Unread(ctx, m, at, badgePage)
		switch {
		case errors.Is(err, unread.ErrNoMember):
			return Badge{}, false, nil
		case errors.Is(err, unread.ErrNotServable), errors.Is(err, unread.ErrBudget),
			err == nil && !page.Complete:
			f.later = append(f.later, m)
			return Badge{}, false, nil
		case err != nil:
			return Badge{}, false, err
		}
		badge = badgeOf(m, &page.Summary)
		for i := range page.Rows {
			if row := &page.Rows[i]; row.Presented.Shown {
				shown[row.Scope.ID] = cursorsOf(row)
			}
		}
		last := len(page.Rows) - 1
		if page.Next == "" || last < 0 || !page.Rows[last].Presented.Shown || len(shown) >= maxShown {
			f.shown[m] = shown
			return badge, true, nil
		}
		at = page.Next
	}
}

func badgeOf(m readstate.MemberID, s *unread.Summary) Badge {
	return Badge{Member: m, Messages: s.Badge.Messages, Unread: s.HasUnread, LSN: s.LSN}
}

// deltas takes what has changed, the newest badge of each member.
func (f *engineFeed) deltas() []Badge {
	var order []readstate.MemberID
	badges := map[readstate.MemberID]Badge{}
	deltas := f.watch.Next(badgesAtOnce)
	for i := range deltas {
		d := &deltas[i]
		if f.shown[d.Member] == nil {
			continue // has not been looked at yet: will be, after this
		}
		if !d.Summary.Complete || !d.Summary.State.Servable() {
			f.later = append(f.later, d.Member)
			continue
		}
		before, known := badges[d.Member]
		if !known {
			order = append(order, d.Member)
		}
		badge := badgeOf(d.Member, &d.Summary)
		badge.Read = f.note(d) || before.Read
		badges[d.Member] = badge
	}
	out := make([]Badge, 0, len(order))
	for _, m := range order {
		out = append(out, badges[m])
	}
	return out
}

// note remembers how far a member has read in a scope that is shown, and reports a read.
func (f *engineFeed) note(d *unread.Delta) bool {
	shown := f.shown[d.Member]
	before, known := shown[d.Scope]
	if d.Removed {
		delete(shown, d.Scope)
		return false
	}
	now := cursorsOf(&d.Row)
	if d.Row.Presented.Shown && (known || len(shown) < maxShown) {
		shown[d.Scope] = now
	} else {
		delete(shown, d.Scope)
	}
	return known && now.readSince(before)
}
