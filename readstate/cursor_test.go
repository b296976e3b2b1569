package readstate_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemark-im/tidemark/readstate"
)

// anyRow draws a row of a scope with the given head, as commands may leave it.
func anyRow(t *rapid.T, head readstate.Revision) readstate.Row {
	upTo := func(most readstate.Revision, name string) readstate.Revision {
		return readstate.Revision(rapid.Uint64Range(0, uint64(most)).Draw(t, name))
	}
	r := readstate.Row{Joined: true, Visible: true, Epoch: 1}
	r.Effective = upTo(head, "effective") + 1
	r.Read = upTo(head, "read")
	r.Manual.Version = rapid.Uint64Range(0, 4).Draw(t, "version")
	if rapid.Bool().Draw(t, "manual") {
		r.Manual.Set = true
		r.Manual.From = upTo(head, "from")
	}
	return r
}

func anyVersion(t *rapid.T) *uint64 {
	if rapid.Bool().Draw(t, "names no version") {
		return nil
	}
	v := rapid.Uint64Range(0, 5).Draw(t, "expected")
	return &v
}

// covers: RT-143, RT-151
func TestPropertyMarkRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		head := readstate.Revision(rapid.Uint64Range(0, 6).Draw(t, "head"))
		before := anyRow(t, head)
		c := readstate.ReadCommand{
			Revision: readstate.Revision(rapid.Uint64Range(0, 8).Draw(t, "revision")),
			Version:  anyVersion(t), Trusted: rapid.Bool().Draw(t, "trusted"),
		}
		after := before
		out, err := after.MarkRead(head, c)
		if c.Revision > head {
			if !errors.Is(err, readstate.ErrFuture) || out != readstate.Unchanged || after != before {
				t.Fatalf("%s, %v, %+v", out, err, after)
			}
			return
		}
		want := before
		if c.Revision > want.Read {
			want.Read = c.Revision
		}
		knows := c.Version == nil && c.Trusted || c.Version != nil && *c.Version == before.Manual.Version
		if before.Manual.Set && knows && c.Revision >= before.Manual.From {
			want.Manual = readstate.Manual{Version: before.Manual.Version + 1}
		}
		if err != nil || after != want || (out == readstate.Applied) != (want != before) {
			t.Fatalf("%s, %v\nis   %+v\nwant %+v", out, err, after, want)
		}
		if out, err = after.MarkRead(head, c); after != want || err != nil {
			t.Fatalf("a second time: %s, %v, %+v", out, err, after)
		}
	})
}

// covers: RT-043, RT-152
func TestPropertyMarkUnread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		head := readstate.Revision(rapid.Uint64Range(0, 6).Draw(t, "head"))
		before := anyRow(t, head)
		c := readstate.UnreadCommand{
			From:    readstate.Revision(rapid.Uint64Range(0, 8).Draw(t, "from")),
			Version: anyVersion(t),
		}
		after := before
		out, err := after.MarkUnread(head, c)
		want, wantErr := before, error(nil)
		switch {
		case c.From > head:
			wantErr = readstate.ErrFuture
		case c.Version != nil && *c.Version != before.Manual.Version:
			wantErr = readstate.ErrConflict
		case !before.Manual.Set || before.Manual.From != c.From:
			want.Manual = readstate.Manual{Set: true, From: c.From, Version: before.Manual.Version + 1}
		}
		if !errors.Is(err, wantErr) || after != want || (out == readstate.Applied) != (want != before) {
			t.Fatalf("%s, %v\nis   %+v\nwant %+v", out, err, after, want)
		}
	})
}

// TestPropertyEffectivePoint holds the point against the rules of what may count, one revision
// at a time.
//
// covers: RT-036, RT-037
func TestPropertyEffectivePoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const head = 8
		r := anyRow(t, head)
		if rapid.Bool().Draw(t, "no effective revision") {
			r.Effective = 0
		}
		floor := readstate.Revision(rapid.Uint64Range(0, head).Draw(t, "floor"))
		e := r.EffectivePoint(floor)
		for q := readstate.Revision(1); q <= head; q++ {
			marked := r.Manual.Set && r.Manual.From > 0 && q >= r.Manual.From
			counts := q > floor && q >= r.Effective && (q > r.Read || marked)
			if counts != (q > e) {
				t.Fatalf("%d counts %t, the point is %d", q, counts, e)
			}
		}
		p := readstate.Point{E: r.Read}
		if got := p.Base(floor); got != max(r.Read, floor) {
			t.Fatalf("base of %d at floor %d is %d", r.Read, floor, got)
		}
	})
}

func TestSettle(t *testing.T) {
	for _, c := range []struct {
		name   string
		kind   readstate.ScopeType
		read   readstate.Revision
		unread uint64
		moves  bool
	}{
		{"nothing unread", readstate.Session, 2, 0, true},
		{"something unread", readstate.Session, 2, 1, false},
		{"at the head", readstate.Session, 5, 0, false},
		{"no session", readstate.Channel, 2, 0, false},
		{"a task", readstate.Task, 2, 0, false},
	} {
		r := readstate.Row{Read: c.read, Manual: readstate.Manual{Set: true, From: 2, Version: 3}}
		want := r
		if c.moves {
			want.Read = 5
		}
		if got := r.Settle(c.kind, 5, c.unread); got != c.moves || r != want {
			t.Errorf("%s: %t, %+v", c.name, got, r)
		}
	}
}

// covers: RT-161, RT-168
func TestMarkActivityRead(t *testing.T) {
	start := readstate.ActivityPoint{Read: 3, SignalAt: 2, ActorAt: 1, Targets: 2}
	crossed := readstate.ActivityCrossed{Signal: 5, Actor: 2, Targets: 1}
	for _, c := range []struct {
		name string
		to   readstate.Seq
		by   readstate.ActivityCrossed
		out  readstate.Outcome
		err  error
		want readstate.ActivityPoint
	}{
		{"forward", 4, crossed, readstate.Applied, nil,
			readstate.ActivityPoint{Read: 4, SignalAt: 5, ActorAt: 2, Targets: 1}},
		{"to the latest", 6, readstate.ActivityCrossed{Signal: 6, Actor: 2, Targets: 2}, readstate.Applied, nil,
			readstate.ActivityPoint{Read: 6, SignalAt: 6, ActorAt: 2}},
		{"in place", 3, crossed, readstate.Unchanged, nil, start},
		{"back", 1, crossed, readstate.Unchanged, nil, start},
		{"beyond the latest", 7, crossed, readstate.Unchanged, readstate.ErrFuture, start},
		{"more than there is", 4, readstate.ActivityCrossed{Targets: 3}, readstate.Unchanged,
			readstate.ErrSpan, start},
	} {
		r := readstate.Row{Activity: start}
		out, err := r.MarkActivityRead(c.to, 6, c.by)
		if out != c.out || !errors.Is(err, c.err) || r.Activity != c.want {
			t.Errorf("%s: %s, %v, %+v", c.name, out, err, r.Activity)
		}
	}
}

// covers: RT-157, RT-163
func TestPostActivity(t *testing.T) {
	for i := range 16 {
		high, recipient, actor := i&1 != 0, i&2 != 0, i&4 != 0
		kind := readstate.Channel
		if i&8 != 0 {
			kind = readstate.Task
		}
		a := readstate.ActivityPoint{Read: 1, Targets: 4}
		want := a
		if kind == readstate.Task && high && recipient && !actor {
			want.Targets = 5
		}
		if a.PostActivity(kind, high, recipient, actor); a != want {
			t.Errorf("%s high %t recipient %t actor %t: %+v", kind, high, recipient, actor, a)
		}
	}
}
