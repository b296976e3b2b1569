package client

import (
	"context"
	"fmt"

	"github.com/tidemark-im/tidemark/client/readsync"
)

// MarkRead reads a session to the newest revision that it had when it was seen, and takes a manual
// mark away that it had then. It returns the id of the operation once that is in the file, and an
// error when nothing was saved and nothing is shown: ErrUnknownSession for one that the client did
// not tell, ErrNotReady, ErrClosed, readsync.ErrFull, or that of the file.
func (c *Client) MarkRead(seen Session) (op string, err error) {
	return c.add(func(id string) readsync.Operation {
		return readsync.NewRead(id, seen.seen, seen.ContentRevision, c.millis())
	}, seen.seen.Base)
}

// MarkUnread marks a session as unread. It returns what MarkRead does, and is refused with
// readsync.ErrStale when the state that was seen did not come about, and lost (EventLost) when
// another device's mark or read came first. The mark of a session that was seen marked is no
// operation: the id is then empty.
func (c *Client) MarkUnread(seen Session) (op string, err error) {
	if seen.ManualUnread && seen.seen.Session != "" {
		return "", nil
	}
	return c.add(func(id string) readsync.Operation {
		return readsync.NewUnread(id, seen.seen, c.millis())
	}, seen.seen.Base)
}

// MarkAllRead reads each unread session of a list to the revision that it has in there: what came
// since is not read. All operations are saved, or none.
func (c *Client) MarkAllRead(list []Session) error {
	return c.commit(func() (readsync.Change, error) {
		var all readsync.Change
		room := readsync.MaxOperations - c.outbox.Len()
		taken := make(map[string]struct{}, len(list))
		for i := range list {
			s := &list[i]
			_, twice := taken[s.ID]
			if twice || !s.ManualUnread && s.ContentRevision <= s.ReadRevision {
				continue // at work, it is unread all the same
			}
			taken[s.ID] = struct{}{}
			if err := checkTarget(s.seen.Session); err != nil {
				return all, fmt.Errorf("mark read: session %s: %w", s.ID, err)
			}
			op := readsync.NewRead(c.opts.NewID(), s.seen, s.ContentRevision, c.millis())
			change, _, err := c.outbox.Add(op, s.seen.Base)
			if err != nil {
				return all, fmt.Errorf("mark read: session %s: %w", s.ID, err)
			}
			all.Put = append(all.Put, change.Put...)
		}
		if len(all.Put) > room {
			return all, fmt.Errorf("mark all read: %w", readsync.ErrFull)
		}
		return all, nil
	}, nil)
}

func (c *Client) add(
	newOp func(id string) readsync.Operation, base readsync.Version,
) (id string, err error) {
	op := newOp(c.opts.NewID())
	if err := checkTarget(op.Session); err != nil {
		return "", fmt.Errorf("mark %s: %w", op.Kind, err)
	}
	err = c.commit(func() (change readsync.Change, err error) {
		change, id, err = c.outbox.Add(op, base)
		return change, err
	}, nil)
	if err != nil {
		return "", fmt.Errorf("mark %s: %s: %w", op.Kind, nameTarget(op.Session), err)
	}
	return id, nil
}

// turn is one change of the outbox: planned, written and applied, and with it what else is to be
// seen at the same moment. Neither function may wait; also may be nil.
type turn struct {
	plan func() (readsync.Change, error)
	also func()
	done chan error // receives once
}

// commit carries out a turn. If the file takes no change, nothing is applied.
func (c *Client) commit(plan func() (readsync.Change, error), also func()) error {
	t := &turn{plan: plan, also: also, done: make(chan error, 1)}
	select {
	case c.turns <- t:
		return <-t.done
	case <-c.ctx.Done():
		return ErrClosed
	}
}

// runTurns carries out turns, one after the other, until the context ends.
func (c *Client) runTurns(ctx context.Context) {
	for {
		select {
		case t := <-c.turns:
			t.done <- c.take(t)
		case <-ctx.Done():
			return
		}
	}
}

func (c *Client) take(t *turn) error {
	change, err := c.plan(t.plan)
	if err != nil {
		return err
	}
	if !change.Empty() {
		ns, _ := c.auth.namespace()
		if err := c.store.write(ns, change); err != nil {
			return err
		}
	}
	c.mu.Lock()
	c.outbox.Apply(change)
	if t.also != nil {
		t.also()
	}
	c.rememberLosses(change.Lost)
	told := lostEvents(change.Lost)
	c.mu.Unlock()
	c.opts.onStep("applied")
	c.events.add(told...)
	wake(c.sendWake)
	return nil
}

func (c *Client) plan(plan func() (readsync.Change, error)) (readsync.Change, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return readsync.Change{}, ErrClosed
	case !c.restored:
		return readsync.Change{}, ErrNotReady
	}
	return plan()
}
