package unread

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
)

func sorted(words []string) []string {
	slices.Sort(words)
	return words
}

// covers: RT-121, RT-142, RT-373, RT-372
func TestDeltasReachTheAffectedAlone(t *testing.T) {
	d := newDesk(t, Config{}, append(room,
		"create s2 channel", "join s2 A", "join s2 B", "create s3 task", "join s3 A", "join s3 B",
		"join s3 C", "create s4 session A")...)
	d.load("A", "B", "C", "D")
	all := d.watch("A", "B", "C", "D")
	second := d.watch("B") // another device
	steps := []struct {
		line string
		want []string
	}{
		{"post s1 A", []string{"B s1", "C s1"}},
		{"post s1 A as=B", []string{"C s1"}},
		{"post s2 B", []string{"A s2"}},
		{"read s1 C 1 v=0", []string{"C s1"}},
		{"unread s1 B v=0", []string{"B s1"}},
		{"level s1 C none", []string{"C s1"}},
		{"post s1 B", []string{"A s1", "C s1"}},
		{"edit s1 3 @A", []string{"A s1"}},
		{"edit s1 3 @A everyone", []string{"A s1", "B s1", "C s1"}},
		{"remove s1 3", []string{"A s1", "B s1", "C s1"}},
		{"activity s1 A", []string{"B s1", "C s1"}},
		{"activity s1 A low", nil},
		{"post s1 A unreadable", []string{"B s1", "C s1"}},
		{"post s3 A to=B", []string{"B s3"}},
		{"activity s3 A to=C", []string{"C s3"}},
		{"post s4 A", []string{"A s4"}},
		{"hide s1 C", []string{"C s1 removed"}},
		{"post s1 A", []string{"B s1"}},
		{"leave s1 C", nil},
		{"show s1 C", nil},
		{"join s1 C", []string{"C s1"}},
		{"archive s1", []string{"A s1", "B s1", "C s1"}},
		{"trim s1 1", []string{"A s1", "B s1", "C s1"}},
		{"join s1 D", []string{"D s1"}},
	}
	for _, s := range steps {
		d.do(s.line)
		d.pump()
		var device []string
		for _, word := range s.want {
			if word[0] == 'B' {
				device = append(device, word)
			}
		}
		if got := sorted(d.told(all)); !slices.Equal(got, s.want) {
			t.Errorf("%q tells %v, want %v", s.line, got, s.want)
		}
		if got := d.told(second); !slices.Equal(got, device) {
			t.Errorf("%q tells B's other device %v, want %v", s.line, got, device)
		}
	}
	d.agree()
}

// A delta carries what a read would answer at that moment, and changes wait as one.
//
// covers: RT-372
func TestDeltasCoalesce(t *testing.T) {
	d := newDesk(t, Config{}, room...)
	w := d.watch("B")
	for range 5 {
		d.do("post s1 A @B")
	}
	<-w.Ready()
	deltas := w.Next(10)
	if len(deltas) != 1 || w.Next(10) != nil {
		t.Fatalf("%d deltas, want 1", len(deltas))
	}
	x := deltas[0]
	if x.Row.Values != (readstate.Values{Unread: 5, Attention: 5}) || x.Row.LSN != d.facts.lsn ||
		x.Summary != d.summary("B") || !x.Summary.Complete {
		t.Errorf("the delta is %+v", x)
	}
	if row := d.row("B", "s1"); row.Values != x.Row.Values || row.Presented != x.Row.Presented {
		t.Errorf("a read answers %+v", row)
	}
}

// Leaving a channel takes its threads along, and coming back brings none of the old epoch.
func TestThreadsFollowTheirChannel(t *testing.T) {
	d := newDesk(t, Config{}, append(room,
		"post s1 A", "create s2 thread s1 root=1", "post s2 B", "post s2 A")...)
	d.load("B")
	w := d.watch("B")
	d.do("leave s1 B")
	if got := sorted(d.told(w)); !slices.Equal(got, []string{"B s1 removed", "B s2 removed"}) {
		t.Errorf("leaving tells %v", got)
	}
	d.do("post s2 A")
	if got := d.told(w); got != nil {
		t.Errorf("a reply tells %v to one who left", got)
	}
	d.do("join s1 B")
	if _, err := d.r.Row(cold(), testSpace, "B", "s2"); !errors.Is(err, ErrNoRow) {
		t.Errorf("the thread of the old epoch answers %v", err)
	}
	d.do("post s2 A @B")
	if got := d.unread("B", "s2"); got != 1 {
		t.Errorf("%d unread in the thread followed anew, want 1", got)
	}
	d.do("archive s1")
	if row := d.row("B", "s2"); !row.Archived || row.Presented.Shown {
		t.Errorf("a thread of an archived channel: %+v", row)
	}
	d.agree()
}

