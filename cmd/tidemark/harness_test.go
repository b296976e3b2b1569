package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// asProgram makes the test binary be the program: tests that need a process of their own start
// the binary again with this variable set.
const asProgram = "TIDEMARK_TEST_AS_PROGRAM"

// fileSize, when set, bounds the size of files that the program may write, where a system can.
const fileSize = "TIDEMARK_TEST_FILE_SIZE"

// kept are the variables that tests go by, not the program.
var kept = []string{
	"TIDEMARK_TRACE", "TIDEMARK_SOAK", "TIDEMARK_TEST_POSTGRES", "TIDEMARK_TEST_MYSQL",
	"TIDEMARK_TEST_REDIS",
}

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		limitFiles()
		main()
	}
	for _, name := range os.Environ() {
		if name, _, _ = strings.Cut(name, "="); strings.HasPrefix(name, "TIDEMARK_") && !slices.Contains(kept, name) {
			os.Unsetenv(name) // of whoever runs the tests
		}
	}
	// A client of Redis that is closed may still be about to look whether its server has come back.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

const (
	testSecret  = "0123456789abcdef0123456789abcdef"
	otherSecret = "fedcba9876543210fedcba9876543210"
)

// outcome is what a command left behind.
type outcome struct {
	code        int
	out, errors string
}

func run(t *testing.T, args ...string) outcome {
	t.Helper()
	return runFor(t.Context(), t, args...)
}

func runFor(ctx context.Context, t *testing.T, args ...string) outcome {
	t.Helper()
	var out, errors bytes.Buffer
	m := Main{
		Stdout: &out, Stderr: &errors, Now: time.Now,
		Browse: func(context.Context, string) error { t.Error("a browser was opened"); return nil },
	}
	code := m.Run(ctx, args)
	return outcome{code, out.String(), errors.String()}
}

// fails expects a code and one line that says why.
func (o outcome) fails(t *testing.T, code int, says string) {
	t.Helper()
	if o.code != code || !strings.Contains(o.errors, says) {
		t.Errorf("code %d, %q; want %d and %q", o.code, o.errors, code, says)
	}
	if strings.Count(o.errors, "\n") != 1 || !strings.HasPrefix(o.errors, "tidemark: ") {
		t.Errorf("not one clear line: %q", o.errors)
	}
}

func (o outcome) done(t *testing.T) outcome {
	t.Helper()
	if o.code != exitDone {
		t.Fatalf("code %d: %s", o.code, o.errors)
	}
	return o
}

// secretFile writes secrets, one a line.
func secretFile(t *testing.T, secrets ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte(strings.Join(secrets, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// served is a server that runs in this process.
type served struct {
	url, admin string
	log        *lines
	stop       context.CancelFunc
	ended      chan int
}

// lines collects JSON log lines, and tells when one with a message arrives.
type lines struct {
	mu   sync.Mutex
	all  []map[string]any
	news chan struct{}
}

func newLines() *lines { return &lines{news: make(chan struct{}, 1)} }

func (l *lines) collect(r io.Reader) {
	in := bufio.NewScanner(r)
	for in.Scan() {
		line := map[string]any{}
		if json.Unmarshal(in.Bytes(), &line) != nil {
			line["msg"] = in.Text()
		}
		l.mu.Lock()
		l.all = append(l.all, line)
		l.mu.Unlock()
		select {
		case l.news <- struct{}{}:
		default:
		}
	}
	close(l.news)
}

func (l *lines) find(msg string) map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if text, _ := line["msg"].(string); strings.HasPrefix(text, msg) {
			return line
		}
	}
	return nil
}

// await returns the first line whose message begins so, nil when the log ends without one.
func (l *lines) await(msg string) map[string]any {
	for {
		line := l.find(msg)
		if line != nil {
			return line
		}
		if _, more := <-l.news; !more {
			return l.find(msg)
		}
	}
}

// serve starts a server on ports of the system's choice and waits until it serves.
func serve(t *testing.T, args ...string) *served {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	s := &served{log: newLines(), stop: stop, ended: make(chan int, 1)}
	go s.log.collect(r)
	args = append([]string{
		"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--log-format", "json",
	}, args...)
	go func() {
		m := Main{Stdout: io.Discard, Stderr: w, Now: time.Now, Browse: browse}
		s.ended <- m.Run(ctx, args)
		w.Close()
	}()
	t.Cleanup(func() { s.end(t) })
	line := s.log.await("serving")
	if line == nil {
		t.Fatalf("the server did not start: %v", s.log.all)
	}
	s.url, s.admin = line["url"].(string), line["admin"].(string)
	return s
}

// end asks the server to end and returns its exit code.
func (s *served) end(t *testing.T) int {
	t.Helper()
	s.stop()
	code := <-s.ended
	s.ended <- code
	http.DefaultClient.CloseIdleConnections()
	return code
}

// ask makes a request and returns status and body.
func ask(t *testing.T, method, url, token, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// sign signs a token with the program itself.
func sign(t *testing.T, secret string, args ...string) string {
	t.Helper()
	args = append([]string{"token", "--jwt-secret-file", secret}, args...)
	return strings.TrimSpace(run(t, args...).done(t).out)
}

func database(t *testing.T) (flag, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "facts.db")
	return "--facts=sqlite:" + path, path
}
