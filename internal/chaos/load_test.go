package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	clientsPerWorkspace = 3
	membersPerClient    = 4
	maxThreads          = 12 // of a workspace
)

// world is what the clients of one workspace know together.
type world struct {
	name     string
	service  string            // token
	tokens   map[string]string // of members
	members  []string
	channels []string // channels and dms
	floods   bool

	mu      sync.Mutex
	heads   map[string]head
	threads []thread
	parents map[string]string // thread -> channel
}

// head is the highest revision and seq that an answer named.
type head struct{ revision, seq uint64 }

type thread struct{ id, parent string }

func (w *world) head(scope string) head {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heads[scope]
}

func (w *world) raise(scope string, revision, seq uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.heads[scope]
	w.heads[scope] = head{max(h.revision, revision), max(h.seq, seq)}
}

// scopes returns everything that can be posted to.
func (w *world) scopes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := slices.Clone(w.channels)
	for _, t := range w.threads {
		out = append(out, t.id)
	}
	return out
}

func (w *world) parent(scope string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.parents[scope]
}

// known is a message that a client posted and knows to be there.
type known struct {
	scope, id, author, op string
}

// client is one user of the API. What it owns, nobody else changes: the settings of its members,
// the archive flag of its scopes, the messages of its members.
type client struct {
	id      int
	rng     *rand.Rand
	world   *world
	journal *journal
	members []string
	owned   []string // channels and dms
	count   int      // of operation ids
	mine    []known
	states  map[placeOf]readState // as they were answered last
	lsn     uint64                // of the last answer

	done  []*act // newest answered acts with an operation id
	fault error
	cuts  bool // a read may lose its connection to the database half way
}

// placeOf is a member in a scope.
type placeOf struct{ member, scope string }

// life is the time between a start and a kill.
type life struct {
	wire *wire
	down atomic.Bool
}

// run acts until the server is gone. It leaves at most one act behind whose fate is unknown.
func (c *client) run(ctx context.Context, l *life, acts *atomic.Int64) {
	for !l.down.Load() && ctx.Err() == nil && acts.Add(-1) >= 0 {
		a := c.next()
		if !c.do(ctx, l.wire, a) {
			l.down.Store(true)
			return
		}
		if c.fault != nil {
			l.down.Store(true)
			return
		}
	}
}

// do carries an act out; false when its fate is unknown.
func (c *client) do(ctx context.Context, w *wire, a *act) bool {
	c.journal.send(a)
	status, body, err := w.call(ctx, a.Token, a.Method, a.Path, a.Body)
	if err != nil {
		return false
	}
	if err := c.journal.answer(a, status, body); err != nil {
		c.fault = err
		return true
	}
	c.learn(a)
	return true
}

// again sends an act that was answered once more, as a client does that lost the answer.
func (c *client) again() *act {
	if len(c.done) == 0 {
		return nil
	}
	old := pick(c.rng, c.done)
	a := c.act(again, old.Method, old.Path)
	a.Token, a.Body, a.Original = old.Token, old.Body, old
	a.Scope, a.Member = old.Scope, old.Member
	return a
}

// learnAgain compares the second answer with the first.
func (c *client) learnAgain(a *act) {
	was, is := a.Original.Answer, a.Answer
	same := a.applied() && is.Duplicate && is.MessageID == was.MessageID && is.Seq == was.Seq &&
		is.ContentRevision == was.ContentRevision
	if was.Channel != nil {
		// Where the channel was trimmed since, nobody knows the revision of the copy any more.
		same = same && is.Channel != nil && is.Channel.Seq == was.Channel.Seq &&
			(is.Channel.ContentRevision == was.Channel.ContentRevision ||
				is.Channel.ContentRevision == 0)
	}
	if !same {
		c.fault = fmt.Errorf("%s: not the answer of the first time: %s", a, a.Original)
	}
}

// remember keeps an act that can be sent again. A send into a scope that is trimmed cannot: its
// operation id may be gone with the message.
func (c *client) remember(a *act) {
	if a.OpID == "" || a.Kind == post && c.world.parent(a.Scope) == "" {
		return
	}
	const kept = 50
	if c.done = append(c.done, a); len(c.done) > kept {
		c.done = slices.Delete(c.done, 0, 1)
	}
}

