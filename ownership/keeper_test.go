package ownership

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// shared is a ledger for processes that run, with the time of the test.
type shared struct {
	mu    sync.Mutex
	l     *ledger
	began time.Time
	deaf  bool // it does not answer
}

var errDeaf = errors.New("no answer")

func (s *shared) do(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deaf {
		return errDeaf
	}
	s.l.now = time.Since(s.began)
	return f()
}

func (s *shared) Enroll(c context.Context, n facts.NodeInfo, ttl time.Duration) (e uint64, err error) {
	err = s.do(func() (err error) { e, err = s.l.Enroll(c, n, ttl); return err })
	return e, err
}

func (s *shared) Renew(c context.Context, n facts.Seat, ttl time.Duration) error {
	return s.do(func() error { return s.l.Renew(c, n, ttl) })
}

func (s *shared) Survey(c context.Context) (v facts.Survey, err error) {
	err = s.do(func() (err error) { v, err = s.l.Survey(c); return err })
	return v, err
}

func (s *shared) Claim(
	c context.Context, n facts.Seat, claims []facts.Claim,
) (rows []facts.WorkspaceRow, err error) {
	err = s.do(func() (err error) { rows, err = s.l.Claim(c, n, claims); return err })
	return rows, err
}

func (s *shared) Release(c context.Context, n facts.Seat, claims []facts.Claim) error {
	return s.do(func() error { return s.l.Release(c, n, claims) })
}

func (s *shared) Retire(c context.Context, n facts.Seat) error {
	return s.do(func() error { return s.l.Retire(c, n) })
}

// PutWorkspace implements facts.Registry.
func (s *shared) PutWorkspace(
	c context.Context, o facts.PutWorkspace,
) (row facts.WorkspaceRow, created bool, err error) {
	err = s.do(func() (err error) { row, created, err = s.l.PutWorkspace(c, o); return err })
	return row, created, err
}

// server is a process with a keeper that runs.
type server struct {
	*Keeper
	mu     sync.Mutex
	serves map[readstate.WorkspaceID]uint64
	stop   context.CancelFunc
	ended  chan error
}

func (s *server) Adopt(_ context.Context, w facts.WorkspaceRow) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serves[w.ID] = w.Term
	return nil
}

func (s *server) Release(_ context.Context, w readstate.WorkspaceID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.serves, w)
	return nil
}

func (s *server) has() []readstate.WorkspaceID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.serves))
}

func (s *shared) start(t *testing.T, name string) *server {
	t.Helper()
	p := &server{serves: map[readstate.WorkspaceID]uint64{}, ended: make(chan error, 1)}
	var err error
	p.Keeper, err = New(Options{
		Registry: s, Engine: p, TTL: 3 * time.Second,
		Self: facts.NodeInfo{Node: name, Address: "http://" + name},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	go func() { p.ended <- p.Run(ctx) }()
	return p
}

// settle lets a while pass.
func settle(d time.Duration) {
	<-time.NewTimer(d).C // by the test's own clock
	synctest.Wait()
}

// A node that dies is replaced within two lease periods, and by nobody before its lease has ended.
//
// covers: RT-007
func TestADeadNodeIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shared{l: newLedger(10), began: time.Now()}
		a, b := s.start(t, "a"), s.start(t, "b")
		settle(time.Second * 3)
		if n, m := len(a.has()), len(b.has()); n+m != 10 || n == 0 || m == 0 {
			t.Fatalf("a has %d and b %d", n, m)
		}
		a.stop() // without a word to anybody, as a process that was killed
		if err := <-a.ended; !errors.Is(err, context.Canceled) || a.Serving() || len(a.has()) > 0 {
			t.Errorf("a ended with %v, serving %t, with %v", err, a.Serving(), a.has())
		}
		settle(time.Second)
		if len(b.has()) == 10 {
			t.Error("b has everything while the lease of a lasts")
		}
		settle(5 * time.Second)
		if len(b.has()) != 10 {
			t.Errorf("after two lease periods b has %v", b.has())
		}
		if owner, ok := b.Picture().Owner("w3"); !ok || owner != "http://b" {
			t.Errorf("w3 is reached at %q, %t", owner, ok)
		}
		b.stop()
		<-b.ended
	})
}

// While nobody can be asked, everything is served until the lease is over, and nothing afterwards; then
// it goes on where nobody else has claimed.
func TestNothingIsServedWithoutALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shared{l: newLedger(2), began: time.Now()}
		a := s.start(t, "a")
		settle(time.Second)
		deaf := func(d bool) { s.mu.Lock(); s.deaf = d; s.mu.Unlock() }
		deaf(true)
		settle(time.Second)
		if !a.Serving() || a.Left() <= 0 || a.Left() > 3*time.Second {
			t.Errorf("within its lease a serves: %t, for %v", a.Serving(), a.Left())
		}
		settle(2 * time.Second)
		if a.Serving() || a.Left() > 0 {
			t.Errorf("beyond its lease a serves: %t, for %v", a.Serving(), a.Left())
		}
		deaf(false)
		settle(time.Second)
		if !a.Serving() || len(a.has()) != 2 || a.serves["w0"] != 2 {
			t.Errorf("renewed, a serves: %t, %v", a.Serving(), a.serves)
		}
		a.stop()
		<-a.ended
	})
}

// A node that drains gives everything up before it ends, and others have it at once.
func TestADrainedNodeLeavesEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shared{l: newLedger(10), began: time.Now()}
		a, b := s.start(t, "a"), s.start(t, "b")
		settle(3 * time.Second)
		a.Drain()
		a.Drain()
		if err := <-a.ended; err != nil || len(a.has()) > 0 || a.Serving() {
			t.Errorf("a ended with %v, %v", err, a.has())
		}
		settle(time.Second)
		if len(b.has()) != 10 {
			t.Errorf("b has %v", b.has())
		}
		b.stop()
		<-b.ended
	})
}

// Of two processes under one name the later one stays.
func TestALaterProcessExpelsAnEarlierOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shared{l: newLedger(4), began: time.Now()}
		first := s.start(t, "a")
		settle(time.Second)
		second := s.start(t, "a")
		if err := <-first.ended; !errors.Is(err, ErrExpelled) || len(first.has()) > 0 || first.Serving() {
			t.Errorf("the first ended with %v, %v", err, first.has())
		}
		settle(time.Second)
		if len(second.has()) != 4 || !second.Serving() {
			t.Errorf("the second has %v", second.has())
		}
		second.stop()
		<-second.ended
	})
}

// What makes no sense is refused.
func TestBadOptions(t *testing.T) {
	s, p := &shared{}, &server{}
	good := Options{Registry: s, Engine: p, Self: facts.NodeInfo{Node: "a"}}
	for name, change := range map[string]func(*Options){
		"no registry": func(o *Options) { o.Registry = nil },
		"no engine":   func(o *Options) { o.Engine = nil },
		"no name":     func(o *Options) { o.Self.Node = "" },
		"negative":    func(o *Options) { o.TTL = -time.Second },
		"too slow":    func(o *Options) { o.TTL, o.Every = time.Second, time.Second },
	} {
		o := good
		change(&o)
		if _, err := New(o); !errors.Is(err, facts.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
}
