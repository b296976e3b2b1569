package figures

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/tidemark-im/tidemark/internal/bench"
	"github.com/tidemark-im/tidemark/internal/bench/fanout"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// runCrowd measures what needs many read states in memory.
func runCrowd(ctx context.Context, r *bench.Run) error {
	members := bench.Pick(r.Scale, 150, 25_000, 250_000)
	channels := bench.Pick(r.Scale, 499, 20_011, 20_011)
	head := bench.Pick(r.Scale, readstate.Revision(50), 1000, 1000)
	before := resident()
	c, err := newCrowd(members, channels, head)
	if err != nil {
		return err
	}
	defer c.runtime.Close()
	empty := collections(r.Rounds) // what the measurement itself holds is there, too
	if err := c.load(ctx, r); err != nil {
		return err
	}
	after := resident()
	c.size(r, before, after)
	if err := c.collect(ctx, r, empty); err != nil {
		return err
	}
	if err := c.read(ctx, r); err != nil {
		return err
	}
	if err := c.disturb(ctx, r); err != nil { // last: now nobody has read everything any more
		return err
	}
	return c.verify(ctx, r, 1, 2, members/2|1, members-1)
}

// memory is what the process holds.
type memory struct {
	resident uint64 // of the process, 0 where the system does not tell
	heap     uint64 // of the Go heap, in use
}

func resident() memory {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return memory{bench.ResidentBytes(), m.HeapAlloc}
}

// size reports what a read state takes. Everything is included that the process holds more than
// before: rows, indexes, lists, scopes, and the dictionaries of ids.
func (c *crowd) size(r *bench.Run, before, after memory) {
	f := r.Figure(bytesState)
	states := float64(c.members) * crowdScopes
	held := float64(after.resident) - float64(before.resident)
	if after.resident == 0 {
		f.Skip("this system does not tell how much memory a process has")
		return
	}
	f.Note("%d read states: %d members of %d channels each, %d channels, one row in ten with a "+
		"side record. Loaded once, so that all rounds show one value. Counted is the growth of "+
		"the resident memory of the whole process after a full collection.",
		c.members*crowdScopes, c.members, crowdScopes, c.channels)
	own := c.runtime.Stats()
	for range r.Rounds {
		f.Add("rows, members, scopes and texts by the runtime's own account, per state", bench.Bytes,
			float64(own.Bytes)/states)
		f.Add("free places of theirs included, per state", bench.Bytes,
			float64(own.ReservedBytes)/states)
		f.Add("resident, per state", bench.Bytes, held/states)
		f.Add("Go heap, per state", bench.Bytes, (float64(after.heap)-float64(before.heap))/states)
		f.Add("resident in all", bench.Bytes, held)
		f.Hold(held / states)
	}
}

// collections measures full garbage collections once for each of n rounds.
func collections(n int) []float64 {
	took := make([]float64, n)
	for i := range took {
		took[i] = collection(shortCollections)
	}
	return took
}

const (
	// shortCollections are as many as it takes for a median of what lasts less than a slice of the
	// scheduler.
	shortCollections = 15
	longCollections  = 3
)

