package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxBody bounds one answer; a page of the list is far below it.
const maxBody = 16 << 20

// call is one request, kept so that it can be sent later or twice.
type call struct {
	method string
	path   []string // below /api/v1, not escaped
	query  url.Values
	token  string
	date   string   // Date header of a device whose clock is wrong, or ""
	body   []byte   // nil for none
	scope  string   // scope the call is about, for explanations
	sent   []string // messages it posts, in order
}

func (c call) String() string {
	s := c.method + " /" + strings.Join(c.path, "/")
	if len(c.query) > 0 {
		s += "?" + c.query.Encode()
	}
	return s
}

// reply is an answer, whole.
type reply struct {
	status int
	body   []byte
}

func (r *reply) decode(into any) error {
	if err := json.Unmarshal(r.body, into); err != nil {
		return fmt.Errorf("answer is not what the contract says: %w: %s", err, r.brief())
	}
	return nil
}

func (r *reply) brief() string {
	const most = 600
	text := strings.TrimSpace(string(r.body))
	if len(text) > most {
		text = text[:most] + "…"
	}
	return fmt.Sprintf("%d %s", r.status, text)
}

// refused is an answer outside 2xx where success was needed.
type refused struct {
	call  call
	reply *reply
}

func (e *refused) Error() string { return e.call.String() + " answered " + e.reply.brief() }

func (w *world) request(ctx context.Context, c call) (*http.Request, error) {
	segments := make([]string, len(c.path))
	for i, segment := range c.path {
		segments[i] = escapeSegment(segment)
	}
	target := w.runner.base + "/api/v1/" + strings.Join(segments, "/")
	if len(c.query) > 0 {
		target += "?" + c.query.Encode()
	}
	var body io.Reader
	if c.body != nil {
		body = bytes.NewReader(c.body)
	}
	req, err := http.NewRequestWithContext(ctx, c.method, target, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if c.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.date != "" {
		req.Header.Set("Date", c.date)
	}
	return req, nil
}

// escapeSegment escapes a path segment but keeps the colon of "unread:query" readable.
func escapeSegment(segment string) string {
	return strings.ReplaceAll(url.PathEscape(segment), "%3A", ":")
}

// do sends a call and reads the answer, whatever its status.
func (w *world) do(ctx context.Context, c call) (*reply, error) {
	req, err := w.request(ctx, c)
	if err != nil {
		return nil, err
	}
	resp, err := w.runner.opts.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	err = errors.Join(err, resp.Body.Close())
	if err != nil {
		return nil, fmt.Errorf("%s: read answer: %w", c, err)
	}
	if hook := w.runner.opts.OnExchange; hook != nil {
		hook(req, resp, body)
	}
	return &reply{resp.StatusCode, body}, nil
}

// must sends a call that has to succeed and decodes the answer where into is not nil.
func (w *world) must(ctx context.Context, c call, into any) error {
	r, err := w.do(ctx, c)
	if err != nil {
		return err
	}
	if r.status < 200 || r.status > 299 {
		return &refused{c, r}
	}
	if into == nil {
		return nil
	}
	return r.decode(into)
}

// encode panics on a value that cannot be JSON: only the runner's own mistakes are such.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// object is a JSON object built by the runner; entries with nil values are left out by set.
type object map[string]any

func (o object) set(key string, value any, present bool) {
	if present {
		o[key] = value
	}
}

// row is one scope of one member as the list and the deltas show it.
type row struct {
	Type            string     `json:"type"`
	Name            string     `json:"name"`
	Parent          string     `json:"parent"`
	Tags            []string   `json:"tags"`
	Notification    string     `json:"notification"`
	Archived        bool       `json:"archived"`
	Unread          uint64     `json:"unread"`
	Attention       uint64     `json:"attention"`
	Activity        uint64     `json:"activity"`
	ManualUnread    bool       `json:"manualUnread"`
	Shown           bool       `json:"shown"`
	ShownUnread     uint64     `json:"shownUnread"`
	State           string     `json:"state"`
	ContentRevision uint64     `json:"contentRevision"`
	ReplyCount      uint64     `json:"replyCount"`
	LatestMessage   *messageAt `json:"latestMessage"`
	ReadState       readState  `json:"readState"`
}

type messageAt struct {
	ID string `json:"id"`
}

type readState struct {
	ReadRevision    uint64  `json:"readRevision"`
	ManualUnread    bool    `json:"manualUnread"`
	Version         uint64  `json:"version"`
	FromRevision    *uint64 `json:"fromRevision"`
	ActivityReadSeq uint64  `json:"activityReadSeq"`
}

type badge struct {
	Messages      uint64 `json:"messages"`
	Conversations uint64 `json:"conversations"`
	Attention     uint64 `json:"attention"`
	Display       uint64 `json:"display"`
}

// page is one page of the list, or of a stream's snapshot.
type page struct {
	HasUnread bool           `json:"hasUnread"`
	State     string         `json:"state"`
	Badge     badge          `json:"badge"`
	Complete  bool           `json:"complete"`
	LSN       uint64         `json:"lsn"`
	Next      string         `json:"next"`
	Scopes    map[string]row `json:"scopes"`
}

// readAnswer is the answer of GET and PUT read-state.
type readAnswer struct {
	Status          string    `json:"status"`
	Code            string    `json:"code"`
	ContentRevision uint64    `json:"contentRevision"`
	ReadState       readState `json:"readState"`
	Counts          struct {
		Unread      uint64 `json:"unread"`
		Attention   uint64 `json:"attention"`
		Activity    uint64 `json:"activity"`
		Shown       bool   `json:"shown"`
		ShownUnread uint64 `json:"shownUnread"`
	} `json:"counts"`
	LSN uint64 `json:"lsn"`
}

// posted is the answer of a post; in a batch, one of its results.
type posted struct {
	MessageID       string  `json:"messageId"`
	Seq             uint64  `json:"seq"`
	ContentRevision *uint64 `json:"contentRevision"`
	LSN             uint64  `json:"lsn"`
	Duplicate       bool    `json:"duplicate"`
}
