package conform_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/conformance"
	"github.com/tidemark-im/tidemark/internal/conform/retold"
	"github.com/tidemark-im/tidemark/internal/conform/written"
)

// hub is a server with tokens for whomever.
func hub(t *testing.T) *conformance.Server {
	t.Helper()
	started, err := retold.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := started.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := conformance.NewServer(started.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	s.Client = started.Client
	s.Tokens = func(workspace, as string) (string, error) {
		switch as {
		case conformance.RoleAdmin:
			return started.Token("*", "root", "admin")
		case conformance.RoleService:
			return started.Token(workspace, "backend", "service")
		}
		return started.Token(workspace, as, "member")
	}
	return s
}

func hubCases(t *testing.T) []conformance.Case {
	t.Helper()
	suites, err := conformance.LoadHub()
	if err != nil {
		t.Fatal(err)
	}
	var out []conformance.Case
	for _, s := range suites {
		out = append(out, s.Cases...)
	}
	return out
}

// The hub's cases in the repository are what the scenarios say today.
func TestHubCasesAreFresh(t *testing.T) {
	const dir = "../../conformance/cases/hub"
	suites, err := retold.Make(t.Context(), "../../testdata/scenarios")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range suites {
		want, err := written.Server(s)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, s.Suite+".json")
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what is made today; write it by go generate ./internal/conform (%v)", name, err)
		}
	}
	there, err := filepath.Glob(dir + "/*")
	if err != nil || len(there) != len(suites) {
		t.Errorf("%d files are there, %d are made: %v", len(there), len(suites), err)
	}
}

// own is what a run of a case puts before the names of its own.
var own = regexp.MustCompile(`[a-z0-9-]+-[0-9a-f]{12}-[0-9a-f]{8}`)

// canned answers with what a server answered before, in its order, and alters one answer.
type canned struct {
	answers []*http.Response
	bodies  [][]byte
	was     string // own names begin with, when the answers were kept
	now     string // and now
	next    int
	at      int // the answer to alter, from 1; zero for none
	alter   func(status int, body []byte) (int, []byte)
}

// keep keeps what another transport brings.
func (c *canned) keep(of http.RoundTripper) http.RoundTripper {
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		if c.was == "" {
			c.was = namesOf(req)
		}
		resp, err := of.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		var body bytes.Buffer
		if _, err := body.ReadFrom(resp.Body); err != nil {
			return nil, err
		}
		resp.Body.Close()
		c.answers, c.bodies = append(c.answers, resp), append(c.bodies, body.Bytes())
		return answerOf(resp.StatusCode, body.Bytes()), nil
	})
}

func (c *canned) RoundTrip(req *http.Request) (*http.Response, error) {
	if c.next == 0 {
		c.now = namesOf(req)
	}
	status, body := c.answers[c.next].StatusCode, c.bodies[c.next]
	body = bytes.ReplaceAll(body, []byte(c.was), []byte(c.now))
	if c.next++; c.next == c.at {
		status, body = c.alter(status, body)
	}
	return answerOf(status, body), nil
}

// namesOf is what own names begin with in a request, the first of its run.
func namesOf(req *http.Request) string {
	text := req.URL.Path
	if req.GetBody != nil {
		if body, err := req.GetBody(); err == nil {
			var b bytes.Buffer
			_, _ = b.ReadFrom(body) // a buffer in memory
			text += b.String()
		}
	}
	return own.FindString(text)
}

func answerOf(status int, body []byte) *http.Response {
	return &http.Response{StatusCode: status, Body: readCloser{bytes.NewReader(body)}}
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Every case of the hub holds on this server, and each step notices when a part of what it expects is
// otherwise. There are many of them: one part of each step is altered, another one at each.
func TestTheHubConforms(t *testing.T) {
	alterAll(t, hub(t), hubCases(t), 1)
}

// alterAll runs cases against a server, and against what it answered with parts of what is expected
// altered, each by itself: at most so many of a step.
func alterAll(t *testing.T, s *conformance.Server, all []conformance.Case, most int) {
	t.Helper()
	live := s.Client.Transport
	altered := 0
	for _, c := range all {
		answers := &canned{}
		s.Client = &http.Client{Transport: answers.keep(live)}
		r, err := s.Run(t.Context(), &c)
		if err != nil || !r.OK() {
			t.Errorf("%s, step %d: %s, %v", c.ID, r.Step, r.Problem, err)
			continue
		}
		s.Client = &http.Client{Transport: answers}
		for i, step := range c.Steps {
			ways := alterations(t, &step)
			parts := slices.Sorted(maps.Keys(ways))
			for n := range min(most, len(parts)) {
				what := parts[(altered+n)%len(parts)]
				answers.next, answers.at, answers.alter = 0, i+1, ways[what]
				if r, err := s.Run(t.Context(), &c); err != nil || r.OK() || r.Step != i+1 {
					t.Errorf("%s, step %d: nobody notices %s: %+v, %v", c.ID, i+1, what, r, err)
				}
			}
			altered += min(most, len(parts))
		}
	}
	t.Logf("%d alterations, each noticed", altered)
}

// alterations are ways in which the answer to a step can be wrong.
func alterations(t *testing.T, s *conformance.Step) map[string]func(int, []byte) (int, []byte) {
	t.Helper()
	out := map[string]func(int, []byte) (int, []byte){
		"another status": func(_ int, body []byte) (int, []byte) { return http.StatusTeapot, body },
	}
	if len(s.Expect.Body) == 0 {
		return out
	}
	var want any
	if err := json.Unmarshal(s.Expect.Body, &want); err != nil {
		t.Fatal(err)
	}
	for _, path := range leaves("", want) {
		out[path] = func(status int, body []byte) (int, []byte) {
			var v any
			if err := json.Unmarshal(body, &v); err != nil {
				t.Error(err)
			}
			text, err := json.Marshal(spoilt(v, strings.Split(path, ".")))
			if err != nil {
				t.Error(err)
			}
			return status, text
		}
	}
	return out
}

// Without tokens the hub's cases are an error, and no failure.
func TestHubCasesNeedTokens(t *testing.T) {
	s := hub(t)
	s.Tokens = nil
	if _, err := s.Run(t.Context(), &hubCases(t)[0]); err == nil {
		t.Error("they run")
	}
}
