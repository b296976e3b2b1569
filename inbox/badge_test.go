package inbox

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// The number is that of accounts with something new since the overview was acknowledged: not of
// messages, not of conversations.
//
// covers: IN-001 IN-002 IN-003 IN-004 IN-005 IN-009 IN-010 IN-012 IN-013
func TestBadgeCountsSenders(t *testing.T) {
	w := newWorld(t)
	b := w.inbox()
	w.wantBadge(b, "H0 A0 P0 tail 0: ")
	w.send("Bo")
	w.send("Bo")
	w.send("Cy")
	w.wantBadge(b, "H3 A0 P0 tail 3: Bo Cy")
	w.ack(b, w.open1(b).Snapshot)
	w.wantBadge(b, "H3 A3 P0 tail 3: ")
	w.scope("d1", readstate.DM, "Ada", "Bo")
	w.scope("d2", readstate.DM, "Ada", "Bo")
	for range 50 {
		w.post("d1", "Bo")
		w.post("d2", "Bo")
	}
	w.wantBadge(b, "H103 A3 P0 tail 103: Bo")
	name := "Bo of old"
	_, err := w.lane.PutMember(t.Context(), space, facts.PutMember{ID: "Bo", DisplayName: &name})
	w.ok(err)
	w.wantBadge(b, "H103 A3 P0 tail 103: Bo")
}

// A dm, a mention, a delivery and a send all count, and nothing of the badge touches how far anybody
// has read.
//
// covers: IN-006 IN-007 IN-008
func TestBadgeIsNotReading(t *testing.T) {
	w := newWorld(t)
	b := w.inbox()
	w.scope("d", readstate.DM, "Ada", "Bo")
	w.scope("c", readstate.Channel, "Ada", "Cy")
	w.scope("t", readstate.Task, "Ada", "Dee")
	_, err := w.lane.SetFollow(t.Context(), space, facts.SetFollow{Scope: "t", Member: "Ada", Following: true})
	w.ok(err)
	w.post("d", "Bo")
	w.post("c", "Cy", "Ada")
	w.post("t", "Dee")
	w.wantBadge(b, "H3 A0 P0 tail 3: Bo Cy Dee")
	reads := `SELECT scope, member, read_revision, e, manual_unread, state_lsn FROM conversation_member_states`
	before := len(w.query("SELECT * FROM operations"))
	rows := w.query(reads)
	w.ack(b, w.open1(b).Snapshot)
	w.wantBadge(b, "H3 A3 P0 tail 3: ")
	for i, row := range w.query(reads) {
		for j := range row {
			if row[j] != rows[i][j] {
				t.Errorf("an acknowledgement changed a read state: %v, %v", rows[i], row)
			}
		}
	}
	if after := len(w.query("SELECT * FROM operations")); after != before {
		t.Error("an acknowledgement wrote a receipt of the lane")
	}
	one := readstate.Revision(1)
	_, err = w.lane.MarkRead(t.Context(), space, facts.MarkRead{
		Scope: "d", Member: "Ada", Revision: &one, Trusted: true,
	})
	w.ok(err)
	w.post("d", "Bo")
	w.wantBadge(b, "H4 A3 P0 tail 4: Bo")
}

// Who is not active or is blocked does not count, from the next read on and without any change of
// positions; and counts again afterwards.
//
// covers: IN-020 IN-021 IN-022
func TestBadgeEligibility(t *testing.T) {
	w := newWorld(t)
	b := w.inbox()
	w.send("Bo")
	w.send("Dee")
	for _, projected := range []string{"P0 tail 2", "P2 tail 0"} {
		w.member("Dee", false)
		w.wantBadge(b, "H2 A0 "+projected+": Bo")
		if o := w.open1(b); len(o.Senders) != 1 || len(o.Items) != 1 || o.Items[0].Sender != "Bo" {
			t.Errorf("the overview shows %+v", o)
		}
		w.member("Dee", true)
		w.block("Ada", "Bo", true)
		w.wantBadge(b, "H2 A0 "+projected+": Dee")
		w.block("Ada", "Bo", false)
		w.wantBadge(b, "H2 A0 "+projected+": Bo Dee")
		w.work(b)
	}
	if got := w.maxima(); got != "Bo1 Dee2" {
		t.Errorf("positions are %s", got)
	}
	_, err := w.lane.EraseMember(t.Context(), space, facts.EraseMember{Member: "Dee"})
	w.ok(err)
	w.wantBadge(b, "H2 A0 P2 tail 0: Bo")
	if got := w.maxima(); got != "Bo1" {
		t.Errorf("after the erasure positions are %s", got)
	}
}