// collection is the median of n forced full garbage collections of a heap that was just collected,
// in nanoseconds.
func collection(n int) float64 {
	runtime.GC()
	took := make([]time.Duration, n)
	for i := range took {
		start := time.Now()
		runtime.GC()
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return float64(took[n/2])
}

// collect measures forced collections with the crowd alone, and then with a baseline beside it that
// is made and dropped in every round: what that leaves behind would be charged to the crowd.
func (c *crowd) collect(ctx context.Context, r *bench.Run, empty []float64) error {
	if r.Wants(gcResident) {
		f := r.Figure(gcResident)
		f.Note("%d read states are resident. The collections without were made before they were "+
			"loaded, in the same process. Each value is the median of %d.",
			c.members*crowdScopes, shortCollections)
		err := r.Each(ctx, func(_ context.Context, round int) error {
			ours, again := collection(shortCollections), collection(shortCollections)
			f.Add("without read states", bench.Nanoseconds, empty[round])
			f.Add("with read states", bench.Nanoseconds, ours)
			f.Hold(ours / empty[round])
			f.HoldControl(again / ours)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if !r.Wants(gcBaseline) {
		return nil
	}
	f, counters := r.Figure(gcBaseline), min(c.members, baselineMembers)
	f.Note("%d read states against %d counters. No collection can be shorter than one without read "+
		"states.", c.members*crowdScopes, counters*crowdScopes)
	return r.Each(ctx, func(_ context.Context, round int) error {
		debug.FreeOSMemory() // of the last round's baseline
		ours, again := collection(shortCollections), collection(shortCollections)
		all := c.baseline(counters)
		theirs := collection(longCollections)
		runtime.KeepAlive(all)
		f.Add("without read states", bench.Nanoseconds, empty[round])
		f.Add("Tidemark", bench.Nanoseconds, ours)
		f.Add("fan-out", bench.Nanoseconds, theirs)
		f.Hold(theirs / ours)
		f.HoldControl(again / ours)
		return nil
	})
}

// baselineMembers is how many members of crowdScopes channels the baseline has at most, 5 million
// counters: more would not fit beside the crowd.
const baselineMembers = 25_000

// baseline holds counters for the first members of the crowd in the same channels. People do not
// join all of their channels at one moment, nor do channels get all of their members at one: the
// joins come in an order drawn by chance, the same one each time.
func (c *crowd) baseline(members int) *fanout.Counters {
	ids := make([]string, members)
	for m := range ids {
		ids[m] = string(c.id(m))
	}
	joins := make([]uint32, members*crowdScopes)
	for i := range joins {
		joins[i] = uint32(i)
	}
	rand.New(rand.NewPCG(9, 9)).Shuffle(len(joins), func(i, j int) {
		joins[i], joins[j] = joins[j], joins[i]
	})
	all := fanout.New()
	for _, join := range joins {
		m, n := int(join)/crowdScopes, int(join)%crowdScopes
		all.Join(string(c.names[c.channel(m, n)]), ids[m])
	}
	return all
}

// read measures counts and dots of members taken by chance.
func (c *crowd) read(ctx context.Context, r *bench.Run) error {
	if !r.Wants(countsBaseline) && !r.Wants(countsLoads) && !r.Wants(dotLookup) {
		return nil
	}
	n := bench.Pick(r.Scale, 50, 2_000, 5_000)
	few := min(c.members, baselineMembers)
	theirs := c.baseline(few)
	walk := newChase(bench.Pick(r.Scale, 64<<20, 1<<30, 2<<30))
	names := make(map[string]bool, c.members)
	for m := 0; m < c.members; m += 2 {
		names[string(c.id(m))] = false
	}
	rng := rand.New(rand.NewPCG(8, 8))
	base, loads := r.Figure(countsBaseline), r.Figure(countsLoads)
	for _, f := range []*bench.Figure{base, loads} {
		f.Note("%d members by chance out of %d in each round.", n, c.members)
	}
	base.Note("The baseline holds %d members, %d counters, joined in an order by chance.", few,
		few*crowdScopes)
	loads.Note("Loads walk %d MiB in an order by chance.", len(walk.next)>>18)
	return r.Each(ctx, func(ctx context.Context, _ int) error {
		ours, err1 := c.counts(ctx, pick(rng, n, c.members, 1, c.id))
		load := mean(100*n, func(int) error { walk.walk(1); return nil })
		other, err2 := countsOf(theirs, pick(rng, n, few, 1, c.id))
		again, err3 := c.counts(ctx, pick(rng, n, c.members, 1, c.id))
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		for _, f := range []*bench.Figure{base, loads} {
			f.Add("Tidemark, 200 counts", bench.Nanoseconds, ours)
			f.HoldControl(again / ours)
		}
		base.Add("fan-out, 200 counts", bench.Nanoseconds, other)
		base.Hold(other / ours)
		loads.Add("one load", bench.Nanoseconds, load)
		loads.Hold(ours / load)
		return c.dots(r, pick(rng, n, c.members/2, 2, c.id), names)
	})
}

// pick draws members by chance, of every step-th.
func pick(
	rng *rand.Rand, n, of, step int, id func(int) readstate.MemberID,
) []readstate.MemberID {
	drawn := make([]readstate.MemberID, n)
	for i := range drawn {
		drawn[i] = id(rng.IntN(of) * step)
	}
	return drawn
}

// mean returns what one of n calls takes, in nanoseconds; NaN never: errors are the caller's.
func mean(n int, fn func(i int) error) float64 {
	start := time.Now()
	for i := range n {
		if fn(i) != nil {
			break
		}
	}
	return float64(time.Since(start)) / float64(n)
}

func (c *crowd) counts(ctx context.Context, ids []readstate.MemberID) (float64, error) {
	dst := make([]unread.Count, 0, crowdScopes)
	var err error
	took := mean(len(ids), func(i int) error {
		dst, _, err = c.runtime.Counts(ctx, space, ids[i], dst[:0])
		if err == nil && len(dst) != crowdScopes {
			err = fmt.Errorf("%s has %d counts", ids[i], len(dst))
		}
		return err
	})
	return took, err
}

func countsOf(all *fanout.Counters, ids []readstate.MemberID) (float64, error) {
	dst := make([]fanout.Count, 0, crowdScopes)
	var err error
	took := mean(len(ids), func(i int) error {
		dst, _ = all.Counts(string(ids[i]), dst[:0])
		if len(dst) != crowdScopes {
			err = fmt.Errorf("%s has %d counters", ids[i], len(dst))
		}
		return err
	})
	return took, err
}

// dots measures hasUnread of members who have read everything.
func (c *crowd) dots(r *bench.Run, ids []readstate.MemberID, names map[string]bool) error {
	f := r.Figure(dotLookup)
	if !r.Wants(dotLookup) {
		return nil
	}
	for _, id := range ids {
		if dot, state := c.runtime.HasUnread(space, id); dot || state != unread.Ready {
			return fmt.Errorf("dot of %s, who has read everything: %t (%s)", id, dot, state)
		}
	}
	ask := func() float64 {
		return mean(len(ids), func(i int) error {
			c.runtime.HasUnread(space, ids[i])
			return nil
		})
	}
	dot, again := ask(), ask()
	found := 0
	lookup := mean(len(ids), func(i int) error {
		if names[string(ids[i])] {
			found++
		}
		return nil
	})
	f.Note("%d members by chance out of %d who have read everything, each asked once before.",
		len(ids), c.members/2)
	f.Add("hasUnread", bench.Nanoseconds, dot)
	f.Add("hasUnread again", bench.Nanoseconds, again)
	f.Add("map lookup", bench.Nanoseconds, lookup)
	f.Hold(dot / lookup)
	f.HoldControl(again / dot)
	if found > 0 {
		return errors.New("the map says something else than it was told")
	}
	return nil
}
