package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark/httpapi"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		if err := serveChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

const (
	quickKills = 12
	soakKills  = 200
	// programKills are those of the program as it is shipped, beside the others.
	programKills = 40
	// actsPerLife bounds the load between two kills. A kill that needs more is never reached.
	actsPerLife = 5000

	loaded    = "after the load"
	restarted = "after the restart"
	resolved  = "after everything was answered"
	soakEnv   = "TIDEMARK_SOAK"
	seedEnv   = "TIDEMARK_CHAOS_SEED"
	killsEnv  = "TIDEMARK_CHAOS_KILLS"
)

// number reads a setting of the test from the environment.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// siege is one database, the processes that serve it one after the other, and what they answered.
type siege struct {
	t        *testing.T
	seed     uint64
	store    store
	journal  *journal
	worlds   []*world
	clients  []*client
	watchers []*watcher
	rng      *rand.Rand
	launch   func(t *testing.T, in store, kill *blow) *server
	places   []place // where its servers can be killed

	server *server
	wire   *wire
	kills  []blow
	// reopened is how many statements the last start took that found a database; zero before one.
	reopened int

	terms, lsns map[string]uint64
	counted     int // rows that were compared with a recount
	unanswered  int // requests
	unknown     int // operations in them
	survived    int // of these, those with a receipt that had been carried out
}

func newSiege(t *testing.T, in store, seed uint64) *siege {
	s := &siege{
		t: t, seed: seed, store: in, journal: &journal{},
		rng:    rand.New(rand.NewPCG(seed, 0)),
		launch: launch, places: append([]place{answered, resting, opening, loading}, inside...),
		terms: map[string]uint64{}, lsns: map[string]uint64{},
	}
	for i, name := range []string{"alpha", "beta"} {
		w := &world{
			name: name, service: token(t, name, "the-service", httpapi.RoleService),
			tokens: map[string]string{}, heads: map[string]head{}, parents: map[string]string{},
			channels: []string{"c0", "c1", "c2", "d0", "d1"},
		}
		s.worlds = append(s.worlds, w)
		s.watchers = append(s.watchers, newWatcher(w))
		for n := range clientsPerWorkspace {
			id := i*clientsPerWorkspace + n
			c := &client{
				id: id, world: w, journal: s.journal, states: map[placeOf]readState{},
				rng: rand.New(rand.NewPCG(seed, uint64(id+1))), cuts: s.store.cut != nil,
			}
			for k := range membersPerClient {
				m := fmt.Sprintf("m%d", n*membersPerClient+k)
				w.members, c.members = append(w.members, m), append(c.members, m)
				w.tokens[m] = token(t, name, m, httpapi.RoleMember)
			}
			for k := n; k < len(w.channels); k += clientsPerWorkspace {
				c.owned = append(c.owned, w.channels[k])
			}
			s.clients = append(s.clients, c)
		}
	}
	return s
}

// start launches a process; false when the blow killed it while it started.
func (s *siege) start(kill *blow) bool {
	s.t.Helper()
	s.server = s.launch(s.t, s.store, kill)
	if s.server == nil {
		return false
	}
	if len(s.kills) > 0 {
		s.reopened = s.server.opened
	}
	s.wire = dial(s.server)
	return true
}

// watch has the streams opened, or resumed.
func (s *siege) watch() {
	for _, w := range s.watchers {
		w.open(s.t.Context(), s.wire)
	}
}

// end closes what hangs on the process that is gone.
func (s *siege) end() {
	for _, w := range s.watchers {
		w.close()
	}
	s.wire.close()
}

// bury waits for the end of the killed process and looks at what it complained of.
func (s *siege) bury() {
	s.t.Helper()
	s.server.wait(s.t)
	s.end()
	if troubles := s.server.troubles(); len(troubles) > 0 {
		s.fail("running", troubles...)
	}
}

// found makes both workspaces.
func (s *siege) found() {
	s.t.Helper()
	do := func(c *client, acts []*act) {
		for _, a := range acts {
			if !c.do(s.t.Context(), s.wire, a) || c.fault != nil || !a.applied() {
				s.t.Fatalf("founding: %s (%v)\n%s", a, c.fault, s.server.errors)
			}
		}
	}
	for i, w := range s.worlds {
		admin := token(s.t, w.name, "the-admin", httpapi.RoleAdmin)
		do(s.clients[i*clientsPerWorkspace], s.clients[i*clientsPerWorkspace].found(admin))
	}
	for _, c := range s.clients {
		do(c, c.settle())
	}
}

// load has every client act until the server is gone; false when it is not after so many acts.
func (s *siege) load(most int) bool {
	s.t.Helper()
	l := &life{wire: s.wire}
	var acts atomic.Int64
	acts.Store(int64(most))
	var all sync.WaitGroup
	for _, c := range s.clients {
		all.Go(func() { c.run(s.t.Context(), l, &acts) })
	}
	all.Wait()
	for _, c := range s.clients {
		if c.fault != nil {
			s.fail("under load", c.fault.Error())
		}
	}
	return l.down.Load()
}

