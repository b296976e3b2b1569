package unread

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidemark-im/tidemark/internal/slab"
)

// The index finds what a map finds, through growth and removals.
func TestIndexIsAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	x, plain, names := newIndex(), map[string]int32{}, map[int32]string{}
	next := int32(1)
	for range 60_000 {
		id := fmt.Sprint("id-", rng.IntN(3000))
		slot, found := plain[id]
		got := x.find(id, func(s int32) bool { return names[s] == id })
		if got != slot || found == (got == none) {
			t.Fatalf("%s is %d, want %d", id, got, slot)
		}
		switch {
		case found && rng.IntN(2) == 0:
			x.remove(id, slot)
			delete(plain, id)
			delete(names, slot)
		case !found:
			x.add(id, next)
			plain[id], names[next] = next, id
			next++
		}
	}
}

// Slots whose hashes are alike are told apart by their ids.
func TestIndexAsksTheSlot(t *testing.T) {
	x := newIndex()
	x.add("a", 1)
	x.add("a", 2) // as another id with the same hash would be
	for _, want := range []int32{1, 2, none} {
		if got := x.find("a", func(s int32) bool { return s == want }); got != want {
			t.Errorf("found %d, want %d", got, want)
		}
	}
	x.remove("a", 1)
	if got := x.find("a", func(int32) bool { return true }); got != 2 {
		t.Errorf("found %d after the removal of 1", got)
	}
}

// Ids are found while others come and go.
func TestIndexWhileItChanges(t *testing.T) {
	x, memory := newIndex(), newIDs(new(slab.Memory))
	at := memory.put("stays")
	x.add("stays", at)
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !done.Load() {
				is := func(s int32) bool { return memory.equal(s, "stays") }
				if got := x.find("stays", is); got != at {
					t.Errorf("found %d", got)
					return
				}
			}
		})
	}
	for i := range 20_000 {
		id := fmt.Sprint("x", i)
		x.add(id, memory.put(id))
		if i%3 == 0 {
			slot := x.find(id, func(s int32) bool { return memory.equal(s, id) })
			x.remove(id, slot)
			memory.drop(slot)
		}
	}
	done.Store(true)
	wg.Wait()
}

func TestIDsAreWords(t *testing.T) {
	d := newIDs(new(slab.Memory))
	var ids []string
	for n := 1; n <= 128; n++ {
		ids = append(ids, strings.Repeat("é\x00\xff", 43)[:n])
	}
	places := map[string]int32{}
	for _, id := range ids {
		places[id] = d.put(id)
	}
	for _, id := range ids {
		for _, other := range ids {
			if d.equal(places[id], other) != (id == other) {
				t.Fatalf("%d bytes and %d bytes are taken for one another", len(id), len(other))
			}
		}
		if got := d.text(places[id]); got != id {
			t.Errorf("%q comes back as %q", id, got)
		}
	}
	for _, id := range ids {
		d.drop(places[id])
	}
	if n := d.words.Used(); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}
