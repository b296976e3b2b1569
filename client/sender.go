package client

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/tidemark-im/tidemark/client/readsync"
)

// hold is how long something waits after failures in a row.
type hold struct {
	failures int
	until    time.Time
}

// holds are what the sender waits for: everything, or single sessions that the server cannot answer
// for. They end with the process.
type holds struct {
	all      hold
	sessions map[string]hold
	lifts    uint64 // how often everything was to be attempted at once
}

// lift lets everything be attempted now. How often it failed is kept.
func (h *holds) lift() {
	h.lifts++
	h.all.until = time.Time{}
	for id, x := range h.sessions {
		x.until = time.Time{}
		h.sessions[id] = x
	}
}

// next is the earliest time at which something is to be attempted after now, at most max later.
func (h *holds) next(now time.Time, most time.Duration) time.Duration {
	if d := h.all.until.Sub(now); d > 0 {
		return min(d, most)
	}
	for _, x := range h.sessions {
		if d := x.until.Sub(now); d > 0 {
			most = min(most, d)
		}
	}
	return most
}

// expiryCheck is how often the age of operations is looked at when nothing happens.
const expiryCheck = time.Hour

// senders is how many operations are under way at once: each is of another session, and the server
// takes one session in a request.
const senders = 4

// attempt is one try to send something, or to find out what there is to send.
type attempt struct {
	now   time.Time
	lifts uint64 // when it began: what fails of an older one is no hold
}

// runSender finds out what an earlier run has left, and sends operations until the context ends.
func (c *Client) runSender(ctx context.Context) {
	for restored := false; !restored && ctx.Err() == nil; {
		if restored = c.attempt(ctx, c.restore); !restored {
			c.rest(ctx)
		}
	}
	var work sync.WaitGroup
	for range senders {
		work.Go(func() {
			for ctx.Err() == nil {
				if !c.attempt(ctx, c.sendOne) {
					c.rest(ctx)
				}
			}
		})
	}
	work.Wait()
}

// attempt does one thing, unless everything is held back; false when there is nothing to do now.
func (c *Client) attempt(ctx context.Context, do func(context.Context, attempt) bool) bool {
	c.mu.Lock()
	a := attempt{c.now(), c.holds.lifts}
	held := c.holds.all.until.After(a.now)
	c.mu.Unlock()
	return !held && do(ctx, a)
}

// rest waits for the next attempt.
func (c *Client) rest(ctx context.Context) {
	c.mu.Lock()
	d := c.holds.next(c.now(), expiryCheck)
	c.mu.Unlock()
	c.pause(ctx, d, c.sendWake)
}

// sendOne does one thing, and reports false when there is nothing to do now.
func (c *Client) sendOne(ctx context.Context, a attempt) bool {
	if err := c.expire(); err != nil {
		return c.failed(a, err, 0, "")
	}
	held := func(session string) bool { return c.holds.sessions[session].until.After(c.now()) }
	c.mu.Lock()
	op, ready := c.outbox.Next(held)
	none := c.outbox.Len() == 0
	c.mu.Unlock()
	if none {
		c.waiting(nil) // what it waited with was lost
	}
	if !ready {
		return false
	}
	c.opts.onStep("chosen")
	err := c.commit(func() (change readsync.Change, err error) {
		// Another sender may have been quicker, or may have failed, or the operation is a read that
		// covers more by now: only what stands when it begins is sent.
		op, ready = c.outbox.Next(held)
		if ready = ready && !c.holds.all.until.After(c.now()); ready {
			change = c.outbox.Begin(op.ID)
		}
		return change, nil
	}, nil)
	switch {
	case err != nil:
		c.unbegin(op.ID)
		return c.failed(a, err, 0, "")
	case !ready:
		return false
	}
	return c.deliverOne(ctx, a, op)
}

// unbegin takes back that an operation is under way, which never left.
func (c *Client) unbegin(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outbox.Settle(id, readsync.Answer{Unsent: true})
}

