//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark/internal/servers"
)

func TestMain(m *testing.M) {
	if os.Getenv("TIDEMARK_TEST_SHOW_REDIS") != "" {
		os.Stdout.WriteString(os.Getenv("TIDEMARK_TEST_REDIS"))
		os.Exit(7)
	}
	goleak.VerifyTestMain(m)
}

// own gives the test a directory for temporary files, so that what is left can be seen.
func own(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return dir
}

func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func needRedis(t *testing.T) {
	t.Helper()
	if _, err := servers.Kinds[2].Find(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// A server is started, answers on its own port, and is gone with its directory when the standard
// input ends.
func TestForeground(t *testing.T) {
	needRedis(t)
	dir := own(t)
	in, hold := io.Pipe()
	out, to := io.Pipe()
	ended := make(chan int, 1)
	var complaints bytes.Buffer
	go func() {
		p := program{in: in, out: to, err: &complaints, ci: true}
		ended <- p.run(context.Background(), []string{"--only", "redis"})
		to.Close() // so that the test sees an end if nothing was started
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %s", err, complaints.String())
	}
	name, dsn, _ := strings.Cut(strings.TrimSpace(line), "=")
	u, err := url.Parse(dsn)
	if err != nil || name != "TIDEMARK_TEST_REDIS" {
		t.Fatalf("%q: %v", line, err)
	}
	ping(t, u.Host)
	hold.Close()
	if code := <-ended; code != 0 {
		t.Errorf("code %d: %s", code, complaints.String())
	}
	if conn, err := net.Dial("tcp", u.Host); err == nil {
		conn.Close()
		t.Error("the server still listens")
	}
	empty(t, dir)
}

func ping(t *testing.T, address string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := servers.Kinds[2].Answers(conn); err != nil {
		t.Fatal(err)
	}
}

// A command sees the variable, its exit code is passed on, and nothing is left.
func TestRunCommand(t *testing.T) {
	needRedis(t)
	dir := own(t)
	t.Setenv("TIDEMARK_TEST_SHOW_REDIS", "1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, complaints bytes.Buffer
	p := program{in: strings.NewReader(""), out: &out, err: &complaints, ci: true}
	code := p.run(t.Context(), []string{"--only=redis", "run", "--", self})
	if code != 7 || !strings.HasPrefix(out.String(), "redis://127.0.0.1:") {
		t.Errorf("code %d, %q, %s", code, out.String(), complaints.String())
	}
	empty(t, dir)
}

// Without its program a server is a line, and under CI a failure before any command.
func TestMissing(t *testing.T) {
	dir := own(t)
	t.Setenv("PATH", "")
	kept := servers.Kinds
	defer func() { servers.Kinds = kept }()
	servers.Kinds = []*servers.Kind{{Name: "redis", Binaries: []string{"no-such-server"}, Packages: "redis-server"}}
	for _, ci := range []bool{false, true} {
		var out, complaints bytes.Buffer
		p := program{in: strings.NewReader(""), out: &out, err: &complaints, ci: ci}
		code := p.run(t.Context(), []string{"--only", "redis"})
		if want := map[bool]int{false: 0, true: 1}[ci]; code != want {
			t.Errorf("ci %t: code %d, want %d", ci, code, want)
		}
		if !strings.Contains(complaints.String(), "apt-get install redis-server") {
			t.Errorf("said %q", complaints.String())
		}
	}
	empty(t, dir)
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{"--only", "oracle"}, {"walk"}, {"run"}, {"run", "--"}, {"--none"},
	} {
		p := program{in: strings.NewReader(""), out: io.Discard, err: io.Discard}
		if code := p.run(t.Context(), args); code != 2 {
			t.Errorf("%v: code %d, want 2", args, code)
		}
	}
}
