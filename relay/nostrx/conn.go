package nostrx

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Bounds of a connection.
const (
	maxFrame     = 1 << 20 // bytes; larger events of other applications are read and dropped
	writeTimeout = 10 * time.Second
	pingEvery    = 30 * time.Second
	pingTimeout  = 10 * time.Second

	maxChallenges = 16 // each costs a signature
)

// listener hears about one request of a connection. Its methods return at once.
type listener interface {
	wants() []Filter
	onEvent(e Event, size int)
	onStored()
	onClosed(reason string)
	onLost(err error)
}

// receiptOf is what a publication, or the answer to a challenge, waits for.
type receiptOf struct {
	receipt Receipt
	err     error
}

// conn is one WebSocket connection, from its handshake to its end.
type conn struct {
	client *Client
	ws     *websocket.Conn

	challenges int    // that were answered; the reader's own
	challenge  string // the last of them

	mu        sync.Mutex
	listeners map[string]listener
	receipts  map[EventID][]chan receiptOf // each with room for one
	lost      error
	authID    EventID       // of the answer that is under way
	authed    chan struct{} // closed when a challenge has been answered, for good or ill
	authOK    bool
}

func newConn(client *Client, ws *websocket.Conn) *conn {
	ws.SetReadLimit(maxFrame)
	return &conn{
		client: client, ws: ws, listeners: make(map[string]listener),
		receipts: make(map[EventID][]chan receiptOf), authed: make(chan struct{}),
	}
}

// serve reads until the connection ends, then tells everybody who waits for it.
func (c *conn) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var pinger sync.WaitGroup
	pinger.Go(func() { c.ping(ctx) })
	err := c.read(ctx)
	cancel()
	_ = c.ws.CloseNow() // it has failed, or is given up
	pinger.Wait()

	c.mu.Lock()
	c.lost = err
	listeners, receipts := c.listeners, c.receipts
	c.listeners, c.receipts = nil, nil
	c.mu.Unlock()
	for _, l := range listeners {
		l.onLost(err)
	}
	for _, waiting := range receipts {
		for _, w := range waiting {
			w <- receiptOf{err: fmt.Errorf("%w: %w", ErrLost, err)}
		}
	}
	return err
}

// ping ends connections whose other side is gone without a word.
func (c *conn) ping(ctx context.Context) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		limited, cancel := context.WithTimeout(ctx, pingTimeout)
		err := c.ws.Ping(limited)
		cancel()
		if err != nil {
			_ = c.ws.CloseNow() // the reader notices
			return
		}
	}
}

func (c *conn) read(ctx context.Context) error {
	for {
		kind, data, err := c.ws.Read(ctx)
		if err != nil {
			return err
		}
		if kind != websocket.MessageText {
			return errors.New("a binary frame")
		}
		m, err := parseMessage(data)
		if err != nil {
			c.client.refused.Add(1)
			continue
		}
		if m.label == labelAuth {
			if err := c.answer(ctx, m.reason); err != nil {
				return err
			}
			continue
		}
		c.dispatch(ctx, m)
	}
}

func (c *conn) dispatch(ctx context.Context, m message) {
	if m.label == labelOK {
		c.settle(ctx, m)
		return
	}
	c.mu.Lock()
	l := c.listeners[m.sub]
	if m.label == labelClosed {
		delete(c.listeners, m.sub)
	}
	c.mu.Unlock()
	if l == nil {
		return // of a request that was given up, or of none
	}
	switch m.label {
	case labelEvent:
		e, err := ParseEvent(m.event, false)
		if err == nil && !admits(l.wants(), e) {
			err = errors.New("not what was asked for")
		}
		if err == nil {
			err = e.Verify()
		}
		if err != nil {
			c.client.refused.Add(1)
			return
		}
		l.onEvent(e, len(m.event))
	case labelEOSE:
		l.onStored()
	case labelClosed:
		l.onClosed(m.reason)
		// The relay may have refused before it read the answer to its challenge.
		if s, ok := l.(*Subscription); ok && s.isWaiting() && c.isAuthed() {
			_ = c.listen(ctx, s.id, s) // a failure ends the connection
		}
	}
}

