package evidence

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/relay/frontier"
	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// newWindow is a window of the viewer, member of the channels c and d and of the dm x.
func newWindow() *Window {
	w := New(who(viewer))
	w.Trust(who(relay), nil)
	w.SetRoster([]Channel{{ID: "c", Type: "stream"}, {ID: "d", Type: "stream"}, {ID: "x", Type: "dm"}})
	return w
}

func add(t *testing.T, w *Window, events ...nostrx.Event) int {
	t.Helper()
	n, err := w.Add(events...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func messageOf(t *testing.T, w *Window, n int) frontier.Message {
	t.Helper()
	m, ok := w.Message(id(n))
	if !ok {
		t.Fatalf("message %d is not here", n)
	}
	return m
}

func replyTo(n, parent, root int) nostrx.Event { return event(n, answers(parent, root)...) }

func about(n, kind, author int, targets ...int) nostrx.Event {
	e := nostrx.Event{ID: nostrx.EventID(id(n)), PubKey: who(author), Kind: kind, CreatedAt: int64(n)}
	for _, target := range targets {
		e.Tags = append(e.Tags, nostrx.Tag{"e", id(target)})
	}
	return e
}

func count(w *Window, channel string) frontier.Counts {
	messages, _ := w.Messages(channel)
	return frontier.View{Now: 10_000}.Count(messages)
}

// What belongs here is kept; what is of no channel, of several, or of one without access is not.
// covers: RL-111, RL-112, RL-104
func TestAdd(t *testing.T) {
	w := newWindow()
	elsewhere, several, nowhere := event(5), event(6, nostrx.Tag{"h", "d"}), event(7)
	elsewhere.Tags, nowhere.Tags = []nostrx.Tag{{"h", "secret"}}, nil
	reaction, late := event(8), event(9)
	reaction.Kind, late.CreatedAt = 7, int64(frontier.MaxTime)+1
	n := add(t, w, event(1), by(viewer, event(2)), about(3, nostrx.KindEdit, peer, 1), elsewhere, several, nowhere,
		reaction, late, about(10, nostrx.KindEdit, peer, 77), replyTo(11, 5, 5))
	if events, _ := w.Len(); n != 4 || events != 4 {
		t.Errorf("kept %d of them, %d events", n, events)
	}
	if got := count(w, "c"); got.Observed != 1 || !got.Pending {
		t.Errorf("%+v", got)
	}
	if n := add(t, w, event(1)); n != 0 {
		t.Error("the same event was kept twice")
	}
	if _, ok := w.Messages("secret"); ok || w.Access("secret") {
		t.Error("a reference gave access")
	}
	if m := messageOf(t, w, 11); m.Root != "" {
		t.Errorf("a root of another channel: %+v", m)
	}
}

// A deletion counts if its author may delete all that it names, and all of that is here.
// covers: RL-113, RL-279
func TestDeletions(t *testing.T) {
	for name, c := range map[string]struct {
		deletion nostrx.Event
		gone     []int
	}{
		"by the author":             {about(9, nostrx.KindDelete, peer, 1), []int{1}},
		"of several":                {about(9, nostrx.KindDelete, peer, 1, 2), []int{1, 2}},
		"by another":                {about(9, nostrx.KindDelete, 3, 1), nil},
		"of another's among others": {about(9, nostrx.KindDelete, peer, 1, 3), nil},
		"of one that is not here":   {about(9, nostrx.KindDelete, peer, 1, 77), nil},
		"by the relay":              {about(9, nostrx.KindModeratorDelete, relay, 1, 3), []int{1, 3}},
		"by a moderator":            {about(9, nostrx.KindModeratorDelete, 5, 1), []int{1}},
		"by nobody special":         {about(9, nostrx.KindModeratorDelete, peer, 1), nil},
		"an edit":                   {about(9, nostrx.KindEdit, peer, 1), nil},
	} {
		for _, first := range []bool{false, true} {
			w := newWindow()
			w.Trust(who(relay), []nostrx.PubKey{who(5)})
			events := []nostrx.Event{event(1), event(2), by(4, event(3))}
			if first {
				events = append([]nostrx.Event{c.deletion}, events...)
			} else {
				events = append(events, c.deletion)
			}
			add(t, w, events...) // a page brings the newest first
			for n := 1; n <= 3; n++ {
				if got := messageOf(t, w, n).Deleted; got != slices.Contains(c.gone, n) {
					t.Errorf("%s: message %d deleted: %v", name, n, got)
				}
			}
			if got := count(w, "c").Observed; got != 3-len(c.gone) {
				t.Errorf("%s: %d observed", name, got)
			}
		}
	}
}

// A window that is full is cleared as a whole, and says so.
// covers: RL-119, RL-120, RL-122
func TestOverflow(t *testing.T) {
	w := newWindow()
	for i := range MaxEvents {
		add(t, w, event(i+1))
	}
	if events, _ := w.Len(); events != MaxEvents {
		t.Fatalf("%d events", events)
	}
	add(t, w, event(1)) // which is here already
	if _, err := w.Add(event(MaxEvents + 1)); !errors.Is(err, ErrOverflow) {
		t.Errorf("one more: %v", err)
	}
	if events, bytes := w.Len(); events != 0 || bytes != 0 {
		t.Errorf("%d events, %d bytes", events, bytes)
	}
	large := strings.Repeat("x", 64<<10)
	for i := 1; ; i++ {
		e := event(i)
		e.Content = large
		_, before := w.Len()
		_, err := w.Add(e)
		if before+len(e.Encode()) > MaxBytes {
			if !errors.Is(err, ErrOverflow) {
				t.Errorf("%d bytes: %v", before+len(e.Encode()), err)
			}
			break
		}
		if err != nil {
			t.Fatalf("%d bytes: %v", before, err)
		}
	}
}

// Access that is taken away takes everything of the channel with it, and what comes back is read anew.
// covers: RL-264
func TestRoster(t *testing.T) {
	w := newWindow()
	inD := event(3)
	inD.Tags = []nostrx.Tag{{"h", "d"}}
	add(t, w, event(1), replyTo(2, 1, 1), about(4, nostrx.KindEdit, peer, 2), inD)
	w.Decide("c", id(9), Decision{Inside: true})
	w.Decide("d", id(9), Decision{Inside: true})
	w.AddStructure(event(20))
	if w.SetRoster([]Channel{{ID: "c", Type: "forum"}, {ID: "d"}, {ID: "x"}}) {
		t.Error("a type that changed is a change of access")
	}
	if !w.SetRoster([]Channel{{ID: "d", Type: "stream"}}) {
		t.Error("no change")
	}
	if events, bytes := w.Len(); events != 1 || bytes != len(inD.Encode()) {
		t.Errorf("%d events, %d bytes are left", events, bytes)
	}
	if _, ok := w.Messages("c"); ok {
		t.Error("a channel without access is shown")
	}
	if _, known := w.decisions.get(lookupKey{"c", id(9)}); known {
		t.Error("a decision of a channel without access is left")
	}
	if _, known := w.decisions.get(lookupKey{"d", id(9)}); !known {
		t.Error("a decision of another channel is gone")
	}
	if !w.SetRoster([]Channel{{ID: "c"}, {ID: "d"}}) {
		t.Error("no change")
	}
	if messages, ok := w.Messages("c"); !ok || len(messages) != 0 {
		t.Errorf("%v, %v", messages, ok)
	}
}

// The canonical root is followed through messages of the same channel, and not known otherwise; in a dm
// the marked one is enough.
// covers: RL-094, RL-157, RL-228, RL-259
func TestRoots(t *testing.T) {
	w := newWindow()
	add(t, w, event(1), replyTo(2, 1, 1), replyTo(3, 2, 2), replyTo(4, 50, 50), replyTo(5, 6, 6), replyTo(6, 5, 5))
	dm := replyTo(7, 60, 60)
	dm.Tags[0] = nostrx.Tag{"h", "x"}
	foreign := event(70)
	foreign.Tags = []nostrx.Tag{{"h", "d"}}
	add(t, w, dm, foreign, replyTo(8, 70, 70))
	for n, want := range map[int]string{1: "", 2: id(1), 3: id(1), 4: "", 5: "", 6: "", 7: id(60), 8: ""} {
		if got := messageOf(t, w, n).Root; got != want {
			t.Errorf("message %d: root %q", n, got)
		}
	}
	w.AddStructure(event(50))
	if got := messageOf(t, w, 4).Root; got != id(50) {
		t.Errorf("with its root fetched: %q", got)
	}
	chain := newWindow()
	add(t, chain, event(100))
	for i := 1; i <= 40; i++ {
		add(t, chain, replyTo(100+i, 99+i, 99+i))
	}
	for i, want := range map[int]bool{maxHops - 1: true, maxHops + 1: false} {
		if got := messageOf(t, chain, 100+i).Root != ""; got != want {
			t.Errorf("%d steps: %v", i, got)
		}
	}
}

// A repair reads what is asked for: at most 128 channels at a time, by id, 500 rows each, messages with
// what was said about them.
// covers: RL-127, RL-128, RL-130, RL-133
func TestRepairBatches(t *testing.T) {
	var ids []string
	for i := range 278 {
		ids = append(ids, fmt.Sprintf("channel-%03d", 277-i))
	}
	var r Repair
	batches := r.Batches(ids)
	var sizes []int
	var all []string
	for _, b := range batches {
		sizes, all = append(sizes, len(b.Channels)), append(all, b.Channels...)
		f := r.Filter(b)
		if !slices.Equal(f.Kinds, []int{9, 40002, 40008}) || !slices.Equal(f.Tags["h"], b.Channels) || *f.Limit != 500 ||
			f.Since != nil || !f.Aux {
			t.Errorf("%+v", f)
		}
	}
	if !slices.Equal(sizes, []int{128, 128, 22}) || !slices.Equal(all, slices.Sorted(slices.Values(ids))) {
		t.Errorf("%v", sizes)
	}
	if len(r.Batches(nil)) != 0 {
		t.Error("something is read for nobody")
	}
}

// From where on the next read of a batch goes.
// covers: RL-135, RL-136, RL-140, RL-141, RL-142, RL-143, RL-145, RL-146, RL-151, RL-158
func TestSinceMarks(t *testing.T) {
	const now = 100_000
	page := func(n int, newest int64) []nostrx.Event {
		var events []nostrx.Event
		for i := range n {
			events = append(events, nostrx.Event{Kind: nostrx.KindChat, CreatedAt: newest - int64(i)})
		}
		return append(events, nostrx.Event{Kind: nostrx.KindEdit, CreatedAt: newest + 500}) // no row of its own
	}
	var r Repair
	b := r.Batches([]string{"c"})[0]
	steps := []struct {
		what   string
		rows   int
		newest int64
		want   int64 // -1 for a whole read
	}{
		{"empty", 0, 0, -1}, {"short", 499, 50_000, 49_040}, {"empty again", 0, 0, 49_040},
		{"newer", 1, 60_000, 59_040}, {"older than before", 1, 55_000, 54_040}, {"full", 500, 70_000, -1},
		{"short after that", 3, 70_000, 69_040}, {"full though it had a mark", 500, 70_001, -1},
		{"from the future", 1, now + 800, now - Margin}, {"at the beginning of time", 1, 5, 0},
	}
	for _, s := range steps {
		r.Done(b, page(s.rows, s.newest), now)
		got := int64(-1)
		if f := r.Filter(b); f.Since != nil {
			got = *f.Since
		}
		if got != s.want {
			t.Errorf("%s: since %d, want %d", s.what, got, s.want)
		}
	}
	r.Forget()
	r.Done(b, page(3, 70_000), now) // asked for before
	fresh := r.Batches([]string{"c"})[0]
	if f := r.Filter(fresh); f.Since != nil {
		t.Errorf("after marks were forgotten: since %d", *f.Since)
	}
	r.Done(fresh, page(3, 70_000), now)
	if f := r.Filter(fresh); f.Since == nil || *f.Since != 69_040 {
		t.Errorf("%+v", f)
	}
	if f := r.Filter(r.Batches([]string{"c", "d"})[0]); f.Since != nil {
		t.Error("a batch of other channels has its mark")
	}
}

// Evidence says nothing of what it does not have.
func TestUnknown(t *testing.T) {
	w := New(who(viewer))
	if _, ok := w.Messages("c"); ok {
		t.Error("messages of an unknown channel")
	}
	if dm, known := w.DM("c"); dm || known {
		t.Error("the type of an unknown channel")
	}
	if _, known := w.Following("c", id(1)); known {
		t.Error("a choice in an unknown channel")
	}
	if got := maps.Collect(maps.All(w.Undecided(frontier.View{}))); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
