package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/relay/frontier"
	"github.com/tidemark-im/tidemark/relay/nostrx"
	"github.com/tidemark-im/tidemark/relay/relaytest"
)

// A read is saved before anything is signed for it, and published encrypted to the viewer alone.
// covers: RL-011, RL-303, RL-421, RL-429, RL-451
func TestPublish(t *testing.T) {
	w := newWorld(t)
	p := w.device(w.path)
	r := act(t, p.Book, "general", secs(1), MessageKey(1), secs(2))
	if !r.Waiting() || r.Pending != nil || len(w.publications()) != 0 {
		t.Fatalf("before publication: %+v", r)
	}
	w.flush(p, nil)
	r = w.load(p)
	if r.Waiting() || r.Accepted != r.Revision || len(w.publications()) != 1 {
		t.Errorf("%+v, %d publications", r, len(w.publications()))
	}
	held, times := w.held()
	if !maps.Equal(held, map[Key]Time{"general": Time(secs(1))}) || times[0] != start {
		t.Errorf("%v at %v", held, times)
	}
	e := w.srv.Stored(nostrx.Filter{Kinds: []int{nostrx.KindAppData}})[0]
	if strings.Contains(string(e.Encode()), "general") {
		t.Error("a key stands in clear")
	}
	if _, err := keyOf(t, 2).Open(e.Content); err == nil {
		t.Error("another key opens it")
	}
	w.flush(p, nil)
	if n := len(w.publications()); n != 1 {
		t.Errorf("%d publications for one read", n)
	}
}

// Times of one coordinate only rise, and lead the clock by a minute at most.
// covers: RL-448, RL-454
func TestPublicationTimes(t *testing.T) {
	w := newWorld(t)
	p := w.device(w.path)
	for i := range 3 {
		act(t, p.Book, "general", secs(i))
		w.flush(p, nil)
		if _, times := w.held(); times[0] != start+int64(i) {
			t.Fatalf("publication %d is of the second %d", i, times[0]-start)
		}
	}
	lead := int64(MaxLead.Seconds())
	if _, err := p.Book.change(t.Context(), "set up", func(r *Record) (bool, error) {
		r.LastCreatedAt = start + lead - 1
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	act(t, p.Book, "general", secs(90))
	w.flush(p, nil)
	if _, times := w.held(); times[0] != start+lead {
		t.Errorf("the last that is allowed is of the second %d", times[0]-start)
	}
	act(t, p.Book, "general", secs(99))
	w.flush(p, ErrClockAhead)
	if r := w.load(p); !r.Waiting() || r.Pending != nil {
		t.Errorf("%+v", r)
	}
	w.pass(2 * time.Second)
	w.flush(p, nil)
	w.pass(time.Hour)
	act(t, p.Book, "general", secs(100))
	w.flush(p, nil)
	if _, times := w.held(); times[0] != start+3602 {
		t.Errorf("%v", times)
	}
}

// An answer that was lost leaves the event as it is: it is sent again first, byte for byte, and only
// then comes what was read since, later by a second at least.
// covers: RL-437, RL-438, RL-445
func TestLostAnswer(t *testing.T) {
	w := newWorld(t)
	p := w.device(w.path)
	act(t, p.Book, "general", secs(1))
	for _, c := range []struct {
		at    relaytest.Point
		fault relaytest.Fault
		want  error
	}{
		{relaytest.AtReceipt, relaytest.Cut, nil}, {relaytest.AtEvent, relaytest.Fail, nil}, {relaytest.AtEvent, relaytest.Refuse, ErrRefused},
	} {
		w.failing(c.at, c.fault)
		err := p.Flush(t.Context())
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.fault, err)
		}
		w.pass(time.Second)
	}
	if r := w.load(p); r.Pending == nil || r.Accepted != 0 {
		t.Fatalf("%+v", r)
	}
	again := w.device(w.path) // after a restart
	act(t, again.Book, "general", secs(2))
	w.guard(nil)
	w.flush(again, nil)
	sent := w.publications()
	if len(sent) != 5 || sent[0] != sent[1] || sent[0] != sent[2] || sent[0] != sent[3] || sent[4] == sent[0] {
		t.Errorf("sent %v", sent)
	}
	if held, times := w.held(); held["general"] != Time(secs(2)) || times[0] <= start {
		t.Errorf("%v, %v", held, times)
	}
}

