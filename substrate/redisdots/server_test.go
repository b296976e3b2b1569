package redisdots

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark/substrate"
)

// A client that is closed may still be about to look whether its server has come back.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// server is a private server that listens on a Unix socket and on no port.
type server struct {
	t      *testing.T
	socket string
	cmd    *exec.Cmd
}

// newServer starts one. That none is installed is a failure: what is not tried out is not known.
func newServer(t *testing.T) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "dots") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &server{t: t, socket: filepath.Join(dir, "s")}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *server) start() {
	s.t.Helper()
	var binary string
	var err error
	for _, name := range []string{"redis-server", "valkey-server"} {
		if binary, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err != nil {
		s.t.Fatalf("redis-server or valkey-server is needed: %v", err)
	}
	s.cmd = exec.Command(binary, "--port", "0", "--unixsocket", s.socket, "--save", "",
		"--appendonly", "no", "--dir", filepath.Dir(s.socket))
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
}

// kill ends it as kill -9 does. What it held is gone.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
	_ = os.Remove(s.socket)
}

func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) option() rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress: []string{s.socket}, DisableCache: true, DisableRetry: true,
		DialCtxFn: func(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		},
	}
}

// dots returns a store of its own connections, which is connected.
func (s *server) dots() *Dots {
	s.t.Helper()
	d := New(s.option())
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