// A scope with more watched members than one event may touch is worked off in steps, in which
// nobody is left out and nobody is told twice for nothing.
//
// covers: RT-414, RT-415, RT-421
func TestBigScopesAreToldInSteps(t *testing.T) {
	d := newDesk(t, Config{MaxFirePerTick: 2}, "create s1 channel", "join s1 A", "join s1 B",
		"join s1 C", "join s1 D", "join s1 E")
	d.load("A", "B", "C", "D", "E")
	w := d.watch("A", "B", "C", "D", "E")
	d.do("post s1 A")
	ws := d.space()
	if got := d.told(w); got != nil {
		t.Errorf("told at once: %v", got)
	}
	if _, settled := w.Settled(); settled {
		t.Error("settled while watches are still to be told")
	}
	var got []string
	for i := range 3 {
		if !ws.st.pending() {
			t.Fatalf("nothing pending before step %d", i)
		}
		d.r.step(ws)
		step := d.told(w)
		if len(step) > 2 {
			t.Errorf("one step tells %v", step)
		}
		got = append(got, step...)
	}
	for ws.st.pending() {
		d.r.step(ws)
	}
	if want := []string{"B s1", "C s1", "D s1", "E s1"}; !slices.Equal(sorted(got), want) {
		t.Errorf("told %v, want %v", got, want)
	}
	if at, settled := w.Settled(); !settled || at != d.facts.lsn {
		t.Errorf("settled at %d: %t", at, settled)
	}
}

// A level that ends changes rows although nothing is committed.
func TestUntilTellsWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := bubble(t, Config{})
		close(g.open)
		g.do(t, r, "create s2 thread s1 root=1", "post s2 B", "level s1 B none until=60",
			"post s1 A", "post s2 A")
		w, err := r.Watch(testSpace, []readstate.MemberID{"B", "C"})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		synctest.Wait()
		if dot, state := r.HasUnread(testSpace, "B"); dot || state != Ready {
			t.Fatalf("dot %t, %s", dot, state)
		}
		for w.Next(10) != nil {
			continue
		}
		time.Sleep(60*time.Second - time.Millisecond)
		synctest.Wait()
		if got := w.Next(10); got != nil {
			t.Errorf("told too early: %+v", got)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		deltas := w.Next(10)
		if len(deltas) != 2 {
			t.Fatalf("%d deltas, want channel and thread: %+v", len(deltas), deltas)
		}
		for _, x := range deltas {
			if x.Member != "B" || !x.Row.Presented.Shown || x.Row.Level != readstate.LevelAll {
				t.Errorf("told %+v", x)
			}
		}
	})
}

// A watched member whose channel is new to the process hears of it once its page is there.
func TestNewScopeOfAWatchedMember(t *testing.T) {
	d := newDesk(t, Config{}, room...)
	w := d.watch("B", "E")
	d.do("create s2 channel", "join s2 B")
	if s, _ := d.r.Summary(cold(), testSpace, "B"); s.Complete {
		t.Error("complete although a row is missing")
	}
	if _, settled := w.Settled(); settled {
		t.Error("settled although a row is being loaded")
	}
	d.pump()
	if got := d.told(w); !slices.Equal(got, []string{"B s2"}) {
		t.Errorf("told %v", got)
	}
	if !d.summary("B").Complete {
		t.Error("not complete after the page")
	}
	d.do("join s1 E") // the slot is there: no page is needed
	if got := d.told(w); !slices.Equal(got, []string{"E s1"}) {
		t.Errorf("told %v", got)
	}
}