// learn keeps what an answer says, and refuses answers that the load cannot deserve.
func (c *client) learn(a *act) {
	if c.cuts && a.Method == http.MethodGet && a.Status == http.StatusServiceUnavailable {
		return // it says that it does not know, and has changed nothing
	}
	if !slices.Contains([]int{200, 201, 404, 409}, a.Status) {
		c.fault = fmt.Errorf("%s: the load deserves no such answer", a)
		return
	}
	if a.applied() && a.Answer.LSN > 0 && !a.Answer.Duplicate { // a receipt names its own LSN
		if a.Answer.LSN < c.lsn {
			c.fault = fmt.Errorf("%s: LSN went back from %d", a, c.lsn)
			return
		}
		c.lsn = a.Answer.LSN
	}
	if a.Kind == again {
		c.learnAgain(a)
		return
	}
	if a.applied() {
		c.remember(a)
	}
	parts := a.Items
	if len(parts) == 0 {
		parts = []*act{a}
	}
	for _, p := range parts {
		if p.Answer.ReadState != nil {
			c.states[placeOf{p.Member, p.Scope}] = *p.Answer.ReadState
			c.world.raise(p.Scope, p.Answer.ContentRevision, 0)
		}
		if p.applied() {
			c.learnApplied(p)
		}
	}
}

func (c *client) learnApplied(a *act) {
	switch a.Kind {
	case post:
		c.world.raise(a.Scope, a.Answer.ContentRevision, a.Answer.Seq)
		c.mine = append(c.mine, known{a.Scope, a.Answer.MessageID, a.Member, a.OpID})
		if ch := a.Answer.Channel; ch != nil {
			c.world.raise(a.Broadcast, ch.ContentRevision, ch.Seq)
		}
		const kept = 200
		if over := len(c.mine) - kept; over > 0 {
			c.mine = slices.Delete(c.mine, 0, over)
		}
	case remove, move:
		c.mine = slices.DeleteFunc(c.mine, func(m known) bool {
			return m.scope == a.Scope && slices.Contains(a.Messages, m.id)
		})
		// The id of a moved message has gone with it.
		c.done = slices.DeleteFunc(c.done, func(old *act) bool {
			return a.Kind == move && old.Kind == post && old.Scope == a.Scope &&
				slices.Contains(a.Messages, old.Answer.MessageID)
		})
	case makeThread:
		c.world.mu.Lock()
		defer c.world.mu.Unlock()
		if _, ok := c.world.parents[a.Scope]; !ok {
			c.world.threads = append(c.world.threads, thread{a.Scope, a.To})
			c.world.parents[a.Scope] = a.To
		}
	}
}

// newID makes an operation id that no other act has.
func (c *client) newID() string {
	c.count++
	return fmt.Sprintf("c%d-%d", c.id, c.count)
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// chance is true n times out of a hundred.
func (c *client) chance(n int) bool { return c.rng.IntN(100) < n }

// act starts an act as the service of the workspace.
func (c *client) act(k kind, method, path string) *act {
	return &act{
		Client: c.id, Kind: k, Workspace: c.world.name, Token: c.world.service,
		Method: method, Path: path,
	}
}

// menu weighs what clients do.
var menu = []struct {
	weight int
	make   func(*client) *act
}{
	{30, (*client).post}, {4, (*client).batch}, {1, (*client).flood},
	{18, (*client).read}, {3, (*client).readAll}, {8, (*client).markUnread},
	{8, (*client).edit}, {6, (*client).remove}, {2, (*client).rewind}, {2, (*client).trim},
	{3, (*client).move}, {4, (*client).join}, {3, (*client).leave}, {5, (*client).level},
	{2, (*client).visible}, {5, (*client).follow}, {4, (*client).block}, {2, (*client).archive},
	{1, (*client).display}, {3, (*client).thread}, {7, (*client).observe}, {3, (*client).list},
	{3, (*client).again},
}

// next draws an act. What cannot be done now is drawn again.
func (c *client) next() *act {
	total := 0
	for _, m := range menu {
		total += m.weight
	}
	for {
		n := c.rng.IntN(total)
		for _, m := range menu {
			if n -= m.weight; n >= 0 {
				continue
			}
			if a := m.make(c); a != nil {
				return a
			}
			break
		}
	}
}

func (c *client) observe() *act {
	m := pick(c.rng, c.world.members)
	a := c.act(observe, http.MethodGet, address(c.world.name, "unread?limit=500&member="+m))
	a.Member = m
	return a
}

func (c *client) list() *act {
	s := pick(c.rng, c.world.scopes())
	a := c.act(list, http.MethodGet, address(c.world.name, "scopes", s, "messages?limit=50"))
	a.Scope = s
	return a
}
