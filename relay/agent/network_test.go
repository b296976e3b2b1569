package agent

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark/relay/journal"
	"github.com/tidemark-im/tidemark/relay/nostrx"
	"github.com/tidemark-im/tidemark/relay/relaytest"
)

const relayURL = "ws://relay.test"

// pipes is a network within the process: every connection is a pipe, so that time may be a bubble's.
type pipes struct {
	conns chan net.Conn
	end   chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.end:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.end) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.IPAddr{} }

// cable is how one installation reaches the network. It can be pulled out.
type cable struct {
	to *pipes

	mu    sync.Mutex
	out   bool
	conns []net.Conn
}

func (c *cable) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out {
		return nil, errors.New("no network")
	}
	near, far := net.Pipe()
	select {
	case c.to.conns <- far:
	case <-c.to.end:
		return nil, errors.New("no relay")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.conns = append(c.conns, near)
	return near, nil
}

func (c *cable) pull(out bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = out
	if out {
		for _, conn := range c.conns {
			_ = conn.Close()
		}
		c.conns = nil
	}
}

// net is a relay on pipes, with a viewer and somebody who writes.
type network struct {
	t             *testing.T
	relay         *relaytest.Relay
	viewer, other *nostrx.Key
	pipes         *pipes
	journal       *journal.Journal
	posted        []nostrx.Event
	web           *nostrx.Web
}

func newNetwork(t *testing.T, path string, snapshots bool) *network {
	t.Helper()
	n := &network{
		t: t, viewer: keyOf(t, "1"), other: keyOf(t, "2"), pipes: &pipes{conns: make(chan net.Conn, 16), end: make(chan struct{})},
	}
	o := relaytest.Options{Self: keyOf(t, "9"), Moderators: nil}
	if snapshots {
		o.Community = uuid.MustParse("01234567-89ab-cdef-0123-456789abcdef")
	}
	n.relay = relaytest.New(o)
	server := &http.Server{Handler: n.relay, ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(n.pipes) // it ends by being closed
	}()
	var err error
	if n.journal, err = journal.Open(t.Context(), path, journal.Options{NoSync: true}); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: (&cable{to: n.pipes}).dial}
	if n.web, err = nostrx.NewWeb(relayURL, n.other, &http.Client{Transport: transport}, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		n.relay.Close()
		_ = server.Close()
		<-served
		if err := n.journal.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func keyOf(t *testing.T, digit string) *nostrx.Key {
	t.Helper()
	key, err := nostrx.ParseKey(strings.Repeat(digit, 64))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (n *network) channel(id, kind string, members ...nostrx.PubKey) {
	n.t.Helper()
	if members == nil {
		members = []nostrx.PubKey{n.viewer.Public(), n.other.Public()}
	}
	if err := n.relay.SetChannel(relaytest.Channel{ID: id, Name: id, Type: kind, Members: members}); err != nil {
		n.t.Fatal(err)
	}
}

// post has somebody write; it returns what was signed, whether the relay took it or not.
func (n *network) post(by *nostrx.Key, kind int, tags ...nostrx.Tag) nostrx.Event {
	n.t.Helper()
	e, err := by.Sign(nostrx.Event{Kind: kind, CreatedAt: time.Now().Unix(), Tags: tags, Content: "text"})
	if err != nil {
		n.t.Fatal(err)
	}
	web := n.web
	if by != n.other {
		transport := &http.Transport{DialContext: (&cable{to: n.pipes}).dial}
		defer transport.CloseIdleConnections()
		if web, err = nostrx.NewWeb(relayURL, by, &http.Client{Transport: transport}, nil); err != nil {
			n.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(n.t.Context(), 30*time.Second)
	defer cancel()
	_, _ = web.Publish(ctx, e) // what the relay does with it is looked at in the relay
	n.posted = append(n.posted, e)
	return e
}

// device is an installation: an agent with its partition and its cable.
type device struct {
	*Agent
	n         *network
	name      string
	cable     *cable
	transport *http.Transport
}

func (n *network) device(name string) *device {
	n.t.Helper()
	d := &device{n: n, name: name, cable: &cable{to: n.pipes}}
	d.start()
	n.t.Cleanup(d.stop)
	return d
}

func (d *device) book() *journal.Book {
	return d.n.journal.Book(journal.Partition{Scope: d.name, Viewer: d.n.viewer.Public()})
}

func (d *device) start() {
	d.n.t.Helper()
	d.transport = &http.Transport{DialContext: d.cable.dial}
	var err error
	d.Agent, err = Open(d.n.t.Context(), Options{
		URL: relayURL, Key: d.n.viewer, Book: d.book(), HTTP: &http.Client{Transport: d.transport},
	})
	if err != nil {
		d.n.t.Fatal(err)
	}
}

func (d *device) stop() {
	d.Close()
	d.transport.CloseIdleConnections()
}

func (d *device) see(target Target) Snapshot {
	d.n.t.Helper()
	s, err := d.Snapshot(target)
	if err != nil {
		d.n.t.Fatal(err)
	}
	return s
}

func (d *device) record() journal.Record {
	d.n.t.Helper()
	r, err := d.book().Load(d.n.t.Context())
	if err != nil {
		d.n.t.Fatal(err)
	}
	return r
}

// must reports a failure of the act that was expected to succeed.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func channelTarget(id string) Target { return Target{Kind: "channel", ChannelID: id} }

func journalPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "journal.db")
}

// pass lets time go by in the bubble; outside of one it panics.
func pass(d time.Duration) {
	synctest.Wait()
	moved := time.NewTimer(d)
	<-moved.C
	synctest.Wait()
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
