package client_test

import (
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
)

// fault is a kind of trouble.
type fault int

const (
	dropRequest   fault = iota // it never reaches the server
	dropAnswer                 // the server has done it, and nobody learns of it
	delay                      // a request, an answer or events come much later
	duplicate                  // a request reaches the server twice
	reorder                    // something overtakes what set out before it
	serverRestart              // all streams break; it may be down for a while
	clientRestart              // closed, and opened again
	clientKill                 // killed between two of its steps, and opened again
	faults
)

func (f fault) String() string {
	return [...]string{"drop request", "drop answer", "delay", "duplicate", "reorder",
		"server restart", "client restart", "client kill"}[f]
}

// faultSet is a set of faults, a bit each.
type faultSet uint

func (s faultSet) has(f fault) bool { return s&(1<<f) != 0 }

func (r *run) happen(f fault) { r.happened |= 1 << f }

// tally counts runs by the faults, and by the pairs of faults, that happened in them.
type tally struct {
	runs  int
	pairs [faults][faults]int // a fault with itself: the runs that had it
}

func (c *tally) add(s faultSet) {
	c.runs++
	for a := range faults {
		for b := range faults {
			if s.has(a) && s.has(b) {
				c.pairs[a][b]++
			}
		}
	}
}

// least is the smallest of all numbers.
func (c *tally) least() int {
	least := c.runs
	for a := range c.pairs {
		least = min(least, slices.Min(c.pairs[a][:]))
	}
	return least
}

func (c *tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs, and of them with a fault (diagonal) or with both of a pair:\n%15s", c.runs, "")
	for f := range faults {
		fmt.Fprintf(&b, " %14s", f)
	}
	for a := range faults {
		fmt.Fprintf(&b, "\n%15s", a)
		for f := range a + 1 {
			fmt.Fprintf(&b, " %14d", c.pairs[a][f])
		}
	}
	return b.String()
}

// strike is a fault that is none of a single parcel.
func (r *run) strike() {
	d := r.devices[r.IntN(len(r.devices))]
	switch f := []fault{serverRestart, clientRestart, clientKill, clientKill, dropAnswer}[r.IntN(5)]; {
	case !r.enabled.has(f):
	case f == serverRestart && !r.happened.has(f): // it takes longer than all the rest
		r.happen(f)
		r.halt(r.IntN(3) * r.IntN(6))
	case f == clientRestart:
		r.happen(f)
		r.note("%s: closed, and opened again", d.now)
		d.now.end()
		d.again()
	case f == clientKill && d.now.fuse.Load() == 0:
		// At one of its next steps; they are planned, written and under way.
		d.now.fuse.Store(int64(1 + r.IntN(6)))
		r.note("%s: to be killed soon", d.now)
	case f == dropAnswer:
		r.breakStream(d)
	}
}

// breakStream ends the stream of a device.
func (r *run) breakStream(d *simDevice) {
	for _, s := range r.net.streams {
		if s.of == d.now && s.open && !s.isBroken() {
			r.note("%s: its stream breaks", d.now)
			r.happen(dropAnswer)
			s.cut()
		}
	}
}

// halt ends the server, to be started again some steps later, or at once.
func (r *run) halt(steps int) {
	r.note("the server ends, for %d steps", steps)
	for _, s := range r.net.streams {
		s.cut()
	}
	r.net.forget(func(p *parcel) bool { return p.stream != nil || p.answer != nil && r.IntN(2) == 0 })
	synctest.Wait() // its handlers
	r.server.stop()
	r.down = r.step + steps
	if steps == 0 {
		r.up()
	}
}

func (r *run) up() {
	r.note("the server starts")
	r.server.start()
	r.down = 0
	r.account("the restart", r.ids...)
}

// move moves one parcel, or does to it what a network may do.
func (r *run) move() {
	d := r.devices[r.IntN(len(r.devices))]
	var mine []*parcel
	for _, p := range r.net.flying {
		if p.of == d.now && p.due <= r.step {
			mine = append(mine, p)
		}
	}
	if len(mine) == 0 || r.IntN(4) == 0 {
		r.moveStream(d)
		return
	}
	p := mine[0]
	if i := slices.IndexFunc(mine, func(p *parcel) bool { return p.op.ID != "" }); i > 0 && r.IntN(2) == 0 {
		p = mine[i] // operations are what this is about
	}
	f := fault(r.IntN(9))
	if f < faults && r.enabled.has(f) {
		switch {
		case f == dropRequest && p.answer == nil, f == dropAnswer && p.answer != nil:
			r.drop(f, p)
			return
		case f == delay:
			r.happen(f)
			p.due = r.step + 2 + r.IntN(12)
			r.note("later: %s", p)
			return
		case f == duplicate && p.answer == nil && p.waiter != nil && p.path != "/api/events":
			r.happen(f)
			c := *p
			c.waiter, c.due = nil, r.step+r.IntN(12)
			r.net.send(&c)
			r.note("twice: %s", p)
		case f == reorder && len(mine) > 1:
			p = mine[1+r.IntN(len(mine)-1)]
		}
	}
	if p.serial > slices.MinFunc(mine, func(a, b *parcel) int { return a.serial - b.serial }).serial {
		r.happen(reorder)
	}
	r.deliver(p)
}

// drop loses a parcel. The client may learn at once that the connection broke, or wait.
func (r *run) drop(f fault, p *parcel) {
	r.happen(f)
	r.net.take(p)
	if r.IntN(2) == 0 {
		r.note("lost: %s", p)
		p.fail(errCut)
		return
	}
	r.note("lost without a trace: %s", p)
	if p.stream != nil {
		p.stream.cut()
	}
}

// moveStream delivers some events of a device's stream, or holds them back.
func (r *run) moveStream(d *simDevice) {
	for _, s := range r.net.streams {
		if s.of != d.now || !s.open || s.due > r.step || s.isBroken() || !s.waits() {
			continue
		}
		if r.enabled.has(delay) && r.IntN(8) == 0 {
			r.happen(delay)
			s.due = r.step + 2 + r.IntN(12)
			r.note("later: the events of %s", d.now)
			continue
		}
		r.flow(s, 1+r.IntN(4))
	}
}
