package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidemark-im/tidemark/client/readsync"
)

// pageLimit is how many messages are asked for at once.
const pageLimit = 100

// Window is the end of a session's messages, kept up to date until it is closed. What was seen in it
// is known with it and forgotten with it. Its methods are safe for concurrent use.
type Window struct {
	c      *Client
	cancel context.CancelFunc
	ended  chan struct{}
	wake   chan struct{}

	// Under the client's mu:
	state   readsync.Window
	err     error // of the last load, nil when it succeeded
	loading bool  // older messages
	closed  bool
}

// Snapshot is a window at one moment. It does not change any more.
type Snapshot struct {
	// Session is the one that the window was of, or its scope: another one than it was opened for,
	// where that was merged into it.
	Session  string
	Messages []readsync.Message // ascending by seq; the elements are not to be changed
	// Loaded says that the newest messages are there, and that the last load did not fail.
	Loaded bool
	// Earlier says that there are older messages to load.
	Earlier bool
	// Through is the revision through which the messages reach without a gap, zero before the first
	// load.
	Through readsync.Revision
	// Err is why the last load failed. It is attempted again.
	Err error

	epoch uint64
}

// Observation says in which moment somebody looks at a window. All of it has to be true for a
// reading; whoever cannot tell says false.
type Observation struct {
	// Snapshot is the one that is rendered.
	Snapshot Snapshot
	// Visible: the chat is on the screen, and no other panel hides it.
	Visible bool
	// Foreground: the app, window or tab is the one in use.
	Foreground bool
	// Loaded: the messages were loaded and rendered without an error.
	Loaded bool
	// TailInView: the newest message of the snapshot is laid out and within the view.
	TailInView bool
}

// OpenWindow opens a window on a session and loads its newest messages. Opening reads nothing.
func (c *Client) OpenWindow(session string) (*Window, error) { return c.openWindow(session) }

func (c *Client) openWindow(target string) (*Window, error) {
	if err := checkTarget(target); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(c.ctx)
	w := &Window{
		c: c, cancel: cancel, ended: make(chan struct{}), wake: make(chan struct{}, 1),
		state: readsync.Open(target),
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		cancel()
		return nil, ErrClosed
	}
	c.windows[w] = struct{}{}
	c.work.Add(1)
	c.mu.Unlock()
	go func() {
		defer c.work.Done()
		defer close(w.ended)
		w.run(ctx)
	}()
	return w, nil
}

// Close forgets the window and its receipt.
func (w *Window) Close() {
	w.c.mu.Lock()
	w.closed = true
	delete(w.c.windows, w)
	w.c.mu.Unlock()
	w.cancel()
	<-w.ended
}

// Snapshot returns the window as it is now.
func (w *Window) Snapshot() Snapshot {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	through, synced := w.state.Receipt()
	return Snapshot{
		Session: plainTarget(w.state.Session()), Messages: w.state.Messages(), Loaded: synced && w.err == nil,
		Earlier: w.state.Earlier(), Through: through, Err: w.err, epoch: w.state.Epoch(),
	}
}

// Observe reads what an observation shows, if it is a reading of something that was not read: it
// returns the id of the operation once that is in the file, an empty one when there was nothing to
// read, or an error when nothing was saved. It may be called as often as anything moves.
func (w *Window) Observe(o Observation) (op string, err error) {
	c := w.c
	seen := readsync.Observation{
		Visible: o.Visible, Foreground: o.Foreground, Loaded: o.Loaded && o.Snapshot.Loaded,
		TailInView: o.TailInView, Epoch: o.Snapshot.epoch, Through: o.Snapshot.Through,
	}
	var revision readsync.Revision
	var reads bool
	decide := func() {
		shown, known := c.view(w.state.Session())
		revision, reads = w.state.Observe(seen, shown.State)
		reads = reads && known && !w.closed && w.err == nil
	}
	c.mu.Lock()
	decide() // most calls end here, and wait for no file
	session := w.state.Session()
	c.mu.Unlock()
	if !reads {
		return "", nil
	}
	err = c.commit(func() (change readsync.Change, err error) {
		if decide(); !reads {
			return change, nil
		}
		read, base := w.state.Reading(c.opts.NewID(), revision, c.millis())
		change, op, err = c.outbox.Add(read, base)
		return change, err
	}, func() {
		if reads {
			w.state.Acknowledged(revision)
		}
	})
	if err != nil {
		return "", fmt.Errorf("read: %s: %w", nameTarget(session), err)
	}
	return op, nil
}

