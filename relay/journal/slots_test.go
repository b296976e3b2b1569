package journal

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemark-im/tidemark/relay/frontier"
	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// Read state is recognised by exactly one coordinate and one mark; everything else is somebody's own.
func TestSlotOf(t *testing.T) {
	slot := strings.Repeat("0a", 16)
	for name, c := range map[string]struct {
		kind int
		tags []nostrx.Tag
		want bool
	}{
		"read state":         {30078, []nostrx.Tag{{"d", "read-state:" + slot}, {"t", "read-state"}}, true},
		"tagged besides":     {30078, []nostrx.Tag{{"d", "read-state:" + slot}, {"t", "read-state"}, {"t", "x"}, {"x"}}, true},
		"two coordinates":    {30078, []nostrx.Tag{{"d", "read-state:" + slot}, {"d", "x"}, {"t", "read-state"}}, false},
		"marked twice":       {30078, []nostrx.Tag{{"d", "read-state:" + slot}, {"t", "read-state"}, {"t", "read-state"}}, false},
		"not marked":         {30078, []nostrx.Tag{{"d", "read-state:" + slot}}, false},
		"another kind":       {9, []nostrx.Tag{{"d", "read-state:" + slot}, {"t", "read-state"}}, false},
		"a short slot":       {30078, []nostrx.Tag{{"d", "read-state:" + slot[1:]}, {"t", "read-state"}}, false},
		"a long slot":        {30078, []nostrx.Tag{{"d", "read-state:" + slot + "0"}, {"t", "read-state"}}, false},
		"an upper-case slot": {30078, []nostrx.Tag{{"d", "read-state:" + strings.ToUpper(slot)}, {"t", "read-state"}}, false},
		"another d":          {30078, []nostrx.Tag{{"d", slot}, {"t", "read-state"}}, false},
		"a d without value":  {30078, []nostrx.Tag{{"d"}, {"t", "read-state"}}, false},
		"nothing":            {30078, nil, false},
	} {
		got, ok := slotOf(nostrx.Event{Kind: c.kind, Tags: c.tags})
		if ok != c.want || ok && got != slot {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
}

// Of what was read here, published is what was raised here, is no message, and is not too old.
// covers: RL-072, RL-455, RL-456, RL-459
func TestPublishable(t *testing.T) {
	const now = Time(10_000_000)
	b := open(t).Book(mine(t, "relay"))
	act(t, b, "general", 9_999_999, MessageKey(1), 9_999_999, "old", int(now)-frontier.Horizon, "young", int(now)-frontier.Horizon+1)
	peer := Observed{Slot: strings.Repeat("b", 32), Blob: frontier.Blob{ClientID: "peer",
		State: frontier.State{Frontiers: map[Key]Time{"theirs": now, "general": now, MessageKey(2): now}}}}
	r, err := b.Observe(t.Context(), now, []Observed{peer}, nil, Evidence{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[Key]Time{"general": 9_999_999, "young": now - frontier.Horizon + 1}
	if got := r.publishable(now); !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if r.State.Frontiers["theirs"] != now || r.State.Frontiers["general"] != now || r.State.Frontiers[MessageKey(2)] != now {
		t.Errorf("%v", r.State.Frontiers)
	}
}

// lay lays a record out and checks what every layout promises.
func lay(t *rapid.T, r *Record, values map[Key]Time, limit int) []page {
	before := r.Slots()
	pages, err := r.layout(values, limit)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Slots()[:len(before)], before) || len(pages) != len(r.Slots()) {
		t.Fatalf("slots %v became %v", before, r.Slots())
	}
	found := make(map[Key]Time)
	for i, p := range pages {
		if p.slot != r.Slots()[i] {
			t.Fatal("another order")
		}
		text, err := frontier.Blob{ClientID: r.ClientID, State: frontier.State{Frontiers: p.values}}.Encode(limit)
		if err != nil {
			t.Fatalf("%d bytes: %v", len(text), err)
		}
		for k, at := range p.values {
			if _, twice := found[k]; twice {
				t.Fatalf("%q stands twice", k)
			}
			found[k] = at
			if was := r.carrier(k); was > i {
				t.Fatalf("%q moved from %d to %d", k, was, i)
			}
		}
	}
	if !maps.Equal(found, values) {
		t.Fatalf("%v was laid out as %v", values, found)
	}
	return pages
}

// Layouts fit, are the same for the same input, and move nothing without need; and whenever sending
// stops, no value that the relay held before is missing from all slots.
// covers: RL-464, RL-466, RL-467, RL-468, RL-470, RL-471, RL-473
func TestLayoutLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		r := newRecord()
		values := make(map[Key]Time)
		for range rng.IntN(8) {
			for range rng.IntN(12) {
				k := Key(fmt.Sprintf("%s%d", strings.Repeat("x", rng.IntN(40)), rng.IntN(20)))
				values[k] = max(values[k], Time(rng.IntN(1<<uint(1+rng.IntN(31)))))
			}
			for _, k := range slices.Sorted(maps.Keys(values)) {
				if rng.IntN(5) == 0 { // too old by now; it may come back with an earlier time
					delete(values, k)
				}
			}
			limit := 200 + rng.IntN(200) // smaller than before makes keys move
			pages := lay(t, &r, values, limit)
			again := lay(t, &r, values, limit)
			for i := range pages {
				if !maps.Equal(pages[i].values, again[i].values) {
					t.Fatal("the same input was laid out in two ways")
				}
				for k := range pages[i].values {
					if was := r.carrier(k); was >= 0 && was != i && fitsAt(r, pages[was], k, values[k], limit) {
						t.Fatalf("%q moved without need", k)
					}
				}
			}
			held := union(r)
			maps.DeleteFunc(held, func(k Key, at Time) bool {
				now, ok := values[k]
				return !ok || now < at
			})
			due := r.due(pages)
			for _, p := range due[:rng.IntN(len(due)+1)] {
				r.Carried[p.slot] = maps.Clone(p.values)
				for k, at := range held {
					if now, ok := union(r)[k]; !ok || now < at {
						t.Fatalf("%q fell from %d to %d (%v)", k, at, now, ok)
					}
				}
			}
			for k, at := range values {
				if len(due) == 0 && union(r)[k] < at {
					t.Fatalf("nothing is due, and %q is missing", k)
				}
			}
		}
	})
}

