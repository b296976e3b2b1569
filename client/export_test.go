package client

import (
	"context"
	"fmt"

	"github.com/tidemark-im/tidemark/client/readsync"
)

// OnStep has a function called between the steps of an operation.
func (o *Options) OnStep(fn func(step string)) { o.onStep = fn }

// NoSync leaves out waiting for the disk: the file is safe from the end of the process only.
func (o *Options) NoSync() { o.noSync = true }

// Fill lets the file grow by nothing any more; Empty takes that back.
func (c *Client) Fill() error { return c.limitPages(1) }

// Empty lets the file grow again.
func (c *Client) Empty() error { return c.limitPages(1 << 30) }

func (c *Client) limitPages(n int) error {
	_, err := c.store.db.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", n))
	return err
}

// KeepAll has the file refuse to lose an operation, as a disk that fails then; LetGo takes that back.
func (c *Client) KeepAll() error {
	_, err := c.store.db.Exec(`CREATE TRIGGER kept BEFORE DELETE ON operations
		BEGIN SELECT RAISE(ABORT, 'the disk fails'); END`)
	return err
}

// LetGo takes back KeepAll.
func (c *Client) LetGo() error {
	_, err := c.store.db.Exec("DROP TRIGGER kept")
	return err
}

// Normalize is how addresses are compared.
func Normalize(address string) (string, error) { return normalize(address) }

// Operations are those that the server has not decided on, as they are shown.
func (c *Client) Operations() []readsync.Operation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outbox.Operations()
}

// Stored are the operations of a namespace that are in the file.
func (c *Client) Stored(ns Namespace) ([]readsync.Operation, error) {
	return c.store.load(context.Background(), ns)
}

// Settled tells whether the list and all windows are as the server has them, as far as the client
// knows.
func (c *Client) Settled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.windows {
		if _, behind := w.state.NeedsCatchUp(); behind || w.state.NeedsTail() || w.err != nil {
			return false
		}
	}
	return c.filled == c.gaps && len(c.unresolved) == 0
}

// Departed is how many sessions are remembered to be gone.
func (c *Client) Departed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.departures.gone)
}

// Seen is what a session was when it was seen.
func (s *Session) Seen() readsync.View { return s.seen }

// Reading is the operation that a reading of the window would be.
func (w *Window) Reading() readsync.Operation {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	through, _ := w.state.Receipt()
	op, _ := w.state.Reading("", through, 0)
	return op
}
