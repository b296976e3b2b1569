package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// world is one block at play: a workspace and what its names stand for.
type world struct {
	runner *Runner
	ws     string

	tokens   map[string]string // by role, member and device
	devices  map[string]*device
	scopes   map[string]*scope
	messages map[string]*message
	calls    map[string]call
	snaps    map[string]string        // issued inbox snapshots
	clocks   map[string]time.Duration // by actor: how wrong the clock is
	members  map[string]bool          // made on the server
	last     call
	ops      int
	fences   int // scopes joined and left to wait for a device
}

type scope struct {
	kind, parent, root, history, name string
	tags                              []string
}

type message struct {
	scope, author string
	seq, revision uint64 // revision 0: not readable
}

// devicesBegin is when every device clock of a scenario stands before "clock" bends it. Only
// differences matter, and nothing on the server may depend on it.
var devicesBegin = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func newWorld(r *Runner, ws string) *world {
	return &world{
		runner: r, ws: ws,
		tokens:   map[string]string{},
		devices:  map[string]*device{},
		scopes:   map[string]*scope{},
		messages: map[string]*message{},
		calls:    map[string]call{},
		snaps:    map[string]string{},
		clocks:   map[string]time.Duration{},
		members:  map[string]bool{},
	}
}

func (w *world) create(ctx context.Context) error {
	token, err := w.runner.opts.Token("*", "scenario-admin", "admin")
	if err != nil {
		return err
	}
	return w.must(ctx, call{method: http.MethodPut, path: []string{"workspaces", w.ws},
		token: token, body: encode(object{"name": w.ws})}, nil)
}

func (w *world) close() {
	for _, d := range w.devices {
		d.drop()
	}
}

// member is the member behind an actor, which may be a device.
func (w *world) member(actor string) string {
	if d := w.devices[actor]; d != nil {
		return d.member
	}
	return actor
}

// token signs for an actor once: each device has a token of its own.
func (w *world) token(actor string) (string, error) {
	return w.signed(actor, w.member(actor), "member")
}

func (w *world) backend() (string, error) {
	return w.signed("service:", "scenario-backend", "service")
}

func (w *world) signed(key, member, role string) (string, error) {
	if token, ok := w.tokens[key]; ok {
		return token, nil
	}
	token, err := w.runner.opts.Token(w.ws, member, role)
	if err != nil {
		return "", fmt.Errorf("sign a token for %s: %w", member, err)
	}
	w.tokens[key] = token
	return token, nil
}

// asBackend prepares a call with the rights of a service.
func (w *world) asBackend(method string, body object, path ...string) (call, error) {
	token, err := w.backend()
	return w.call(method, token, body, path), err
}

// as prepares a call of an actor.
func (w *world) as(actor, method string, body object, path ...string) (call, error) {
	token, err := w.token(actor)
	c := w.call(method, token, body, path)
	if offset, bent := w.clocks[actor]; bent {
		c.date = devicesBegin.Add(offset).Format(http.TimeFormat)
	}
	return c, err
}

func (w *world) call(method, token string, body object, path []string) call {
	c := call{method: method, token: token,
		path: append([]string{"workspaces", w.ws}, path...)}
	if body != nil {
		c.body = encode(body)
	}
	if len(path) > 1 && path[0] == "scopes" {
		c.scope = path[1]
	}
	return c
}

func (w *world) nextOp() string {
	w.ops++
	return "op-" + strconv.Itoa(w.ops)
}

// send performs a call of a statement, compares the answer, and keeps what it taught.
func (w *world) send(ctx context.Context, c call, want *Answer) error {
	w.last = c
	r, err := w.do(ctx, c)
	if err != nil {
		return err
	}
	if err := w.compareAnswer(c, r, want); err != nil {
		return err
	}
	if r.status < 200 || r.status > 299 {
		return nil
	}
	return w.learn(c, r)
}

// learn keeps the places of posted messages.
func (w *world) learn(c call, r *reply) error {
	if len(c.sent) == 0 {
		return nil
	}
	var one posted
	items := []posted{}
	if len(c.sent) > 1 {
		var batch struct {
			Results []posted `json:"results"`
		}
		if err := r.decode(&batch); err != nil {
			return err
		}
		items = batch.Results
	} else {
		if err := r.decode(&one); err != nil {
			return err
		}
		items = append(items, one)
	}
	if len(items) != len(c.sent) {
		return fmt.Errorf("posted %d messages, the answer names %d: %s",
			len(c.sent), len(items), r.brief())
	}
	for i, name := range c.sent {
		if items[i].MessageID != name || items[i].Seq == 0 {
			return fmt.Errorf("posted %s, the answer says %+v", name, items[i])
		}
		m := w.messages[name]
		m.seq = items[i].Seq
		if items[i].ContentRevision != nil {
			m.revision = *items[i].ContentRevision
		}
	}
	return nil
}

// revision is the rank a mark stands for: a number, a message, or "head" of a scope as the
// actor sees it now.
func (w *world) revision(ctx context.Context, actor, mark, in string) (uint64, error) {
	if n, err := strconv.ParseUint(mark, 10, 64); err == nil {
		return n, nil
	}
	if mark == "head" {
		state, err := w.readState(ctx, actor, in)
		return state.ContentRevision, err
	}
	m := w.messages[mark]
	switch {
	case m == nil || m.seq == 0:
		return 0, fmt.Errorf("%s has no place yet: the server never accepted it", mark)
	case m.revision == 0:
		return 0, fmt.Errorf("%s is not readable and has no revision", mark)
	}
	return m.revision, nil
}

// scopeOf is the scope a statement is about: the written one, or that of its message.
func (w *world) scopeOf(s *Statement) (string, error) {
	if in := s.one("scope"); in != "" {
		return in, nil
	}
	for _, slot := range []string{"mark", "message"} {
		if m := w.messages[s.one(slot)]; m != nil {
			return m.scope, nil
		}
	}
	return "", errors.New(`expected "in SCOPE": the line does not say which scope is meant`)
}

func (w *world) readState(ctx context.Context, actor, scope string) (readAnswer, error) {
	var state readAnswer
	c, err := w.as(actor, http.MethodGet, nil, "scopes", scope, "read-state")
	if err != nil {
		return state, err
	}
	return state, w.must(ctx, c, &state)
}