// fitsAt tells whether a key would have fitted beside what its old slot holds now.
func fitsAt(r Record, p page, k Key, at Time, limit int) bool {
	values := maps.Clone(p.values)
	values[k] = at
	text, err := frontier.Blob{ClientID: r.ClientID, State: frontier.State{Frontiers: values}}.Encode(limit)
	return err == nil && len(text)+1 <= limit && r.carrier(k) >= 0 && len(p.values) == 0
}

// union is what the relay holds in all slots.
func union(r Record) map[Key]Time {
	all := make(map[Key]Time)
	for _, held := range r.Carried {
		for k, t := range held {
			all[k] = max(all[k], t)
		}
	}
	return all
}

// A hundred kilobytes take a primary slot and spill slots of forty at most.
// covers: RL-464, RL-465
func TestSpill(t *testing.T) {
	r := newRecord()
	values := make(map[Key]Time)
	for i := range 2200 {
		values[Key(fmt.Sprintf("01234567-89ab-cdef-0123-%012d", i))] = 1_700_000_000
	}
	pages, err := r.layout(values, frontier.MaxBlobOut)
	if err != nil || len(pages) != 3 || len(r.Spill) != 2 {
		t.Fatalf("%v, %d pages", err, len(pages))
	}
	for _, p := range pages {
		if text, err := encodePage(r, p); err != nil || len(text) > frontier.MaxBlobOut {
			t.Errorf("%d bytes, %v", len(text), err)
		}
	}
	if _, err := r.layout(map[Key]Time{Key(strings.Repeat("x", 200)): 1}, 150); !errors.Is(err, frontier.ErrCapacity) {
		t.Errorf("a key that is larger than a slot: %v", err)
	}
}

// What the relay holds in the own slots is taken back, so that a restored journal lowers nothing. A
// slot of another installation is given up.
// covers: RL-457, RL-458
func TestObserveOwn(t *testing.T) {
	b := open(t).Book(mine(t, "relay"))
	r := act(t, b, "general", 5)
	own := Observed{Slot: r.Slot, CreatedAt: 500, Blob: frontier.Blob{ClientID: r.ClientID,
		State: frontier.State{Frontiers: map[Key]Time{"general": 50, "dev": 60, MessageKey(1): 9}}}}
	r, err := b.Observe(t.Context(), 100, []Observed{own}, []string{r.Slot}, Evidence{})
	if err != nil || r.Own["general"] != 50 || r.Own["dev"] != 60 || len(r.Own) != 2 || r.LastCreatedAt != 500 {
		t.Errorf("%v, %+v", err, r)
	}
	if got := r.publishable(100); got["general"] != 50 {
		t.Errorf("publishes %v", got)
	}
	slot := r.Slot
	foreign := own
	foreign.Blob.ClientID = "somebody else"
	r, err = b.Observe(t.Context(), 100, []Observed{foreign}, []string{slot}, Evidence{})
	if err != nil || r.Slot == slot || r.ClientID != own.Blob.ClientID || !r.Waiting() || len(r.Carried) > 0 {
		t.Errorf("%v, %+v", err, r)
	}
}
