package dbtest

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/redis/rueidis"
)

// Redis is a private Redis or Valkey that listens on a Unix socket and on no port. It is for one
// goroutine, and ends with its test.
type Redis struct {
	t      *testing.T
	socket string
	cmd    *exec.Cmd // nil while it does not run
}

// NewRedis makes a place for a server, which is not started.
func NewRedis(t *testing.T) *Redis {
	t.Helper()
	dir, err := os.MkdirTemp("", "redis") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	s := &Redis{t: t, socket: filepath.Join(dir, "s")}
	t.Cleanup(func() {
		s.Kill()
		_ = os.RemoveAll(dir)
	})
	return s
}

// Start starts it, empty. That none is installed is a failure: what is not tried out is not known.
func (s *Redis) Start() {
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
	args := []string{
		"--port", "0", "--unixsocket", s.socket, "--save", "", "--appendonly", "no",
		"--dir", filepath.Dir(s.socket),
	}
	s.cmd = exec.Command(binary, args...) //nolint:noctx // Kill ends it
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
}

// Kill ends it as kill -9 does. What it held is gone. One that does not run stays so.
func (s *Redis) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
	_ = os.Remove(s.socket)
	s.cmd = nil
}

// Signal sends a signal to a server that runs.
func (s *Redis) Signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Option is how a client reaches it.
func (s *Redis) Option() rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress: []string{s.socket}, DisableCache: true, DisableRetry: true,
		DialCtxFn: func(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		},
	}
}