// plan draws the next kill. Every place has its turn.
func (s *siege) plan(n int) blow {
	round := rand.New(rand.NewPCG(s.seed, uint64(1000+n/len(s.places))))
	b := blow{Place: s.places[round.Perm(len(s.places))[n%len(s.places)]]}
	most := map[place]int{
		answered: 300, resting: 300, opening: max(1, s.reopened), loading: 600, writing: 400, answering: 150,
	}[b.Place]
	if most == 0 {
		most = 50
	}
	b.After = 1 + s.rng.IntN(most)
	if b.Place == syncing {
		b.Spin = 1 << s.rng.IntN(23)
	}
	return b
}

// strike runs the load into a planned kill, or starts into it.
func (s *siege) strike(b blow) {
	s.t.Helper()
	s.kills = append(s.kills, b)
	if b.Place == opening {
		s.server.strike()
		s.bury()
		if s.start(&b) {
			s.bury() // what a start leaves to do beside it may come after the word that it serves
		}
		return
	}
	switch b.Place {
	case resting:
		if s.load(b.After) {
			s.fail("under load", "the server died before its time")
		}
		s.judge(loaded)
		s.server.strike()
		s.bury()
		return
	case answered:
		s.journal.alarmAfter(b.After, s.server.strike)
	default:
		s.server.arm(s.t, b)
	}
	if s.rng.IntN(2) == 0 { // a client that was away for longer has more to catch up with
		pick(s.rng, s.watchers).close()
	}
	if !s.load(actsPerLife) {
		s.fail("under load", "the kill was never reached")
	}
	s.bury()
}

// fail ends the test with everything needed to understand and repeat it.
func (s *siege) fail(when string, faults ...string) {
	s.t.Helper()
	const most = 10
	if n := len(faults); n > most {
		faults = append(faults[:most], fmt.Sprintf("and %d more", n-most))
	}
	kill := "none yet"
	if n := len(s.kills); n > 0 {
		kill = fmt.Sprintf("%d (%s)", n, s.kills[n-1])
	}
	log := ""
	if s.server != nil {
		log = s.server.errors.String()
	}
	s.t.Fatalf("%s:\n%s\n\nseed %d, kill %s\nlast operations:\n%s\n%s\nagain with:\n"+
		"%s=%d %s=%d go test -race -count=1 -run '^%s$' ./internal/chaos",
		when, strings.Join(faults, "\n"), s.seed, kill, s.journal.last(25), log,
		seedEnv, s.seed, killsEnv, max(1, len(s.kills)), s.t.Name())
}

// Nothing acknowledged is lost by kill -9 wherever it strikes, nothing is there twice, and every
// count is what a recount of the rows gives.
//
// covers: RT-355
func TestKills(t *testing.T) {
	s := newSiege(t, inFile(t), uint64(number(t, seedEnv, 1)))
	kills := quickKills
	if soaking() {
		kills = soakKills
		for _, w := range s.worlds {
			w.floods = true
		}
	}
	s.endure(number(t, killsEnv, kills))
}

// The same holds for the program as it is shipped. It has no trap within, so that it is killed
// from outside only, and building it takes a while: this is for the soak.
func TestKillsOfTheProgram(t *testing.T) {
	if !soaking() {
		t.Skip("only with " + soakEnv)
	}
	s := newSiege(t, inFile(t), uint64(number(t, seedEnv, 1)))
	s.launch, s.places = launcher(build(t)), []place{answered, answered, answered, resting}
	s.endure(number(t, killsEnv, programKills))
}

func soaking() bool { return os.Getenv(soakEnv) != "" }

// endure runs the load through so many kills and judges after each.
func (s *siege) endure(kills int) {
	s.t.Helper()
	began := time.Now()
	s.start(nil)
	s.found()
	s.watch()
	for n := range kills {
		s.strike(s.plan(n))
		s.start(nil)
		s.watch()
		s.resolve(s.judge(restarted))
		s.judge(resolved)
		if n%20 == 0 {
			s.store.check(s.t)
		}
	}
	s.server.kill()
	s.end()
	s.report(time.Since(began))
}

func (s *siege) report(took time.Duration) {
	places := map[place]int{}
	for _, b := range s.kills {
		places[b.Place]++
	}
	events, resumed := 0, 0
	for _, w := range s.watchers {
		events, resumed = events+w.events, resumed+w.resumed
	}
	s.t.Logf("seed %d: %d kills %v in %s", s.seed, len(s.kills), places, took.Round(time.Second))
	s.t.Logf("%d requests answered; %d without an answer, in them %d operations, of which %d with "+
		"a receipt had been carried out", s.journal.answers, s.unanswered, s.unknown, s.survived)
	s.t.Logf("%d served rows equal a recount; %d stream events, %d streams resumed", s.counted,
		events, resumed)
	s.t.Logf("operations:%s", s.journal.tally())
}