// The number is the same whatever P is, and each step only moves P and the tail.
//
// covers: IN-066 IN-067 IN-071 IN-072 IN-073 IN-074 IN-075 IN-076 IN-086 IN-087
func TestBadgeAtEveryP(t *testing.T) {
	w := newWorld(t)
	b := w.inbox()
	w.send("Bo")
	w.send("Cy")
	w.ack(b, w.open1(b).Snapshot)
	w.send("Dee")
	w.send("Bo")
	for _, want := range []string{
		"H4 A2 P0 tail 4: Bo Dee", "H4 A2 P1 tail 3: Bo Dee", "H4 A2 P2 tail 2: Bo Dee",
		"H4 A2 P3 tail 1: Bo Dee", "H4 A2 P4 tail 0: Bo Dee", "H4 A2 P4 tail 0: Bo Dee",
	} {
		w.wantBadge(b, want)
		w.step(b)
	}
	if got := w.maxima(); got != "Bo4 Cy2 Dee3" {
		t.Errorf("positions are %s", got)
	}
	items := 0
	w.count = func(query string) {
		if strings.Contains(query, "GROUP BY p.sender") || strings.Contains(query, "ORDER BY p.position") {
			items++
		}
	}
	w.badge(b)
	if w.count = nil; items != 0 {
		t.Errorf("%d statements over items with an empty tail", items)
	}
}

// A badge is of one moment: what is committed while it is read comes with the next one, and no P is
// mixed with greatest positions of another.
//
// covers: IN-014 IN-015 IN-069
func TestBadgeIsOfOneMoment(t *testing.T) {
	w := newWorld(t)
	b := w.inbox()
	w.send("Bo")
	w.work(b)
	w.send("Cy")
	looked := false
	w.count = func(query string) {
		if looked || !strings.Contains(query, "inbox_projections") {
			return
		}
		looked = true // right before P is read, in the snapshot that H was read from
		w.send("Dee")
		w.work(b)
	}
	w.wantBadge(b, "H2 A0 P1 tail 1: Bo Cy")
	w.count = nil
	if !looked {
		t.Fatal("nothing happened meanwhile")
	}
	w.wantBadge(b, "H3 A0 P3 tail 0: Bo Cy Dee")
}

// A read writes nothing, and never answers with a number that a gap may have made too small.
//
// covers: IN-078 IN-079 IN-092 IN-153
func TestBadgeFindsGaps(t *testing.T) {
	w := newWorld(t)
	b := w.inbox()
	for range 4 {
		w.send("Bo")
	}
	before := w.all()
	w.badge(b)
	if w.all() != before {
		t.Error("a read has written something")
	}
	w.exec(`DELETE FROM inbox_positions WHERE position = 3`)
	gap := func(what string) {
		t.Helper()
		if out, err := b.Badge(t.Context(), ada); !errors.Is(err, ErrGap) || out.Senders != nil {
			t.Errorf("%s: %+v, %v", what, out, err)
		}
		if _, err := b.Open(t.Context(), ada); !errors.Is(err, ErrGap) {
			t.Errorf("%s: open: %v", what, err)
		}
	}
	gap("in the tail")
	w.work(b)
	if got := w.query(`SELECT * FROM inbox_projections`); len(got) != 0 || b.Stats().Gaps != 1 {
		t.Errorf("it was projected: %v", got)
	}
	w.exec(`UPDATE inboxes SET accepted = 5`)
	w.exec(`INSERT INTO inbox_positions SELECT member, 3, 0, 3, sender, 0, 1, 0 FROM inbox_positions WHERE position = 4`)
	gap("at the head")
	w.exec(`UPDATE inboxes SET accepted = 4`)
	w.wantBadge(b, "H4 A0 P0 tail 4: Bo")
	w.exec(`INSERT INTO inbox_projections SELECT member, 9 FROM inboxes`)
	gap("a projection of more than there is")
	w.exec(`UPDATE inbox_projections SET through = 4`)
	w.exec(`INSERT INTO inbox_sender_maxima SELECT member, sender, 4 FROM inbox_positions WHERE position = 4`)
	w.exec(`DELETE FROM inbox_positions WHERE position = 4`)
	gap("below P, where it counts")
}