// A block has the member's rows read again; the stream hears of all of them once they are back.
func TestBlockOfAWatchedMember(t *testing.T) {
	d := newDesk(t, Config{}, append(room, "post s1 A", "post s1 C")...)
	w := d.watch("B")
	d.do("block B A")
	if got := d.told(w); got != nil {
		t.Errorf("told %v while the rows are being read", got)
	}
	if _, state := d.r.HasUnread(testSpace, "B"); state != Hydrating {
		t.Errorf("state %s", state)
	}
	d.pump()
	select {
	case <-w.Ready():
	default:
		t.Error("not woken")
	}
	if got := d.told(w); !slices.Equal(got, []string{"B s1"}) {
		t.Errorf("told %v", got)
	}
	if got := d.unread("B", "s1"); got != 1 {
		t.Errorf("%d unread, want 1", got)
	}
	d.do("unblock B A")
	if got := d.told(w); !slices.Equal(got, []string{"B s1"}) {
		t.Errorf("unblock tells %v", got)
	}
	d.agree()
}

// Whatever happens to the rows while they are read again after a block, the stream hears of it.
func TestChangesDuringAReload(t *testing.T) {
	d := newDesk(t, Config{}, append(room, "post s1 A")...)
	w := d.watch("B")
	d.do("block B A", "leave s1 B")
	for range 2 {
		if got := d.told(w); got != nil {
			t.Errorf("told %v while the rows are being read", got)
		}
	}
	if _, settled := w.Settled(); settled {
		t.Error("settled with something held back")
	}
	for len(w.Ready()) > 0 {
		<-w.Ready()
	}
	d.pump()
	select {
	case <-w.Ready():
	default:
		t.Error("not woken once the rows are there")
	}
	if got := d.told(w); !slices.Equal(got, []string{"B s1 removed"}) {
		t.Errorf("told %v", got)
	}
	d.do("block B C", "create s2 channel", "join s2 B")
	d.pump()
	if got := d.told(w); !slices.Equal(got, []string{"B s2"}) {
		t.Errorf("told %v of a scope that is new since", got)
	}
	if _, settled := w.Settled(); !settled {
		t.Error("not settled")
	}
	d.do("block B D", "post s2 A")
	w.Remove("B")
	d.pump()
	if got := d.told(w); got != nil {
		t.Errorf("told %v of a member who is watched no more", got)
	}
}

func TestWatchMembersComeAndGo(t *testing.T) {
	d := newDesk(t, Config{MaxWatchMembers: 2, MaxEntries: 1}, room...)
	w := d.watch("A", "B")
	if err := w.Add("C"); !errors.Is(err, ErrBudget) {
		t.Errorf("a third member: %v", err)
	}
	d.do("post s1 C")
	w.Remove("A")
	if got := d.told(w); !slices.Equal(got, []string{"B s1"}) {
		t.Errorf("told %v after A was removed", got)
	}
	if err := w.Add("C"); err != nil {
		t.Errorf("after a removal: %v", err)
	}
	d.pump()
	d.do("post s1 A")
	if got := sorted(d.told(w)); !slices.Equal(got, []string{"B s1", "C s1"}) {
		t.Errorf("told %v", got)
	}
	if d.r.Forget(testSpace, "B") {
		t.Error("a watched member was let go")
	}
	w.Close()
	w.Close()
	d.do("post s1 A")
	if got := d.told(w); got != nil {
		t.Errorf("a closed watch tells %v", got)
	}
	if s := d.r.Stats(); s.Watches != 0 {
		t.Errorf("%d watches after Close", s.Watches)
	}
	if err := d.space().st.sound(); err != nil {
		t.Error(err)
	}
}

// A member who is watched before there is one is loaded when they appear.
func TestWatchOfAMemberToCome(t *testing.T) {
	d := newDesk(t, Config{}, room...)
	w := d.watch("F") // unknown to the source
	if s := d.r.Stats(); s.Members != 0 || s.Hydrating != 0 {
		t.Errorf("loaded an unknown member: %+v", s)
	}
	lsn := d.facts.lsn + 1
	d.facts.lsn = lsn
	err := d.r.Apply(testSpace, lsn, []readstate.Event{
		readstate.PrincipalEvent{Info: readstate.MemberInfo{Key: 6, ID: "F", Active: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := d.r.Stats(); s.Hydrating != 1 {
		t.Errorf("not being loaded: %+v", s)
	}
	w.Close()
}
