package figures

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/internal/bench"
	"github.com/tidemark-im/tidemark/readstate"
)

// gcEvery is how often a collection is forced on a process that is measured.
const gcEvery = 300 * time.Millisecond

// forcing runs fn while collections are forced, the first one after half the interval. It returns
// when the last one has ended.
func forcing(fn func() error) error {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		timer := time.NewTimer(gcEvery / 2)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
				timer.Reset(gcEvery)
				runtime.GC()
			case <-stop:
				return
			}
		}
	}()
	err := fn()
	close(stop)
	<-ended
	return err
}

// side is a loop of operations that is measured in slices.
type side struct {
	op    func(int) error
	every time.Duration
	force bool
	seen  bench.Latencies
}

// sliceTime is how long a side is measured at a stretch: two forced collections. Sides take turns,
// so that what happens on the machine meanwhile happens to all of them.
const sliceTime = 2 * gcEvery

// takeTurns measures each side in so many slices.
func takeTurns(ctx context.Context, slices int, sides ...*side) error {
	for i := range slices {
		for k := range sides {
			s := sides[k]
			if i%2 == 1 {
				s = sides[len(sides)-1-k]
			}
			if err := s.slice(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *side) slice(ctx context.Context) error {
	run := func() error {
		l, err := bench.OpenLoop(ctx, int(sliceTime/s.every), s.every, s.op)
		s.seen.Response = append(s.seen.Response, l.Response...)
		s.seen.Service = append(s.seen.Service, l.Service...)
		return err
	}
	runtime.GC() // what the one before left behind is not this one's
	if s.force {
		return forcing(run)
	}
	return run()
}

// tail is the p99.9 of a side's service or response times.
func tail(v []time.Duration) float64 { return float64(bench.Quantile(v, 0.999)) }

func middle(v []time.Duration) float64 { return float64(bench.Quantile(v, 0.5)) }

// desk is where messages are posted through a library while a crowd is in memory.
type desk struct {
	*office
	posted int
}

func openDesk(ctx context.Context) (*desk, error) {
	o, err := openOffice(ctx, tidemark.Options{})
	if err != nil {
		return nil, err
	}
	d := &desk{office: o}
	err = d.fill(ctx, 11, func(b *facts.Batch, i int) {
		if i == 0 {
			b.PutScope(facts.PutScope{ID: officeChannel(0), Type: readstate.Channel})
			return
		}
		b.PutMembership(facts.PutMembership{
			Scope: officeChannel(0), Member: officeMember(i), CreateMember: true,
		})
	}, func(int) {})
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *desk) post(ctx context.Context) error {
	d.posted++
	_, err := d.ws.Post(ctx, facts.Post{
		Scope: officeChannel(0), OpID: "op-" + strconv.Itoa(d.posted), Author: officeMember(1),
		Payload: payload, By: facts.Actor{Trusted: true},
	})
	return err
}

// verify compares what everybody at the desk has not read with what was posted.
func (d *desk) verify(ctx context.Context, r *bench.Run) error {
	var wrong []string
	for i := 1; i <= 10; i++ {
		want := uint64(d.posted)
		if i == 1 {
			want = 0
		}
		row, err := d.ws.Row(ctx, officeMember(i), officeChannel(0))
		if err != nil {
			return err
		}
		if row.Values.Unread != want {
			wrong = append(wrong, fmt.Sprintf("%s: %d, want %d", officeMember(i), row.Values.Unread, want))
		}
	}
	return r.Check("counts of the members of a library beside a crowd", 10, wrong)
}

// disturb measures updates in an open loop, with and without forced collections, and a loop that
// does nothing in both ways.
func (c *crowd) disturb(ctx context.Context, r *bench.Run) (err error) {
	if !r.Wants(gcService) && !r.Wants(gcResponse) && !r.Wants(gcLibrary) {
		return nil
	}
	d, err := openDesk(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	slices := bench.Pick(r.Scale, 1, 10, 20)
	every := bench.Pick(r.Scale, 6*time.Millisecond, 500*time.Microsecond, 500*time.Microsecond)
	rare := bench.Pick(r.Scale, 20*time.Millisecond, 4*time.Millisecond, 4*time.Millisecond)
	rng := rand.New(rand.NewPCG(5, 5))
	c.describe(r, slices, every, rare)
	err = r.Each(ctx, func(ctx context.Context, _ int) error {
		update := func(int) error { return c.post(rng.IntN(c.channels)) }
		post := func(int) error { return d.post(ctx) }
		calm := &side{op: update, every: every}
		again := &side{op: update, every: every}
		forced := &side{op: update, every: every, force: true}
		idle := &side{op: bench.Idle, every: every}
		idleForced := &side{op: bench.Idle, every: every, force: true}
		library := &side{op: post, every: rare}
		libraryAgain := &side{op: post, every: rare}
		libraryForced := &side{op: post, every: rare, force: true}
		sides := []*side{calm, forced, idle, idleForced, again}
		if r.Wants(gcLibrary) {
			sides = append(sides, library, libraryForced, libraryAgain)
		}
		if err := takeTurns(ctx, slices, sides...); err != nil {
			return err
		}
		reportService(r.Figure(gcService), calm, forced, again, idleForced)
		reportService(r.Figure(gcLibrary), library, libraryForced, libraryAgain, idleForced)
		reportResponse(r.Figure(gcResponse), calm, forced, idle, idleForced)
		return nil
	})
	if err != nil {
		return err
	}
	return d.verify(ctx, r)
}

func (c *crowd) describe(r *bench.Run, slices int, every, rare time.Duration) {
	perSide := "%d in each round, one every %v, in %d slices of %v between those of the other " +
		"sides. %d read states resident."
	states := c.members * crowdScopes
	for _, name := range []string{gcService, gcResponse} {
		r.Figure(name).Note("Messages in channels taken by chance, applied to memory: "+perSide,
			slices*int(sliceTime/every), every, slices, sliceTime, states)
	}
	r.Figure(gcLibrary).Note("Messages in a channel of 10 through the library: ids, policy, "+
		"idempotence, a durable commit to SQLite, memory: "+perSide,
		slices*int(sliceTime/rare), rare, slices, sliceTime, states)
	r.Figure(gcResponse).Note("An operation's time begins when it was meant to start. The control " +
		"is the idle loop with forced collections against the one without.")
}

func reportService(f *bench.Figure, calm, forced, again, idleForced *side) {
	f.Add("median without collections", bench.Nanoseconds, middle(calm.seen.Service))
	f.Add("median with", bench.Nanoseconds, middle(forced.seen.Service))
	f.Add("p99.9 without collections", bench.Nanoseconds, tail(calm.seen.Service))
	f.Add("p99.9 with", bench.Nanoseconds, tail(forced.seen.Service))
	f.Add("p99.9 of an idle loop with", bench.Nanoseconds, tail(idleForced.seen.Service))
	f.Hold(tail(forced.seen.Service) / tail(calm.seen.Service))
	f.HoldControl(tail(again.seen.Service) / tail(calm.seen.Service))
}

func reportResponse(f *bench.Figure, calm, forced, idle, idleForced *side) {
	f.Add("p99.9 without collections", bench.Nanoseconds, tail(calm.seen.Response))
	f.Add("p99.9 with", bench.Nanoseconds, tail(forced.seen.Response))
	f.Add("p99.9 of an idle loop without", bench.Nanoseconds, tail(idle.seen.Response))
	f.Add("p99.9 of an idle loop with", bench.Nanoseconds, tail(idleForced.seen.Response))
	f.Add("by the idle loop with", bench.Times,
		tail(forced.seen.Response)/tail(idleForced.seen.Response))
	f.Hold(tail(forced.seen.Response) / tail(idle.seen.Response))
	f.HoldControl(tail(idleForced.seen.Response) / tail(idle.seen.Response))
}
