package client_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-im/tidemark/client/readsync"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/httpapi"
)

// run is one history of two devices of one member, a server and a network, all from one seed.
type run struct {
	t    *testing.T
	seed uint64
	*rand.Rand
	dir           string
	server        *simServer
	member, token string
	net           *simNet
	devices       []*simDevice
	script        []string

	sleep    func(time.Duration) // moves the bubble's clock
	step     int
	down     int      // the step at which the server is started again; zero while it is up
	enabled  faultSet // what may happen in this run
	happened faultSet
	numbers  map[string]int

	wishes map[string]*wish
	drafts []*wish // of the last call
	ids    []string
	gone   map[string]string                      // sessions that were merged away: into which
	truth  map[string]facts.Session               // what the server has
	marks  map[string]map[readsync.Version]string // by session and version: who set the mark
}

func newRun(t *testing.T, server *simServer, dir string, seed uint64) *run {
	r := &run{
		t: t, seed: seed, Rand: rand.New(rand.NewPCG(seed, 1)), dir: dir, server: server,
		member: fmt.Sprintf("m%d", seed), net: &simNet{}, numbers: map[string]int{},
		wishes: map[string]*wish{}, gone: map[string]string{}, truth: map[string]facts.Session{},
		marks: map[string]map[readsync.Version]string{},
	}
	for f := range faults {
		if r.IntN(10) < 9 {
			r.enabled |= 1 << f
		}
	}
	return r
}

// begin makes the member, sessions and devices.
func (r *run) begin() {
	r.token = r.server.token("W", r.member, httpapi.RoleMember)
	r.server.want(200, "PUT", "/api/v1/workspaces/W/members/"+r.member,
		r.server.token("*", "root", httpapi.RoleAdmin), object{"kind": "human"})
	for range 3 {
		r.newSession(1 + r.IntN(3))
	}
	for _, name := range []string{"a", "b"} {
		d := &simDevice{
			run: r, name: name, path: fmt.Sprintf("%s/%s-%s.db", r.dir, r.member, name),
			read: map[string]readsync.Revision{},
		}
		d.open()
		r.devices = append(r.devices, d)
	}
}

// newID returns a name that was not used in the run.
func (r *run) newID(of string) string {
	r.numbers[of]++
	return fmt.Sprintf("%s-%d", of, r.numbers[of])
}

func (r *run) note(format string, args ...any) {
	r.script = append(r.script, fmt.Sprintf("%3d  ", r.step)+fmt.Sprintf(format, args...))
}

// failure is what a run ends with that is not as it should be.
type failure struct{}

// fail ends the run with what it takes to see the failure again.
func (r *run) fail(format string, args ...any) {
	r.t.Helper()
	r.t.Errorf("seed %d: %s\n\nagain by: TIDEMARK_SEED=%d go test -count=1 -run '^%s$' ./client\n\n%s",
		r.seed, fmt.Sprintf(format, args...), r.seed, testOfDevices, strings.Join(r.script, "\n"))
	panic(failure{})
}

// stepsPerRun is how long the network is unkind.
const stepsPerRun = 47

// play is the whole history; false when it failed.
func (r *run) play() (ok bool) {
	defer func() {
		what := recover()
		if _, failed := what.(failure); what != nil && !failed {
			panic(what)
		}
		ok = what == nil
		for _, d := range r.devices {
			d.now.dead.Store(true)
			_ = d.now.client.Close() // a second time, unless the run failed
			_ = os.Remove(d.path)
		}
		for _, s := range r.net.streams {
			s.cut()
		}
		synctest.Wait()
	}()
	r.server.fail = r.fail
	r.begin()
	r.settle("at first")
	for r.step = 1; r.step <= stepsPerRun; r.step++ {
		r.oneStep()
		r.quiet()
	}
	r.heal()
	r.compare()
	for _, d := range r.devices {
		d.now.end()
	}
	return true
}

// quiet waits until nobody has anything to do, and looks at what there is.
func (r *run) quiet() {
	synctest.Wait()
	r.net.collect()
	for _, d := range r.devices {
		if d.now.where != "" && d.now.dead.Load() {
			r.note("%s: killed at %q", d.now, d.now.where)
			r.happen(clientKill)
			d.again()
			synctest.Wait()
			r.net.collect()
		}
		r.look(d)
	}
}

// oneStep is one thing that happens.
func (r *run) oneStep() {
	if r.down > 0 && r.step >= r.down {
		r.up()
	}
	switch n := r.IntN(100); {
	case n < 50:
		for range 1 + r.IntN(3) {
			r.move()
			synctest.Wait()
			r.net.collect()
		}
	case n < 73:
		r.use(r.devices[r.IntN(len(r.devices))])
	case n < 84:
		r.elsewhere()
	case n < 89:
		r.pass([]time.Duration{time.Second / 3, 2 * time.Second, 10 * time.Second, 45 * time.Second}[r.IntN(4)])
	default:
		r.strike()
	}
}

// pass lets time go by.
func (r *run) pass(d time.Duration) {
	r.note("%v pass", d)
	r.sleep(d)
}

// heal takes all faults away and lets everything happen that is left to happen.
func (r *run) heal() {
	r.step++
	r.note("the network is kind")
	if r.down > 0 {
		r.up()
	}
	for _, d := range r.devices {
		d.now.fuse.Store(0)
		d.now.offline.Store(false)
	}
	for _, p := range r.net.flying {
		p.due = 0
	}
	for _, s := range r.net.streams {
		s.due = 0
	}
	r.settle("at last")
}

// settle delivers everything, in order, until nothing moves any more.
func (r *run) settle(when string) {
	for range 200 {
		r.quiet()
		for r.deliverOldest() {
			r.quiet()
		}
		if r.settled() {
			return
		}
		r.sleep(5 * time.Second)
	}
	for _, d := range r.devices {
		r.note("%s: %+v", d.now, d.now.client.Status())
	}
	r.fail("%s, it never becomes quiet", when)
}

// settled tells whether the devices have all that there is, and nothing left to do.
func (r *run) settled() bool {
	for _, d := range r.devices {
		_, listed := d.now.client.Sessions()
		status := d.now.client.Status()
		if !listed || !d.now.client.Settled() || !status.Live || status.Pending > 0 {
			return false
		}
	}
	return true
}
