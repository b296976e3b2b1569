package unread

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
)

var five = []readstate.MemberID{"A", "B", "C", "D", "E"}

// crowded is a desk whose channel s1 has five members, all of whose rows wait.
func crowded(t *testing.T, limit int) *desk {
	t.Helper()
	d := newDesk(t, Config{MaxFirePerTick: limit}, "create s1 channel", "join s1 A", "join s1 B",
		"join s1 C", "join s1 D", "join s1 E")
	d.load(five...)
	for _, m := range five {
		d.dot(m)
	}
	return d
}

// As many rows as the limit are fired at once; one more makes a batch, of which a step moves as
// many as the limit.
func TestBatchesAndTheirSteps(t *testing.T) {
	for _, c := range []struct{ limit, batches, steps int }{{4, 0, 0}, {3, 1, 2}, {1, 1, 4}} {
		d := crowded(t, c.limit)
		d.do("post s1 A") // which fires four
		if n := d.r.Stats().PendingBatches; n != c.batches {
			t.Errorf("limit %d: %d batches", c.limit, n)
		}
		steps := 0
		for ; d.space().st.pending(); steps++ {
			d.r.step(d.space())
		}
		if steps != c.steps {
			t.Errorf("limit %d: %d steps, want %d", c.limit, steps, c.steps)
		}
		d.agree()
	}
}

// A reader takes their own rows out of a batch, and leaves everybody else's to the steps.
func TestAReaderMovesTheirOwnRows(t *testing.T) {
	d := crowded(t, 1)
	d.do("post s1 A")
	before := d.r.Stats().CandidateChecks
	if !d.dot("B") {
		t.Error("no dot")
	}
	if n := d.r.Stats().CandidateChecks - before; n != 1 {
		t.Errorf("%d checks", n)
	}
	steps := 0
	for ; d.space().st.pending(); steps++ {
		d.r.step(d.space())
	}
	if steps != 3 {
		t.Errorf("%d steps for the three others", steps)
	}
}

// Batches come to an end although nobody reads.
func TestBatchesAreWorkedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := bubble(t, Config{MaxFirePerTick: 1})
		close(g.open)
		g.do(t, r, "join s1 D", "join s1 E")
		for _, m := range five {
			r.HasUnread(testSpace, m)
		}
		synctest.Wait()
		g.do(t, r, "read s1 B 1 v=0", "read s1 C 1 v=0")
		for _, m := range five {
			if dot, state := r.HasUnread(testSpace, m); dot || state != Ready {
				t.Fatalf("dot of %s: %t, %s", m, dot, state)
			}
		}
		g.do(t, r, "post s1 A")
		time.Sleep(attendEvery)
		synctest.Wait()
		if s := r.Stats(); s.PendingBatches != 0 || s.Ticks < 4 {
			t.Errorf("%d batches are left after %d steps", s.PendingBatches, s.Ticks)
		}
	})
}

// A change of a big scope while its watches are still being told of an earlier one is told to
// all: to those who know of the earlier, and to those whom the earlier left out.
func TestAnotherChangeWhileAScopeIsTold(t *testing.T) {
	d := crowded(t, 2)
	w := d.watch(five...)
	d.do("post s1 A")
	var first []string
	for first == nil { // the rows of a batch go before the watches
		d.r.step(d.space())
		first = d.told(w)
	}
	if len(first) > 2 {
		t.Fatalf("one step tells %v", first)
	}
	d.do("post s1 B")
	for d.space().st.pending() {
		d.r.step(d.space())
	}
	want := []string{"A s1", "B s1", "C s1", "D s1", "E s1"}
	if got := sorted(d.told(w)); !slices.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
	// Two changes that leave out the same member leave them out together.
	d.do("post s1 C", "post s1 C")
	for d.space().st.pending() {
		d.r.step(d.space())
	}
	if got := sorted(d.told(w)); !slices.Equal(got, []string{"A s1", "B s1", "D s1", "E s1"}) {
		t.Errorf("told %v", got)
	}
}

// A position is settled once everything was handed out.
func TestUntoldIsNotSettled(t *testing.T) {
	d := newDesk(t, Config{}, room...)
	w := d.watch("B")
	if at, settled := w.Settled(); !settled || at != d.facts.lsn {
		t.Errorf("at %d: %t", at, settled)
	}
	d.do("post s1 A")
	if _, settled := w.Settled(); settled {
		t.Error("settled with a change untold")
	}
	d.told(w)
	if at, settled := w.Settled(); !settled || at != d.facts.lsn {
		t.Errorf("at %d: %t after it was told", at, settled)
	}
	w.Close()
	if _, settled := w.Settled(); settled {
		t.Error("a closed watch is settled")
	}
}

// The first hit ends the search for a dot; what was found clean on the way is not looked at again.
func TestADotStopsAtTheFirstHit(t *testing.T) {
	d := newDesk(t, Config{}, "create s1 channel", "create s2 channel", "create s3 channel",
		"create s4 channel", "join s1 B", "join s2 B", "join s3 B", "join s4 B", "post s1 A",
		"post s2 A", "post s3 A")
	d.load("B")
	d.do("read s1 B 1 v=0", "unread s4 B v=0", "read s4 B 0 v=1") // s1 and s4 are candidates
	checks := func() uint64 {
		before := d.r.Stats().CandidateChecks
		if !d.dot("B") {
			t.Error("no dot")
		}
		return d.r.Stats().CandidateChecks - before
	}
	if n := checks(); n > 4 { // the first, then two clean ones and a hit
		t.Errorf("%d checks", n)
	}
	if n := checks(); n != 1 {
		t.Errorf("%d checks the second time", n)
	}
}

// Reads are exact while others read: what there is to tidy, and what waits on batches, keeps
// nobody waiting.
func TestReadsShareTheWorkspace(t *testing.T) {
	d := crowded(t, 1)
	d.do("post s1 A")
	ws := d.space()
	for _, read := range []struct {
		after string
		want  bool
	}{{"", true}, {"read s1 B 1 v=0", false}, {"post s1 A", true}} {
		if read.after != "" {
			d.do(read.after)
		}
		ws.mu.RLock() // somebody reads all the while
		dot, state := d.r.HasUnread(testSpace, "B")
		s, err := d.r.Summary(t.Context(), testSpace, "B")
		totals, err2 := d.r.Totals(t.Context(), testSpace, "B", ByType)
		page, err3 := d.r.Rows(t.Context(), testSpace, "B", "", 9)
		ws.mu.RUnlock()
		if err := errors.Join(err, err2, err3); err != nil {
			t.Fatal(err)
		}
		sum := totals["channel"]
		if dot != read.want || state != Ready || s.HasUnread != dot || sum != s.Badge ||
			page.Summary != s || (sum.Conversations > 0) != dot {
			t.Errorf("after %q: dot %t (%s), summary %+v, totals %+v, page %+v", read.after, dot,
				state, s, sum, page.Summary)
		}
	}
	d.agree()
}