// A receipt is not the end: the relay must show what it took.
// covers: RL-450, RL-451
func TestUnobserved(t *testing.T) {
	w := newWorld(t)
	p := w.device(w.path)
	act(t, p.Book, "general", secs(1))
	w.srv.Switch(relaytest.LoseEvents, true)
	w.flush(p, ErrUnobserved)
	first := w.load(p)
	if first.Pending == nil || first.Accepted != 0 {
		t.Fatalf("%+v", first)
	}
	w.srv.Switch(relaytest.LoseEvents, false)
	w.flush(p, nil)
	if sent := w.publications(); len(sent) != 2 || sent[0] != sent[1] {
		t.Errorf("sent %v", sent)
	}
	// A relay that lost it later gets it again.
	r := w.load(p)
	if r, err := p.Book.Observe(t.Context(), Time(start), nil, r.Slots(), Evidence{}); err != nil || !r.Waiting() {
		t.Errorf("%v, %+v", err, r)
	}
}

// An event that became too old is renewed once, after a look whether that is needed; the old one stays
// saved until then.
// covers: RL-439, RL-440, RL-441, RL-442, RL-443, RL-444, RL-446, RL-447, RL-449
func TestRenewal(t *testing.T) {
	for age, renewed := range map[time.Duration]bool{
		OldAfter: false, OldAfter + time.Second: true, -time.Second: false, time.Hour: true,
	} {
		w := newWorld(t)
		p := w.device(w.path)
		act(t, p.Book, "general", secs(1))
		w.failing(relaytest.AtEvent, relaytest.Fail)
		if err := p.Flush(t.Context()); err == nil {
			t.Fatal("it succeeded")
		}
		old := w.load(p).Pending.Event.ID
		w.pass(age)
		w.failing(relaytest.AtEvent, relaytest.RefuseTime)
		w.flush(p, ErrRefused)
		r := w.load(p)
		want := 2
		if renewed {
			want = 3 // the old one, and one replacement
		}
		if n := len(w.publications()); n != want || (r.Pending.Event.ID != old) != renewed || r.Accepted != 0 {
			t.Errorf("%s: %d publications, pending %s, was %s", age, n, r.Pending.Event.ID, old)
		}
		w.guard(nil)
		if renewed {
			w.flush(p, nil)
			if held, times := w.held(); held["general"] != Time(secs(1)) || times[0] != start+int64(age.Seconds()) {
				t.Errorf("%s: %v at %v", age, held, times)
			}
		}
	}
	// Refused for something else, it stays as it is, however old.
	other := newWorld(t)
	q := other.device(other.path)
	act(t, q.Book, "general", secs(1))
	other.failing(relaytest.AtEvent, relaytest.Refuse)
	other.flush(q, ErrRefused)
	other.pass(time.Hour)
	other.flush(q, ErrRefused)
	if sent := other.publications(); len(sent) != 2 || sent[0] != sent[1] {
		t.Errorf("refused for something else: sent %v", sent)
	}
	// One replacement is all that a flush makes, even if that becomes old on the way.
	other.guard(func(o relaytest.Occasion) relaytest.Fault {
		if o.Point == relaytest.AtEvent {
			other.pass(time.Hour)
			return relaytest.RefuseTime
		}
		return relaytest.None
	})
	other.flush(q, ErrRefused)
	if sent := other.publications(); len(sent) != 4 {
		t.Errorf("%d publications", len(sent)-2)
	}
	// The relay has it already: nothing new is signed.
	w := newWorld(t)
	p := w.device(w.path)
	act(t, p.Book, "general", secs(1))
	w.failing(relaytest.AtReceipt, relaytest.Cut)
	if err := p.Flush(t.Context()); err == nil {
		t.Fatal("it succeeded")
	}
	w.pass(time.Hour)
	w.guard(nil) // refused by the relay's own clock
	w.flush(p, nil)
	if sent := w.publications(); len(sent) != 2 || sent[0] != sent[1] {
		t.Errorf("sent %v", sent)
	}
	if r := w.load(p); r.Waiting() {
		t.Errorf("%+v", r)
	}
}

