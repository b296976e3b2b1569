package nostrx

import (
	"context"
	"fmt"
	"sync"
)

// collector gathers what is stored until the relay says that this was it.
type collector struct {
	filters []Filter

	mu     sync.Mutex
	events []Event
	bytes  int
	over   bool
	done   chan collected // has room for one
}

type collected struct {
	events []Event
	closed string // the relay's reason, when it refused
	err    error
}

func (q *collector) wants() []Filter { return q.filters }

func (q *collector) onEvent(e Event, size int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return
	}
	if len(q.events) == MaxStored || q.bytes+size > MaxStoredBytes {
		q.over, q.events = true, nil
		q.finish(collected{err: ErrTooMuch})
		return
	}
	q.events, q.bytes = append(q.events, e), q.bytes+size
}

func (q *collector) onStored() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.finish(collected{events: q.events})
}

func (q *collector) onClosed(reason string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.finish(collected{closed: reason, err: fmt.Errorf("%w: %q", ErrRefused, reason)})
}

func (q *collector) onLost(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.finish(collected{err: fmt.Errorf("%w: %w", ErrLost, err)})
}

// finish settles the query once; what comes later belongs to nobody.
func (q *collector) finish(c collected) {
	q.over = true
	select {
	case q.done <- c:
	default:
	}
}

// Query asks for stored events over the connection. What is returned is verified and matches. An
// end of stored events is the relay's word: it proves nothing to be complete. Query waits for a
// connection, at most Timeout in all.
func (c *Client) Query(ctx context.Context, filters ...Filter) ([]Event, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	for again := false; ; again = true {
		conn, err := c.current(ctx)
		if err != nil {
			return nil, fmt.Errorf("query: %w", err)
		}
		got := conn.collect(ctx, c.requestID(), filters)
		if !again && needsAuth(got.closed) && c.options.Key != nil && conn.awaitAuth(ctx) {
			continue
		}
		if got.err != nil {
			return nil, fmt.Errorf("query: %w", got.err)
		}
		return got.events, nil
	}
}

// collect runs one query to its end.
func (c *conn) collect(ctx context.Context, id string, filters []Filter) collected {
	q := &collector{filters: filters, done: make(chan collected, 1)}
	if err := c.listen(ctx, id, q); err != nil {
		return collected{err: err}
	}
	defer c.forget(ctx, id)
	select {
	case got := <-q.done:
		return got
	case <-ctx.Done():
		return collected{err: ctx.Err()}
	}
}

// Publish sends an event and waits for the relay's receipt. The event is checked once more before:
// what was signed may have been damaged since. An error says that nobody knows whether the relay
// has it: the same bytes may be sent again.
func (c *Client) Publish(ctx context.Context, e Event) (Receipt, error) {
	data, err := outgoing(e)
	if err != nil {
		return Receipt{}, fmt.Errorf("publish %s: %w", e.ID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	frame := eventFrame(labelEvent, data)
	for again := false; ; again = true {
		conn, err := c.current(ctx)
		if err != nil {
			return Receipt{}, fmt.Errorf("publish %s: %w", e.ID, err)
		}
		got := conn.publish(ctx, e.ID, frame)
		refused := got.err == nil && !got.receipt.Accepted && needsAuth(got.receipt.Reason)
		if !again && refused && c.options.Key != nil && conn.awaitAuth(ctx) {
			continue
		}
		if got.err != nil {
			return Receipt{}, fmt.Errorf("publish %s: %w", e.ID, got.err)
		}
		return got.receipt, nil
	}
}

func (c *conn) publish(ctx context.Context, id EventID, frame []byte) receiptOf {
	w, err := c.send(ctx, id, frame)
	if err != nil {
		return receiptOf{err: err}
	}
	select {
	case got := <-w:
		return got
	case <-ctx.Done():
		c.abandon(id, w)
		return receiptOf{err: ctx.Err()}
	}
}
