package broker

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/tidemark-im/tidemark/relay/agent"
)

var (
	errStream  = errors.New("no such stream")
	errStreams = fmt.Errorf("more than %d streams are open", MaxStreams)
)

// beat is how often a stream says something although nothing changed; sync states are looked at then,
// since time changes them, too.
const beat = time.Second

// stream is one window's view. What changed is remembered by target and never queued: a slow window gets
// the present.
type stream struct {
	wake chan struct{} // has room for one

	mu      sync.Mutex
	watched map[agent.Target]func() // what ends the subscription
	dirty   map[agent.Target]bool
}

func (s *stream) touch(t agent.Target) {
	s.mu.Lock()
	s.dirty[t] = true
	s.mu.Unlock()
	s.stir()
}

func (s *stream) stir() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// watch replaces what the stream carries.
func (s *stream) watch(a *agent.Agent, targets []agent.Target) error {
	for _, t := range targets {
		if err := t.Check(); err != nil {
			return err
		}
	}
	next := make(map[agent.Target]bool)
	for _, t := range targets {
		next[t] = true
	}
	s.mu.Lock()
	had := s.watched
	s.watched = make(map[agent.Target]func())
	s.mu.Unlock()
	fresh := make(map[agent.Target]func())
	for t := range next {
		if end, ok := had[t]; ok {
			fresh[t] = end
			delete(had, t)
			continue
		}
		end, err := a.Subscribe(t, func() { s.touch(t) })
		if err != nil {
			return err
		}
		fresh[t] = end
		s.touch(t)
	}
	for _, end := range had {
		end()
	}
	s.mu.Lock()
	s.watched = fresh
	s.mu.Unlock()
	return nil
}

func (b *Broker) open() (string, *stream, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.streams) >= MaxStreams {
		return "", nil, errStreams
	}
	id := rand.Text()
	s := &stream{wake: make(chan struct{}, 1), dirty: make(map[agent.Target]bool)}
	b.streams[id] = s
	return id, s, nil
}

func (b *Broker) close(id string, s *stream) {
	b.mu.Lock()
	delete(b.streams, id)
	b.mu.Unlock()
	s.mu.Lock()
	had := s.watched
	s.watched = nil
	s.mu.Unlock()
	for _, end := range had {
		end()
	}
}

func (b *Broker) subscribe(w http.ResponseWriter, req *http.Request) {
	q, err := read(req)
	if err == nil && len(q.Targets) > MaxTargets {
		err = fmt.Errorf("%w: at most %d targets", errBody, MaxTargets)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	b.mu.Lock()
	s := b.streams[q.Stream]
	b.mu.Unlock()
	if s == nil {
		refuse(w, errStream)
		return
	}
	if err := s.watch(b.o.Agent, q.Targets); err != nil {
		refuse(w, err)
		return
	}
	answer(w, struct{}{})
}

// entry is one target with its snapshot.
type entry struct {
	Target   agent.Target   `json:"target"`
	Snapshot agent.Snapshot `json:"snapshot"`
}

func (b *Broker) serveEvents(w http.ResponseWriter, req *http.Request) {
	id, s, err := b.open()
	if err != nil {
		refuse(w, err)
		return
	}
	defer b.close(id, s)
	defer b.o.Agent.SubscribeBadge(s.stir)()
	w.Header().Set("Content-Type", "text/event-stream")
	flusher := http.NewResponseController(w)
	send := func(name string, doc any) error {
		data, err := json.Marshal(doc)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data); err != nil {
			return err
		}
		return flusher.Flush()
	}
	if send("hello", map[string]string{"stream": id}) != nil {
		return
	}
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	last := make(map[string]any)
	for b.step(req.Context(), s, last, send) == nil {
		select {
		case <-req.Context().Done():
			return
		case <-s.wake:
		case <-ticker.C:
		}
	}
}

// step sends what is different from what was sent last.
func (b *Broker) step(
	ctx context.Context, s *stream, last map[string]any, send func(string, any) error,
) error {
	s.mu.Lock()
	dirty := s.dirty
	s.dirty = make(map[agent.Target]bool)
	s.mu.Unlock()
	var entries []entry
	for t := range dirty {
		if snapshot, err := b.o.Agent.Snapshot(t); err == nil {
			entries = append(entries, entry{t, snapshot})
		}
	}
	if len(entries) > 0 {
		if err := send("snapshots", entries); err != nil {
			return err
		}
	}
	for _, part := range []struct {
		name string
		doc  any
	}{
		{"roster", append([]agent.Channel{}, b.o.Agent.Channels()...)},
		{"badge", b.o.Agent.Badge()},
		{"sync", b.o.Agent.SyncDoc(ctx)},
	} {
		if reflect.DeepEqual(last[part.name], part.doc) {
			continue
		}
		if err := send(part.name, part.doc); err != nil {
			return err
		}
		last[part.name] = part.doc
	}
	return nil
}
