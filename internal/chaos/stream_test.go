package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// watcher is a client that lives through every kill: it follows all members of a workspace over
// one stream, folds what it is told, and resumes where it was. Whatever a server told and could
// not keep would stay in its fold.
type watcher struct {
	world *world

	mu     sync.Mutex
	boards map[string]board // by member
	paging map[string]bool  // members in the middle of a snapshot
	last   string           // id of the newest event that had one
	told   chan struct{}    // holds a token after every event
	heard  []string         // the newest events

	events, resumed int
	stop            context.CancelFunc
	ended           chan struct{}
	err             error // why the stream ended; read after ended
}

func newWatcher(w *world) *watcher {
	return &watcher{world: w, boards: map[string]board{}, told: make(chan struct{}, 1)}
}

// open connects to a server and follows until it dies or close is called.
func (w *watcher) open(ctx context.Context, wire *wire) {
	ctx, w.stop = context.WithCancel(ctx)
	w.ended = make(chan struct{})
	go func() {
		defer close(w.ended)
		w.err = w.follow(ctx, wire)
	}()
}

// close ends the stream, if the server did not.
func (w *watcher) close() {
	if w.stop != nil {
		w.stop()
		<-w.ended
	}
}

func (w *watcher) follow(ctx context.Context, wire *wire) error {
	path := address(w.world.name, "events?members="+url.QueryEscape(w.world.members[0]))
	for _, m := range w.world.members[1:] {
		path += "," + url.QueryEscape(m)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, wire.base+path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+w.world.service)
	if w.last != "" {
		r.Header.Set("Last-Event-ID", w.last)
	}
	answer, err := wire.http.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("stream: %s", answer.Status)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	var event, id, data string
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "event":
			event = value
		case "id":
			id = value
		case "data":
			data += value
		case "":
			if lines.Text() == "" && event != "" {
				if err := w.hear(event, id, []byte(data)); err != nil {
					return err
				}
				event, id, data = "", "", ""
			}
		}
	}
	return lines.Err()
}

// eventsKept bounds the events that a failure prints.
const eventsKept = 60

// delta is what both kinds of events say of a member.
type delta struct {
	Member string `json:"member"`
	Scope  string `json:"scope"`
	Row    *row   `json:"row"`
	Gone   bool   `json:"removed"`
	page
}

// hear folds one event in. An event counts once all of it has arrived.
func (w *watcher) hear(event, id string, data []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events++
	var d delta
	if err := json.Unmarshal(data, &d); err != nil {
		return fmt.Errorf("%s %s: %w", event, clip(data), err)
	}
	w.heard = append(w.heard, fmt.Sprintf("%s %s %s", event, id, clip(data)))
	w.heard = w.heard[max(0, len(w.heard)-eventsKept):]
	switch event {
	case "hello":
		var hello struct {
			Resumed bool `json:"resumed"`
		}
		if err := json.Unmarshal(data, &hello); err != nil {
			return err
		}
		if hello.Resumed {
			w.resumed++
		} else {
			w.boards = map[string]board{}
		}
		w.paging = map[string]bool{}
	case "snapshot":
		if d.State != "ready" {
			return nil // withheld; it comes later
		}
		b := w.board(d.Member)
		if !w.paging[d.Member] { // the first page of all there is: nothing else counts any more
			clear(b.Scopes)
		}
		w.paging[d.Member] = !d.Complete
		for scope, r := range d.Scopes {
			b.Scopes[scope] = r.seen()
		}
		b.HasUnread, b.Badge = d.HasUnread, d.Badge
		w.boards[d.Member] = b
	case "unread":
		b := w.board(d.Member)
		if d.Gone {
			delete(b.Scopes, d.Scope)
		} else {
			b.Scopes[d.Scope] = d.Row.seen()
		}
		b.HasUnread, b.Badge = d.HasUnread, d.Badge
		w.boards[d.Member] = b
	case "inbox": // a hint of a server that has inboxes
	default:
		return errors.New("unknown event " + event)
	}
	if id != "" {
		w.last = id
	}
	select {
	case w.told <- struct{}{}:
	default:
	}
	return nil
}

func (w *watcher) board(member string) board {
	if b, ok := w.boards[member]; ok {
		return b
	}
	return board{Scopes: map[string]seen{}}
}

// differs compares the fold with what members are served. What a message changes for those for
// whom it does not count is no event, so that their rows may name an older head; nor is the choice
// of the number that a badge displays.
func (w *watcher) differs(served map[string]board) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cmp.Diff(served, w.boards, cmpopts.IgnoreFields(seen{}, "Head", "Replies", "Latest"),
		cmpopts.IgnoreFields(badge{}, "Display"))
}

// catchUp waits until the fold is what members are served; false when the workspace has gone on
// since they were.
func (s *siege) catchUp(w *watcher, served map[string]board, lsn uint64) bool {
	s.t.Helper()
	enough := time.After(patience)
	for {
		diff := w.differs(served)
		if diff == "" {
			return true
		}
		if readDurable(s.t, s.store)[w.world.name].lsn != lsn {
			return false
		}
		select {
		case <-w.told:
		case <-w.ended:
			s.fail("streaming", fmt.Sprintf("the stream of %s ended: %v", w.world.name, w.err))
		case <-time.After(time.Second):
			// Nothing was told, but the sweeper may have made a commit that tells nobody here.
		case <-enough:
			w.mu.Lock()
			heard := strings.Join(w.heard, "\n")
			w.mu.Unlock()
			s.fail("streaming", fmt.Sprintf("%s, served and folded from the stream:\n%s\n"+
				"last events:\n%s", w.world.name, diff, heard))
		}
	}
}
