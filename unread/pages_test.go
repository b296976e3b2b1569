package unread

import (
	"context"
	"fmt"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
)

// A page may be read from a commit that the applier has not reached: it waits.
func TestPageAheadOfTheApplier(t *testing.T) {
	d := newDesk(t, Config{}, room...)
	ahead := d.facts.play(parse(t, "post s1 A"))
	d.load("B")
	if _, state := d.r.HasUnread(testSpace, "B"); state != Hydrating {
		t.Errorf("a page of LSN %d is served at %d", d.facts.lsn, d.space().st.lsn)
	}
	if err := d.r.Apply(testSpace, d.facts.lsn, ahead); err != nil {
		t.Fatal(err)
	}
	if got := d.unread("B", "s1"); got != 1 {
		t.Errorf("%d unread, want 1: neither lost nor counted twice", got)
	}
	d.agree()
}

// A page of an LSN that was applied long ago is brought up to date from the ring.
func TestPageBehindTheApplier(t *testing.T) {
	d := newDesk(t, Config{}, room...)
	d.r.HasUnread(testSpace, "B")
	flight := func() (*job, readstate.Page) {
		t.Helper()
		j := d.r.queue.next()
		req, _ := d.r.beginPage(j)
		page, err := d.facts.Page(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		return j, page
	}
	j, page := flight()
	d.do("post s1 A", "post s1 A @B", "remove s1 1")
	d.r.finishPage(j, page, nil)
	if row := d.row("B", "s1"); row.Values != (readstate.Values{Unread: 1, Attention: 1}) {
		t.Errorf("%+v", row.Values)
	}
	s := d.r.Stats()
	if s.RingOverruns != 0 || s.Pages != 1 || s.RingEvents != 0 {
		t.Errorf("%+v", s)
	}
	d.agree()
	// A block on the way takes the page's worth: it has no pairs.
	d.r.HasUnread(testSpace, "C")
	j, page = flight()
	d.do("block C A")
	d.r.finishPage(j, page, nil)
	if _, state := d.r.HasUnread(testSpace, "C"); state != Hydrating {
		t.Errorf("state %s", state)
	}
	d.pump()
	if got := d.unread("C", "s1"); got != 0 {
		t.Errorf("%d unread, want 0", got)
	}
	d.agree()
}

// A commit that takes a member's rows out and names one that memory has no scope for: all of
// them are read again, not that one.
func TestBlockAndJoinInOneCommit(t *testing.T) {
	d := newDesk(t, Config{}, append(room, "post s1 C", "create s2 channel")...)
	d.load("B")
	events := d.facts.play(parse(t, "block B A"), parse(t, "join s2 B"))
	if err := d.r.Apply(testSpace, d.facts.lsn, events); err != nil {
		t.Fatal(err)
	}
	d.pump()
	d.load("B")
	if got := d.unread("B", "s1"); got != 1 || !d.summary("B").Complete {
		t.Errorf("%d unread, %+v", got, d.summary("B"))
	}
	d.agree()
}

// covers: RT-420
func TestEviction(t *testing.T) {
	d := newDesk(t, Config{MaxEntries: 2}, append(room, "join s1 D", "post s1 A")...)
	d.load("A", "B")
	w := d.watch("C")
	d.load("D")
	s := d.r.Stats()
	if s.Evicted == 0 || s.Entries-d.space().st.watched > 2 {
		t.Errorf("%+v", s)
	}
	if d.space().st.memberNamed("C") == none || d.space().st.memberNamed("D") == none {
		t.Error("the watched or the newest member went")
	}
	// Who was let go is loaded again, and exact.
	d.do("post s1 B")
	d.load("A")
	if got := d.unread("A", "s1"); got != 1 {
		t.Errorf("%d unread, want 1", got)
	}
	d.agree()
	w.Close()
	// The slots of scopes go with the last row.
	for _, m := range []readstate.MemberID{"A", "B", "C", "D"} {
		d.r.Forget(testSpace, m)
	}
	if s := d.r.Stats(); s.Entries != 0 || s.Scopes != 0 || s.Members != 0 || s.Bytes != 0 {
		t.Errorf("after all are gone: %+v", s)
	}
}

// covers: RT-329, RT-064, RT-328
func TestPartlyLoadedMember(t *testing.T) {
	d := newDesk(t, Config{HydratePageSize: 1}, append(room, "create s2 channel", "join s2 B",
		"join s2 A", "post s1 A", "post s2 B")...)
	d.r.HasUnread(testSpace, "B")
	step := func() {
		j := d.r.queue.next()
		req, _ := d.r.beginPage(j)
		page, err := d.facts.Page(context.Background(), req)
		d.r.finishPage(j, page, err)
	}
	step()
	// s2, of the latest activity, has nothing unread; s1 is not there yet.
	if dot, state := d.r.HasUnread(testSpace, "B"); dot || state != Hydrating {
		t.Errorf("half loaded: %t, %s", dot, state)
	}
	if row := d.row("B", "s2"); row.State != Ready {
		t.Errorf("the row that is there: %+v", row)
	}
	step()
	if dot, state := d.r.HasUnread(testSpace, "B"); !dot || state != Ready {
		t.Errorf("a hit is final: %t, %s", dot, state)
	}
	step()
	if !d.summary("B").Complete {
		t.Error("not complete after the last page")
	}
	d.agree()
}

// All workspaces together stay within the bytes that are allowed, but for what was loaded just
// now; a dropped workspace takes none.
//
// covers: RT-420, RT-423
func TestMemoryBudget(t *testing.T) {
	const budget = 40_000
	r, err := newRuntime(Config{
		Source: crowd{scopes: 20}, MaxBytes: budget, Now: func() int64 { return 1 },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	for _, id := range []readstate.WorkspaceID{"w1", "w2"} {
		r.Open(id, 0)
		for m := range 100 {
			load(t, r, id, readstate.MemberID(fmt.Sprint("u", m)))
			for _, ws := range r.spaces.all() {
				r.step(ws) // as the runtime does by itself
			}
			if s := r.Stats(); s.Bytes > budget || s.Bytes == 0 || s.ReservedBytes < s.Bytes {
				t.Fatalf("%s: %d members take %d of %d bytes", id, m+1, s.Bytes, s.ReservedBytes)
			}
		}
	}
	if s := r.Stats(); s.Evicted < 100 || s.Members == 0 {
		t.Errorf("%+v", s)
	}
	r.Drop("w1")
	r.Drop("w2")
	if s := r.Stats(); s.Bytes != 0 {
		t.Errorf("%d bytes without a workspace", s.Bytes)
	}
}

// load carries a member's pages out.
func load(t *testing.T, r *Runtime, id readstate.WorkspaceID, m readstate.MemberID) {
	t.Helper()
	r.HasUnread(id, m)
	ws, err := r.workspace(id)
	if err != nil {
		t.Fatal(err)
	}
	for j := ws.jobs[m]; j != nil; j = ws.jobs[m] {
		req, _ := r.beginPage(r.queue.next())
		page, err := r.cfg.Source.Page(t.Context(), req)
		r.finishPage(j, page, err)
	}
}
