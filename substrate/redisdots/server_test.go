package redisdots

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark/internal/dbtest"
	"github.com/tidemark-im/tidemark/substrate"
)

// A client that is closed may still be about to look whether its server has come back.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// server is a private server that dots are kept in.
type server struct {
	*dbtest.Redis
	t *testing.T
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{dbtest.NewRedis(t), t}
	s.Start()
	return s
}

// dots returns a store of its own connections, which is connected.
func (s *server) dots() *Dots {
	s.t.Helper()
	d := New(s.Option())
	s.t.Cleanup(d.Close)
	until(s.t, func() bool { _, err := d.connect(); return err == nil })
	return d
}

// do sends a command and fails the test if it is refused.
func (s *server) do(d *Dots, args ...string) rueidis.RedisResult {
	s.t.Helper()
	c, err := d.get()
	if err != nil {
		s.t.Fatal(err)
	}
	res := c.Do(s.t.Context(), c.B().Arbitrary(args...).Build())
	if err := res.Error(); err != nil && !rueidis.IsRedisNil(err) {
		s.t.Fatalf("%v: %v", args, err)
	}
	return res
}

// until waits for what happens elsewhere.
func until(t *testing.T, done func() bool) {
	t.Helper()
	end := time.NewTimer(time.Minute)
	defer end.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatal("it did not happen")
		}
	}
}

// quick are limits for tests: everything is tried again soon.
var quick = substrate.Limits{
	Keep: 3 * time.Second, Every: 30 * time.Millisecond, Coalesce: 5 * time.Millisecond,
	Timeout: 2 * time.Second, Patience: 20 * time.Second,
}

// running starts a publisher of a source and returns it.
func running(t *testing.T, d *Dots, source substrate.Source, limits substrate.Limits) *substrate.Publisher {
	t.Helper()
	p, err := substrate.NewPublisher(substrate.PublisherOptions{Store: d, Source: source, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	inBackground(t, p.Run)
	return p
}

// reading starts a reader and returns it.
func reading(t *testing.T, d *Dots, limits substrate.Limits) *substrate.Reader {
	t.Helper()
	r, err := substrate.NewReader(substrate.ReaderOptions{Store: d, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	inBackground(t, r.Run)
	return r
}

func inBackground(t *testing.T, run func(context.Context)) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var ended sync.WaitGroup
	ended.Go(func() { run(ctx) })
	t.Cleanup(func() {
		stop()
		ended.Wait()
	})
}