// answer signs a relay's challenge (NIP-42).
func (c *conn) answer(ctx context.Context, challenge string) error {
	key := c.client.options.Key
	if key == nil {
		return nil
	}
	if challenge == c.challenge {
		return nil // answered, and sent again before the answer was read
	}
	if c.challenges++; c.challenges > maxChallenges {
		return fmt.Errorf("%w: challenges", ErrTooMuch)
	}
	c.challenge = challenge
	signed, err := key.Sign(Event{Kind: KindAuth, CreatedAt: c.client.options.Now().Unix(), Tags: []Tag{
		{"relay", c.client.options.URL}, {"challenge", challenge},
	}})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.authID = signed.ID
	c.mu.Unlock()
	return c.write(ctx, eventFrame(labelAuth, signed.Encode()))
}

// settle hands an OK to those who wait for it.
func (c *conn) settle(ctx context.Context, m message) {
	c.mu.Lock()
	waiting := c.receipts[m.id]
	delete(c.receipts, m.id)
	auth := m.id == c.authID && m.id != ""
	var again []*Subscription
	if auth {
		c.authID = ""
		select {
		case <-c.authed:
		default:
			close(c.authed)
		}
		c.authOK = m.ok
	}
	c.mu.Unlock()
	for _, w := range waiting {
		w <- receiptOf{receipt: Receipt{Accepted: m.ok, Reason: m.reason}}
	}
	if auth {
		again = c.client.waitingForAuth()
	}
	for _, s := range again {
		if !m.ok {
			s.onClosed("auth-required: " + m.reason)
		} else if err := c.listen(ctx, s.id, s); err != nil {
			return // the reader notices
		}
	}
}

// listen sends a request whose answers go to the listener.
func (c *conn) listen(ctx context.Context, id string, l listener) error {
	frame, err := requestFrame(id, l.wants())
	if err != nil {
		return err
	}
	c.mu.Lock()
	if c.lost != nil {
		c.mu.Unlock()
		return fmt.Errorf("%w: %w", ErrLost, c.lost)
	}
	c.listeners[id] = l
	c.mu.Unlock()
	if err := c.write(ctx, frame); err != nil {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return nil
}

func (c *conn) isLost() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost != nil
}

// forget ends a request. The relay is told if it can be.
func (c *conn) forget(ctx context.Context, id string) {
	c.mu.Lock()
	_, known := c.listeners[id]
	delete(c.listeners, id)
	c.mu.Unlock()
	if known {
		_ = c.write(ctx, closeFrame(id)) // a lost connection has ended it as well
	}
}

// send publishes an event and returns where its receipt will come.
func (c *conn) send(ctx context.Context, id EventID, frame []byte) (<-chan receiptOf, error) {
	w := make(chan receiptOf, 1)
	c.mu.Lock()
	if c.lost != nil {
		c.mu.Unlock()
		return nil, fmt.Errorf("%w: %w", ErrLost, c.lost)
	}
	c.receipts[id] = append(c.receipts[id], w)
	c.mu.Unlock()
	if err := c.write(ctx, frame); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
	return w, nil
}

// abandon forgets one who waits for a receipt.
func (c *conn) abandon(id EventID, w <-chan receiptOf) {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.receipts[id]
	for i := range waiting {
		if waiting[i] == w {
			c.receipts[id] = append(waiting[:i:i], waiting[i+1:]...)
			break
		}
	}
	if len(c.receipts[id]) == 0 {
		delete(c.receipts, id)
	}
}

// write sends a frame. A peer that does not take it in time is given up, and the reader notices.
// The caller's context does not end a write: half a frame would end the connection for all.
func (c *conn) write(ctx context.Context, frame []byte) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	err := c.ws.Write(ctx, websocket.MessageText, frame)
	if err != nil {
		_ = c.ws.CloseNow()
	}
	return err
}

// awaitAuth waits until a challenge has been answered, and tells whether it was to the relay's
// liking.
func (c *conn) awaitAuth(ctx context.Context) bool {
	select {
	case <-c.authed:
	case <-ctx.Done():
		return false
	}
	return c.isAuthed()
}

func (c *conn) isAuthed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.authOK
}

func needsAuth(reason string) bool { return strings.HasPrefix(reason, "auth-required:") }