// A greatest position counts only while an item vouches for it.
//
// covers: IN-158
func TestBadgeNeedsVouchers(t *testing.T) {
	w := newWorld(t)
	b := w.inbox()
	w.send("Bo")
	w.send("Cy")
	w.work(b)
	w.exec(`UPDATE inboxes SET floor = 1`)
	w.exec(`DELETE FROM inbox_positions WHERE position = 1`)
	w.wantBadge(b, "H2 A0 P2 tail 0: Cy")
}

// A tail that is too long is never left out: the read waits for the worker, then says so.
//
// covers: IN-077 IN-089
func TestBadgeWaitsForTheWorker(t *testing.T) {
	w := newWorld(t)
	b := w.inbox(func(o *Options) { o.Limits.TailRows, o.Limits.BatchRows = 3, 2 })
	for range 5 {
		w.send("Bo")
	}
	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() {
		_, err := b.Badge(soon, ada)
		if !errors.Is(err, ErrBehind) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nobody works: %v", err)
		}
	})
	both.Go(func() {
		if _, err := b.Open(soon, ada); !errors.Is(err, ErrBehind) {
			t.Errorf("nobody works: %v", err)
		}
	})
	both.Wait()
	if n := len(w.query("SELECT * FROM inbox_snapshots")); n != 0 {
		t.Errorf("%d snapshots", n)
	}
	looked, once := make(chan struct{}), sync.Once{}
	w.count = func(query string) {
		if strings.Contains(query, "inbox_projections") {
			once.Do(func() { close(looked) })
		}
	}
	got := make(chan string, 1)
	go func() {
		out, err := b.Badge(t.Context(), ada)
		if err != nil {
			got <- err.Error()
			return
		}
		got <- textOf(out)
	}()
	<-looked // too long a tail, unless the worker has moved since
	w.work(b)
	if text := <-got; text != "H5 A0 P5 tail 0: Bo" && text != "H5 A0 P2 tail 3: Bo" && text != "H5 A0 P4 tail 1: Bo" {
		t.Errorf("after the worker: %s", text)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := b.Badge(gone, ada); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who left: %v", err)
	}
}

// Retracting an item lets its sender count by what is left, wherever P is, and never revives what was
// acknowledged.
func TestBadgeAfterRetractions(t *testing.T) {
	for _, projected := range []bool{false, true} {
		w := newWorld(t)
		b := w.inbox()
		w.scope("d", readstate.DM, "Ada", "Bo", "Cy")
		w.post("d", "Bo")
		w.ack(b, w.open1(b).Snapshot)
		older, newer, only := w.post("d", "Bo"), w.post("d", "Bo"), w.post("d", "Cy")
		w.remove("d", only)
		if projected {
			w.work(b)
		}
		check := func(want string) {
			t.Helper()
			got := w.badge(b)
			if _, who, _ := strings.Cut(got, ": "); who != want {
				t.Errorf("projected %t: %s, want %s", projected, got, want)
			}
		}
		check("Bo")
		w.remove("d", newer)
		check("Bo")
		w.remove("d", older)
		check("")
		if projected && w.maxima() != "Bo1" {
			t.Errorf("positions are %s", w.maxima())
		}
		w.post("d", "Cy")
		check("Cy")
		if got := w.badge(b); !strings.HasPrefix(got, "H5 A1") {
			t.Errorf("positions: %s", got)
		}
	}
}

// A store that is gone is unavailable, and never zero.
//
// covers: IN-080 IN-081
func TestStoreGone(t *testing.T) {
	w := newWorld(t)
	b := w.inbox()
	w.send("Bo")
	snapshot := w.open1(b).Snapshot
	w.close()
	ctx := t.Context()
	for what, err := range map[string]error{
		"badge": second(b.Badge(ctx, ada)), "open": second(b.Open(ctx, ada)),
		"acknowledge": second(b.Acknowledge(ctx, ada, Ack{OpID: "x", Snapshot: snapshot})),
	} {
		if !errors.Is(err, facts.ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