// deliverOne sends an operation that is noted as being sent, and settles it.
func (c *Client) deliverOne(ctx context.Context, a attempt, op readsync.Operation) bool {
	defer c.asking(false)()
	c.opts.onStep("send")
	r, err := c.request(ctx, http.MethodPut, c.targetPath(op.Session, "/read-state"), newBody(&op))
	answer := readsync.Answer{Unsent: errors.Is(err, errUnsent)}
	if err == nil {
		answer = r.settlement()
	}
	c.opts.onStep("answered")
	session, why := undecided(&op, &answer, err)
	stored := c.commit(func() (readsync.Change, error) {
		return c.outbox.Settle(op.ID, answer), nil
	}, func() {
		c.settled(op.Session, answer.State, r.body)
		if why != nil { // at the same moment, or another sender would send it at once
			c.hold(a, r.wait, session)
			return
		}
		delete(c.holds.sessions, op.Session)
		c.holds.all = hold{}
	})
	if stored != nil {
		// It is sent once more, perhaps by now: it is no longer this answer's to say that it is not
		// under way.
		return c.failed(a, stored, 0, "")
	}
	if answer.Code == readsync.CodeReplaced {
		if by := r.problem().ReplacedBy; by != "" {
			c.replaced(op.Session, by)
		}
	}
	if c.ctx.Err() == nil {
		c.waiting(why)
	}
	return why == nil || session != "" // others may go on
}

// undecided tells why an answer decides nothing, and the session if it is of that alone; a nil error
// when it decides.
func undecided(op *readsync.Operation, a *readsync.Answer, err error) (session string, why error) {
	verdict := a.Verdict()
	switch {
	case err != nil:
		return "", err
	case verdict == readsync.Accepted, verdict == readsync.Rejected:
		return "", nil
	case verdict == readsync.Credentials:
		return "", ErrCredentials
	}
	why = &RefusedError{Status: a.Status, Code: a.Code}
	if a.Status == http.StatusInternalServerError && a.Code != "" {
		return op.Session, why // as far as is known
	}
	return "", why
}

// restore learns whose operations there are, and takes them from the file.
func (c *Client) restore(ctx context.Context, a attempt) bool {
	if _, err := c.authorize(ctx); err != nil {
		return c.failed(a, err, 0, "")
	}
	ns, _ := c.auth.namespace()
	ops, err := c.store.load(ctx, ns)
	if err != nil {
		return c.failed(a, err, 0, "")
	}
	lost, untold, err := c.store.losses(ctx, ns)
	if err != nil {
		return c.failed(a, err, 0, "")
	}
	c.mu.Lock()
	c.outbox, c.restored = readsync.Restore(ops), true
	c.rememberLosses(lost)
	c.holds.all = hold{}
	for w := range c.windows {
		wake(w.wake)
	}
	c.mu.Unlock()
	c.waiting(nil)
	c.events.add(lostEvents(untold)...)
	wake(c.listWake)
	return true
}

// expire gives up what the server would not know how to take any more.
func (c *Client) expire() error {
	c.mu.Lock()
	due := c.outbox.Expire(c.millis())
	c.mu.Unlock()
	if due.Empty() {
		return nil
	}
	return c.commit(func() (readsync.Change, error) {
		return c.outbox.Expire(c.millis()), nil
	}, nil)
}

// failed holds a session back, or everything, and returns false.
func (c *Client) failed(a attempt, err error, asked time.Duration, session string) bool {
	if c.ctx.Err() != nil {
		return false
	}
	c.mu.Lock()
	c.hold(a, asked, session)
	c.mu.Unlock()
	c.waiting(err)
	return session != "" // others may go on
}

// hold holds a session back, or everything, after a failed attempt; c.mu is held.
func (c *Client) hold(a attempt, asked time.Duration, session string) {
	h := c.holds.all
	if session != "" {
		h = c.holds.sessions[session]
	}
	switch now := c.now(); {
	case a.lifts != c.holds.lifts: // everything was to be attempted at once, and is
		h.failures++
	case h.until.After(now): // what was under way beside it failed of the same
		h.until = later(h.until, now.Add(asked))
	default:
		h.failures++
		h.until = now.Add(max(asked, c.delay(h.failures)))
	}
	if session == "" {
		c.holds.all = h
	} else {
		if c.holds.sessions == nil {
			c.holds.sessions = make(map[string]hold)
		}
		c.holds.sessions[session] = h
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
