package client_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidemark-im/tidemark/client"
	"github.com/tidemark-im/tidemark/client/readsync"
)

// simDevice is a device of the member: a file, and the clients that use it one after the other.
type simDevice struct {
	run   *run
	name  string
	path  string
	lives int
	now   *life

	read map[string]readsync.Revision // the highest that was shown as read, by session
}

// life is one client of a device, from its opening to its end.
type life struct {
	device  *simDevice
	n       int
	client  *client.Client
	dead    atomic.Bool // killed, or closed: nothing that it does is of any effect any more
	offline atomic.Bool
	fuse    atomic.Int64 // steps of operations until it is killed; zero for never

	where  string               // it was killed
	atEnd  []readsync.Operation // what it showed then
	copied string               // the file as it was then

	resume string // the id of the last event that it got
	window *client.Window
	epoch  client.Snapshot
	old    []client.Session  // what somebody saw some time ago
	list   []client.Session  // likewise
	views  []client.Snapshot // likewise, of the window
	ops    []readsync.Operation
	// replaced are the sessions that it told of to be replaced.
	replaced map[string]bool

	mu     sync.Mutex
	events []client.Event
}

func (l *life) String() string { return fmt.Sprintf("%s%d", l.device.name, l.n) }

// first is the oldest operation of a session: the one that may be under way.
func (l *life) first(session string) readsync.Operation {
	for _, op := range l.client.Operations() {
		if op.Session == session {
			return op
		}
	}
	return readsync.Operation{}
}

// open begins a life over the device's file.
func (d *simDevice) open() {
	d.lives++
	l := &life{device: d, n: d.lives, replaced: map[string]bool{}}
	options := client.Options{
		HTTP:   &http.Client{Transport: transport{l}},
		Random: func() float64 { return 0.5 },
		NewID:  func() string { return d.run.newID(d.name) },
		OnEvent: func(e client.Event) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.events = append(l.events, e)
		},
	}
	options.OnStep(l.onStep)
	options.NoSync() // here processes end, and never the machine
	token := func(context.Context) (string, error) { return d.run.token, nil }
	c, err := client.OpenWith(context.Background(), "http://server", token, d.path, options)
	if err != nil {
		d.run.fail("%s: open: %v", l, err)
	}
	d.run.net.mu.Lock() // which its requests pass, too
	l.client = c
	d.run.net.mu.Unlock()
	d.now = l
}

// onStep is called by the client between any two steps of an operation.
func (l *life) onStep(step string) {
	if l.fuse.Load() > 0 && l.fuse.Add(-1) == 0 {
		l.kill(step)
	}
}

// kill takes a copy of the file as a process leaves it that is killed now. The goroutines of the
// client go on, with the old file and without a network.
func (l *life) kill(where string) {
	if l.dead.Swap(true) {
		return
	}
	l.where, l.atEnd = where, l.client.Operations()
	l.copied = filepath.Join(l.device.run.dir, fmt.Sprintf("%s-%s.db", l.device.run.member, l))
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(l.device.path + suffix)
		if err == nil {
			err = os.WriteFile(l.copied+suffix, data, 0o600)
		}
		if err != nil && !os.IsNotExist(err) {
			panic(err) // the test's own disk
		}
	}
}

// end ends a life: its client is closed, whether it knows that it is dead or not.
func (l *life) end() {
	if !l.dead.Swap(true) {
		l.atEnd = l.client.Operations()
	}
	if err := l.client.Close(); err != nil {
		l.device.run.fail("%s: close: %v", l, err)
	}
	net := l.device.run.net
	for _, s := range net.streams {
		if s.of == l {
			s.cut()
		}
	}
	net.forget(func(p *parcel) bool { return p.of == l && p.answer != nil })
}

// again begins the next life, after one that was closed or killed, and looks at what it finds.
func (d *simDevice) again() {
	r, before := d.run, d.now
	if before.where != "" {
		before.end()
		for _, suffix := range []string{"", "-wal"} {
			_ = os.Remove(d.path + suffix)
		}
		d.path = before.copied
	}
	d.open()
	stored := r.stored(d)
	for _, op := range before.atEnd {
		w := r.wishes[op.ID]
		if w != nil && w.decided != 0 || r.gone[op.Session] != "" {
			continue // its end may have been in the file already
		}
		if !slices.ContainsFunc(stored, func(x readsync.Operation) bool { return x.ID == op.ID }) {
			r.fail("%s showed %+v when it ended at %q, and the file has only %+v", before, op,
				before.where, stored)
		}
	}
	r.adopt(d, before, stored)
}

func (l *life) takeEvents() []client.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.events
	l.events = nil
	return list
}
