package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tidemark-im/tidemark/client/readsync"
)

// maxAnswer bounds an answer: a page of 500 messages of 64 KiB each.
const maxAnswer = 40 << 20

// reply is an answer to a request.
type reply struct {
	status int
	body   []byte
	wait   time.Duration // that the server asked for, zero for none
}

// problem is the body of a refusal.
type problem struct {
	Code       string `json:"code"`
	Detail     string `json:"detail"`
	ReplacedBy string `json:"replacedBy"`
}

// RefusedError is an answer that is not what was asked for, of the server or of a machine on the way.
type RefusedError struct {
	Status int    // of HTTP
	Code   string // stable; empty when it was another machine that refused
	Detail string // for people
	// ReplacedBy is the session in the place of one that was merged away.
	ReplacedBy string
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the server refused: %d %s: %s", e.Status, e.Code, e.Detail)
}

// Final tells whether the server itself refused for good: the same request would be refused again.
// It is false for refusals for now (401, 429, 5xx), and for those of another machine.
func (e *RefusedError) Final() bool {
	a := readsync.Answer{Status: e.Status, Code: e.Code}
	return a.Verdict() == readsync.Rejected
}

var (
	// errUnsent is a failure before anything was sent.
	errUnsent = errors.New("not sent")
	// errOther is an answer of status 200 that does not say what was asked for.
	errOther = errors.New("the answer is not the one to this request")
	// errEndless is a page that promises more, and has nothing that the pages before did not have.
	errEndless = errors.New("the pages do not go on")
)

// request sends a request with a token that the server has told to be of the namespace.
func (c *Client) request(ctx context.Context, method, path string, body any) (reply, error) {
	token, err := c.authorize(ctx)
	if err != nil {
		return reply{}, fmt.Errorf("%w: %w", errUnsent, err)
	}
	r, err := c.exchange(ctx, token, method, path, body)
	if err == nil && r.refusesToken() {
		c.auth.refuse(token)
	}
	return r, err
}

// exchange sends a request with a token.
func (c *Client) exchange(
	ctx context.Context, token, method, path string, body any,
) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.RequestTimeout)
	defer cancel()
	var sent atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaderField: func(string, []string) { sent.Store(true) },
		WroteHeaders:     func() { sent.Store(true) },
	})
	req, err := c.newRequest(traced, token, method, path, body)
	if err != nil {
		return reply{}, fmt.Errorf("%w: %w", errUnsent, err)
	}
	resp, err := c.opts.HTTP.Do(req)
	if err != nil {
		if !sent.Load() {
			err = fmt.Errorf("%w: %w", errUnsent, err)
		}
		return reply{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return reply{resp.StatusCode, data, retryAfter(resp.Header)}, err
}

func (c *Client) newRequest(
	ctx context.Context, token, method, path string, body any,
) (*http.Request, error) {
	var data io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		data = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, data)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// said is what an answer has to say.
type said interface {
	// whole tells whether it says all of it: any JSON can be read into anything.
	whole() bool
}

// get reads a JSON answer into out; refusals are RefusedError.
func (c *Client) get(ctx context.Context, path string, out said) error {
	r, err := c.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	return r.decode(path, out)
}

func (r *reply) decode(path string, out said) error {
	if r.status != http.StatusOK {
		return fmt.Errorf("GET %s: %w", path, r.refusal())
	}
	if err := json.Unmarshal(r.body, out); err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	if !out.whole() {
		return fmt.Errorf("GET %s: %w", path, errOther)
	}
	return nil
}

// refusal is an answer that is not what was asked for, as an error.
func (r *reply) refusal() *RefusedError {
	p := r.problem()
	return &RefusedError{Status: r.status, Code: p.Code, Detail: p.Detail, ReplacedBy: p.ReplacedBy}
}

// refusesToken tells whether the server does not take the token. A machine on the way that wants to
// be signed in to has no code, and says nothing of the token.
func (r *reply) refusesToken() bool {
	return r.status == http.StatusUnauthorized && r.problem().Code != ""
}

func (r *reply) problem() problem {
	var p problem
	if json.Unmarshal(r.body, &p) != nil {
		return problem{} // a page of somebody else
	}
	return p
}

// settlement reads an answer to an operation.
func (r *reply) settlement() readsync.Answer {
	var body struct {
		Code string `json:"code"`
		wireState
	}
	a := readsync.Answer{Status: r.status}
	if json.Unmarshal(r.body, &body) != nil {
		return a
	}
	a.Code = body.Code
	if s, told := body.state(); told {
		a.State = &s
	}
	return a
}

// retryAfter reads how many seconds the server wants to be left alone, at most an hour.
func retryAfter(h http.Header) time.Duration {
	const most = time.Hour
	n, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(min(n, int(most/time.Second))) * time.Second
}

// sessionPath is the path of a session, with the rest below it.
func sessionPath(id, rest string) string {
	return "/api/sessions/" + url.PathEscape(id) + rest
}