// Two processes with one journal publish one after the other, and one of them has nothing left to do.
// covers: RL-416
func TestTwoPublishers(t *testing.T) {
	w := newWorld(t)
	one, two := w.device(w.path), w.device(w.path)
	act(t, one.Book, "a", secs(2))
	act(t, two.Book, "b", secs(3))
	inside, most := 0, 0
	w.guard(func(o relaytest.Occasion) relaytest.Fault {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch o.Point {
		case relaytest.AtEvent:
			inside++
			most = max(most, inside)
		case relaytest.AtReceipt:
			inside--
		}
		return relaytest.None
	})
	var flushing sync.WaitGroup
	for _, p := range []*Publisher{one, two} {
		flushing.Go(func() {
			if err := p.Flush(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	flushing.Wait()
	if held, _ := w.held(); held["a"] != Time(secs(2)) || held["b"] != Time(secs(3)) || most != 1 || len(w.publications()) != 1 {
		t.Errorf("%v, %d at once, %d publications", held, most, len(w.publications()))
	}

	// The lock of one who does not end is not waited for without end.
	release, err := takeLock(t.Context(), one.Book.partition.lockPath(one.Book.journal.path))
	if err != nil {
		t.Fatal(err)
	}
	act(t, one.Book, "a", secs(9))
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := two.Flush(short); !errors.Is(err, ErrBusy) {
		t.Errorf("%v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	w.flush(two, nil)
}

// What is saved while a publication is under way is published by the same flush.
func TestSavedMeanwhile(t *testing.T) {
	w := newWorld(t)
	p := w.device(w.path)
	act(t, p.Book, "general", secs(1))
	var once sync.Once
	w.guard(func(o relaytest.Occasion) relaytest.Fault {
		if o.Point == relaytest.AtReceipt {
			once.Do(func() {
				if _, err := p.Book.Act(context.Background(), Evidence{}, advancing("dev", secs(5))); err != nil {
					t.Error(err)
				}
			})
		}
		return relaytest.None
	})
	w.flush(p, nil)
	if held, _ := w.held(); held["dev"] != Time(secs(5)) || w.load(p).Waiting() {
		t.Errorf("%v", held)
	}
}

// Two installations share a relay: each publishes its own frontiers only, and knows those of both.
// covers: RL-430, RL-455
func TestTwoInstallations(t *testing.T) {
	w := newWorld(t)
	one, two := w.device(w.path), w.device(filepath.Join(t.TempDir(), "other.db"))
	act(t, one.Book, "a", secs(2), "both", secs(5))
	act(t, two.Book, "b", secs(3), "both", secs(4))
	w.flush(one, nil)
	w.flush(two, nil)
	events := w.srv.Stored(nostrx.Filter{Kinds: []int{nostrx.KindAppData}})
	seen, err := Decode(w.key, events)
	if err != nil || len(seen) != 2 {
		t.Fatalf("%v, %d slots", err, len(seen))
	}
	for _, o := range seen {
		if len(o.Blob.State.Frontiers) != 2 {
			t.Errorf("published %v", o.Blob.State.Frontiers)
		}
	}
	for _, p := range []*Publisher{one, two} {
		r, err := p.Book.Observe(t.Context(), start, seen, p.mustSlots(t), Evidence{})
		if err != nil || r.Waiting() {
			t.Errorf("%v, %+v", err, r)
		}
		want := map[Key]Time{"a": Time(secs(2)), "b": Time(secs(3)), "both": Time(secs(5))}
		if !maps.Equal(r.State.Frontiers, want) {
			t.Errorf("%v", r.State.Frontiers)
		}
	}
	if n := len(w.publications()); n != 2 {
		t.Errorf("%d publications", n)
	}
}

func (p *Publisher) mustSlots(t *testing.T) []string {
	t.Helper()
	r, err := p.Book.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r.Slots()
}

// A journal that was restored from a copy publishes nothing lower than the relay holds.
// covers: RL-458
func TestRestoredJournal(t *testing.T) {
	w := newWorld(t)
	p := w.device(w.path)
	act(t, p.Book, "general", secs(1))
	w.flush(p, nil)
	old, err := w.load(p).encode()
	if err != nil {
		t.Fatal(err)
	}
	act(t, p.Book, "general", secs(50), "dev", secs(60))
	w.flush(p, nil)
	if _, err := p.Book.journal.db.ExecContext(t.Context(), `UPDATE read_state SET record = ?`, old); err != nil {
		t.Fatal(err)
	}
	act(t, p.Book, "new", secs(3))
	w.flush(p, nil)
	want := map[Key]Time{"general": Time(secs(50)), "dev": Time(secs(60)), "new": Time(secs(3))}
	if held, _ := w.held(); !maps.Equal(held, want) {
		t.Errorf("%v", held)
	}
}

// An own slot that bears marks of a client that synchronises them is left alone; so is one that cannot
// be read.
// covers: RL-533, RL-550
func TestRefusesToOverwrite(t *testing.T) {
	w := newWorld(t)
	p := w.device(w.path)
	r := act(t, p.Book, "general", secs(1))
	for name, text := range map[string]string{
		"marks":   fmt.Sprintf(`{"v":1,"client_id":%q,"contexts":{"ov_c:x":4}}`, r.ClientID),
		"no blob": `{"v":9}`,
	} {
		sealed, err := w.key.Seal(text)
		if err != nil {
			t.Fatal(err)
		}
		e, err := w.key.Sign(template(r.Slot, sealed, w.clock().Unix()))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.srv.Keep(e); err != nil {
			t.Fatal(err)
		}
		err = p.Flush(t.Context())
		if want := map[string]error{"marks": frontier.ErrOverride, "no blob": frontier.ErrBlob}[name]; !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
		if r := w.load(p); r.Pending != nil || !r.Waiting() || len(w.publications()) != 0 {
			t.Errorf("%s: %+v", name, r)
		}
		w.pass(time.Second)
	}
}

// A slot that somebody else uses is given up, and what was read is published in another one.
func TestSlotConflict(t *testing.T) {
	w := newWorld(t)
	p := w.device(w.path)
	r := act(t, p.Book, "general", secs(1))
	sealed, err := w.key.Seal(`{"v":1,"client_id":"somebody else","contexts":{"theirs":7}}`)
	if err != nil {
		t.Fatal(err)
	}
	e, err := w.key.Sign(template(r.Slot, sealed, start))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.srv.Keep(e); err != nil {
		t.Fatal(err)
	}
	w.flush(p, nil)
	held, _ := w.held()
	if after := w.load(p); after.Slot == r.Slot || held["general"] != Time(secs(1)) || held["theirs"] != 7 {
		t.Errorf("slot %s, %v", after.Slot, held)
	}
}

// Nothing is sent when a later slot would bring the relay to where it refuses snapshots.
// covers: RL-469, RL-472
func TestNoRoom(t *testing.T) {
	w := newWorld(t)
	p := w.device(w.path)
	plan := frontier.Plan{Advance: make(map[Key]Time)}
	for i := range 900 { // two slots
		plan.Advance[Key(fmt.Sprintf("01234567-89ab-cdef-0123-%012d", i))] = Time(secs(i % 90))
	}
	if _, err := p.Book.Act(t.Context(), Evidence{}, func(Record) (frontier.Plan, error) { return plan, nil }); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		room Room
		want error
	}{
		{Room{Events: nostrx.MaxSnapshotEvents - 1}, ErrSlots},
		{Room{Bytes: nostrx.MaxSnapshotBytes - 60_000}, ErrSlots},
		{Room{Events: nostrx.MaxSnapshotEvents - 2, Bytes: nostrx.MaxSnapshotBytes - 150_000}, nil},
	} {
		p.Room = func() (Room, bool) { return c.room, true }
		w.flush(p, c.want)
		if n := len(w.publications()); c.want != nil && n != 0 {
			t.Errorf("%+v: %d publications", c.room, n)
		}
		// The slots are saved before anything stands in them.
		if r := w.load(p); len(r.Spill) != 1 || r.Waiting() != (c.want != nil) {
			t.Errorf("%+v: %d spill slots", c.room, len(r.Spill))
		}
	}
	if held, times := w.held(); len(held) != 900 || len(times) != 2 {
		t.Errorf("%d keys in %d slots", len(held), len(times))
	}
	// Of two slots, only the one that lacks something is sent again.
	act(t, p.Book, "01234567-89ab-cdef-0123-000000000007", secs(95))
	w.flush(p, nil)
	if n := len(w.publications()); n != 3 {
		t.Errorf("%d publications", n)
	}
}

// The sizes that are counted on beforehand are those that come.
func TestSealedSize(t *testing.T) {
	key := keyOf(t, 1)
	for _, n := range []int{1, 31, 32, 33, 64, 65, 255, 256, 257, 1000, 4097, 40_960, 65_535} {
		sealed, err := key.Seal(strings.Repeat("x", n))
		if err != nil || len(sealed) != sealedSize(n) {
			t.Errorf("%d bytes become %d, counted on %d (%v)", n, len(sealed), sealedSize(n), err)
		}
	}
}