// LoadEarlier loads a page of older messages. It reads nothing, and changes no receipt.
func (w *Window) LoadEarlier(ctx context.Context) error {
	c := w.c
	c.mu.Lock()
	first, session, epoch := w.state.First(), w.state.Session(), w.state.Epoch()
	idle := !w.loading && w.state.Earlier() && first > 1
	w.loading = w.loading || idle
	c.mu.Unlock()
	if !idle {
		return nil
	}
	page, err := c.page(ctx, session, fmt.Sprintf("&before=%d", first))
	c.mu.Lock()
	w.loading = false
	if err == nil && w.state.Epoch() == epoch {
		w.state.Before(page)
	}
	c.mu.Unlock()
	c.events.add()
	return err
}

// run loads what the window needs until it is closed.
func (w *Window) run(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		more, err := w.load(ctx)
		switch {
		case err != nil:
			failures++
			w.c.pause(ctx, w.c.delay(failures), w.wake)
		case more:
			failures = 0
		default:
			failures = 0
			select {
			case <-ctx.Done():
			case <-w.wake:
			}
		}
	}
}

// load makes one request, if one is needed, and tells whether it did.
func (w *Window) load(ctx context.Context) (more bool, err error) {
	c := w.c
	c.mu.Lock()
	after, behind := w.state.NeedsCatchUp()
	session, epoch, tail := w.state.Session(), w.state.Epoch(), w.state.NeedsTail()
	asked := w.state.Asked()
	ready := c.restored // the outbox says what is shown, and automatic reads go by that
	c.mu.Unlock()
	if !ready || !tail && !behind {
		return false, nil
	}
	defer c.asking(false)()
	latest := tail || after == 0
	query := ""
	if !latest {
		query = fmt.Sprintf("&after=%d", after)
	}
	var told *wireSession
	if tail {
		if told, err = w.look(ctx, session); err != nil {
			return false, w.failed(err, session, epoch)
		}
	}
	page, err := c.page(ctx, session, query)
	if err != nil {
		return false, w.failed(err, session, epoch)
	}
	endless := false
	c.mu.Lock()
	if w.state.Epoch() == epoch {
		w.err = nil
		if told != nil {
			c.put(told, 0, false)
		}
		seen, _ := c.view(session)
		if latest {
			w.state.Latest(asked, page, seen)
		} else {
			w.state.CatchUp(asked, after, page)
			last, _ := w.state.NeedsCatchUp()
			endless = page.HasMore && last == after
		}
	}
	c.mu.Unlock()
	if endless {
		return false, w.failed(errEndless, session, epoch)
	}
	c.events.add()
	return true, nil
}

// look asks for the session itself where nothing is known of it: a reading names its version.
func (w *Window) look(ctx context.Context, session string) (*wireSession, error) {
	w.c.mu.Lock()
	_, known := w.c.view(session)
	w.c.mu.Unlock()
	if known {
		return nil, nil
	}
	if strings.HasPrefix(session, scopeMark) {
		return nil, ErrUnknownScope
	}
	told := wireSession{asked: session}
	return &told, w.c.get(ctx, sessionPath(session, ""), &told)
}

// failed notes why a load failed. A session in the place of the window's is loaded instead.
func (w *Window) failed(err error, session string, epoch uint64) error {
	c := w.c
	var refused *RefusedError
	if errors.As(err, &refused) && refused.ReplacedBy != "" {
		c.replaced(session, refused.ReplacedBy)
		return nil
	}
	c.mu.Lock()
	if w.state.Epoch() == epoch {
		w.err = err
	}
	c.mu.Unlock()
	c.events.add()
	return err
}

func (c *Client) page(ctx context.Context, session, query string) (readsync.Page, error) {
	var page wirePage
	path := c.targetPath(session, fmt.Sprintf("/messages?limit=%d", pageLimit)) + query
	err := c.get(ctx, path, &page)
	return page.page(), err
}
