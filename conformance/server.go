package conformance

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Server is a server under test, as one member sees it.
type Server struct {
	URL   string // where its paths begin, without a slash at the end
	Token string // of a member
	// Client sends the requests. That of NewServer follows no redirects, which would take the token
	// elsewhere, and gives a request 30 seconds.
	Client *http.Client
	// Tokens signs for whoever sends the requests of hub cases: a member of a workspace, or
	// RoleService or RoleAdmin in place of a member. Nil: hub cases cannot be run.
	Tokens func(workspace, as string) (string, error)
	seed   string
}

// Result is what became of a case. Problem is empty where it holds.
type Result struct {
	Case    string `json:"case"`
	Step    int    `json:"step,omitempty"` // of the problem, from 1
	Problem string `json:"problem,omitempty"`
}

// OK reports that the case holds.
func (r *Result) OK() bool { return r.Problem == "" }

const (
	// maxAnswer bounds what is read of an answer, in bytes.
	maxAnswer = 8 << 20
	// patience bounds a request, with its answer.
	patience = 30 * time.Second
	// mostWaits is how often a request is sent again to a server that answers 429 with Retry-After,
	// longestWait how long it is left alone each time at most.
	mostWaits   = 10
	longestWait = time.Minute
)

// NewServer names a server. The token must be that of a member whom the server knows.
func NewServer(address, token string) (*Server, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("conformance: %q is no address of a server", address)
	}
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails; see crypto/rand
	return &Server{
		URL: strings.TrimSuffix(address, "/"), Token: token, seed: hex.EncodeToString(b[:]),
		Client: &http.Client{
			Timeout: patience,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		},
	}, nil
}

// Run runs one case. The error says that the server did not answer at all.
func (s *Server) Run(ctx context.Context, c *Case) (Result, error) {
	run := &run{server: s, prefix: c.ID + "-" + s.seed + "-" + unique(), kept: map[string]string{},
		tokens: map[string]string{}}
	for i := range c.Steps {
		problem, err := run.step(ctx, &c.Steps[i])
		if err != nil {
			return Result{}, fmt.Errorf("case %s, step %d: %w", c.ID, i+1, err)
		}
		if problem != "" {
			return Result{Case: c.ID, Step: i + 1, Problem: problem}, nil
		}
	}
	return Result{Case: c.ID}, nil
}

func unique() string {
	var b [4]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// run is a case under way.
type run struct {
	server *Server
	prefix string
	kept   map[string]string
	tokens map[string]string // of hub cases, by who sends
}

// names in braces are words of small letters and digits.
var names = regexp.MustCompile(`\{[a-z][a-z0-9]*\}`)

// fill puts in what the names of a text stand for. A name that nothing was kept under is an id of
// the case's own.
func (r *run) fill(text string) string {
	return names.ReplaceAllStringFunc(text, func(name string) string {
		name = strings.Trim(name, "{}")
		if _, ok := r.kept[name]; !ok {
			r.kept[name] = r.prefix + "-" + name
		}
		return r.kept[name]
	})
}

// step returns what is wrong with the answer, empty for nothing.
func (r *run) step(ctx context.Context, s *Step) (string, error) {
	status, answer, err := r.ask(ctx, s)
	if err != nil {
		return "", err
	}
	if status == http.StatusUnauthorized && s.Expect.Status != status {
		return "", errors.New("the server does not take the token")
	}
	what := s.Request.Method + " " + s.Request.Path
	if status != s.Expect.Status {
		return fmt.Sprintf("%s answered %d %s, expected %d", what, status,
			brief(answer), s.Expect.Status), nil
	}
	return r.judge(what, s, answer)
}

// ask sends a request, again as long as the server wants to be asked later: it has done nothing then.
func (r *run) ask(ctx context.Context, s *Step) (status int, answer []byte, err error) {
	for again := 0; ; again++ {
		status, wait, answer, err := r.askOnce(ctx, s)
		if err != nil || status != http.StatusTooManyRequests || s.Expect.Status == status ||
			wait == 0 || again == mostWaits {
			return status, answer, err
		}
		select {
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		case <-time.After(min(wait, longestWait)):
		}
	}
}

// askOnce returns with the answer how long the server wants to be left alone, zero if it does not say.
func (r *run) askOnce(
	ctx context.Context, s *Step,
) (status int, wait time.Duration, answer []byte, err error) {
	body := []byte(r.fill(string(s.Request.Body)))
	address := r.server.URL + r.fill(s.Request.Path)
	req, err := http.NewRequestWithContext(ctx, s.Request.Method, address, bytes.NewReader(body))
	if err != nil {
		return 0, 0, nil, fmt.Errorf("make request: %w", err)
	}
	token, err := r.token(s.Request.As)
	if err != nil {
		return 0, 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := r.server.Client.Do(req)
	if err != nil {
		return 0, 0, nil, fmt.Errorf("ask the server: %w", err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, 0, nil, fmt.Errorf("read the answer: %w", err)
	}
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
		wait = time.Duration(n) * time.Second
	}
	return resp.StatusCode, wait, answer, nil
}

// errNoTokens says that a hub case was given to a server without Tokens.
var errNoTokens = errors.New("cases of the hub need tokens of several members and of a service")

// token is that of whoever sends a request. The workspace of a hub case is its name {ws}.
func (r *run) token(as string) (string, error) {
	switch {
	case as == "":
		return r.server.Token, nil
	case r.tokens[as] != "":
		return r.tokens[as], nil
	case r.server.Tokens == nil:
		return "", errNoTokens
	}
	token, err := r.server.Tokens(r.fill("{ws}"), as)
	if err != nil {
		return "", fmt.Errorf("sign a token for %s: %w", as, err)
	}
	r.tokens[as] = token
	return token, nil
}

// judge compares an answer and keeps parts of it.
func (r *run) judge(what string, s *Step, answer []byte) (string, error) {
	if len(s.Expect.Body) == 0 && len(s.Keep) == 0 {
		return "", nil
	}
	got, err := decode(answer)
	if err != nil {
		return fmt.Sprintf("%s: %v: %s", what, err, brief(answer)), nil
	}
	if len(s.Expect.Body) > 0 {
		want, err := decode([]byte(r.fill(string(s.Expect.Body))))
		if err != nil {
			return "", fmt.Errorf("what is expected: %w", err)
		}
		if d := differs("body", want, got); d != "" {
			return what + ": " + d, nil
		}
	}
	for name, path := range s.Keep {
		v, ok := part(got, path)
		if !ok {
			return fmt.Sprintf("%s: there is no %s in %s", what, path, brief(answer)), nil
		}
		r.kept[name] = scalar(v)
	}
	return "", nil
}

// scalar is a value as it stands within a text.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return text(v)
}

func brief(b []byte) string {
	const most = 300
	if b = bytes.TrimSpace(b); len(b) > most {
		b = append(b[:most:most], "..."...)
	}
	return string(b)
}
