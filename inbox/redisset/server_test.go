package redisset

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"
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
	client rueidis.Client
}

// newServer starts one. That none is installed is a failure: what is not tried out is not known.
func newServer(t *testing.T) *server {
	t.Helper()
	s := placeServer(t)
	s.start()
	s.client = s.connect()
	t.Cleanup(func() {
		s.client.Close()
		s.stop()
	})
	return s
}

// placeServer has a place for one.
func placeServer(t *testing.T) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "redis") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return &server{t: t, socket: filepath.Join(dir, "s")}
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

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
}

func (s *server) options() rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress: []string{s.socket}, DisableCache: true, DisableRetry: true,
		DialCtxFn: func(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		},
	}
}

func (s *server) connect() rueidis.Client {
	s.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; {
		c, err := rueidis.NewClient(s.options())
		if err == nil {
			return c
		}
		if time.Now().After(end) {
			s.t.Fatal(err)
		}
	}
}

// do sends a command.
func (s *server) do(args ...string) rueidis.RedisResult {
	s.t.Helper()
	return s.client.Do(s.t.Context(), s.client.B().Arbitrary(args...).Build())
}

func (s *server) number(args ...string) int64 {
	s.t.Helper()
	n, err := s.do(args...).AsInt64()
	if err != nil {
		s.t.Fatalf("%v: %v", args, err)
	}
	return n
}
