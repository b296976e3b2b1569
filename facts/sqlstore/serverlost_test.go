package sqlstore_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/internal/dbtest"
	"github.com/tidemark-im/tidemark/readstate"
)

// wire stands between a store and its server and breaks when it is told.
type wire struct {
	listener net.Listener
	server   string
	// muted: the next answer is not passed on, and its connection is gone instead.
	muted atomic.Bool

	mu    sync.Mutex
	open  map[net.Conn]struct{}
	going sync.WaitGroup
}

// through returns a wire to the server of a database, and the database's name over it.
func through(t *testing.T, db dbtest.Database) (*wire, string) {
	t.Helper()
	u, err := url.Parse(db.Facts)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{server: u.Host, open: map[net.Conn]struct{}{}}
	if w.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	w.going.Go(w.accept)
	t.Cleanup(func() {
		_ = w.listener.Close()
		w.cut()
		w.going.Wait()
	})
	u.Host = w.listener.Addr().String()
	return w, u.String()
}

func (w *wire) accept() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.server)
		if err != nil {
			_ = near.Close()
			continue
		}
		w.mu.Lock()
		w.open[near], w.open[far] = struct{}{}, struct{}{}
		w.mu.Unlock()
		w.going.Go(func() { w.pass(far, near, false) })
		w.going.Go(func() { w.pass(near, far, true) })
	}
}

// pass copies until one of the two sides is gone.
func (w *wire) pass(to, from net.Conn, answers bool) {
	defer func() {
		w.mu.Lock()
		delete(w.open, from)
		w.mu.Unlock()
		_ = from.Close()
		_ = to.Close()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && answers && w.muted.CompareAndSwap(true, false) {
			return
		}
		if _, e := to.Write(buf[:n]); e != nil || err != nil {
			return
		}
	}
}

// cut breaks every connection.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.open {
		_ = c.Close()
	}
}

// A commit whose answer was lost, and one that never came to the server, are told apart: each
// operation is carried out once, and its caller hears of no trouble.
func TestServerLostCommits(t *testing.T) {
	onServers(t, func(t *testing.T, db dbtest.Database) {
		w, name := through(t, db)
		var next atomic.Pointer[func()] // what happens at the next COMMIT
		st, err := sqlstore.Open(t.Context(), name, sqlstore.Options{
			OnStatement: func(_ context.Context, query string) {
				if query != "COMMIT" {
					return
				}
				if f := next.Swap(nil); f != nil {
					(*f)()
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		ids := 0
		var applied []facts.Commit
		lane, err := facts.NewLane(t.Context(), facts.LaneConfig{
			Store: st, Now: time.Now, Apply: func(c facts.Commit) { applied = append(applied, c) },
			NewID:   func() string { ids++; return fmt.Sprint("id-", ids) },
			Dropped: func(readstate.WorkspaceID, readstate.LSN) { t.Error("memory was dropped") },
		})
		if err != nil {
			t.Fatal(err)
		}
		for n, trouble := range []func(){
			nil, func() { w.muted.Store(true) }, nil, w.cut, func() { w.muted.Store(true) }, w.cut,
		} {
			if trouble != nil {
				next.Store(&trouble)
			}
			// The first one makes the workspace: what is not there cannot be locked.
			if _, err := lane.PutWorkspace(t.Context(), facts.PutWorkspace{
				ID: readstate.WorkspaceID(fmt.Sprint("w", n)),
			}); err != nil {
				t.Errorf("workspace %d: %v", n, err)
			}
			if trouble != nil {
				next.Store(&trouble)
			}
			if _, err := lane.PutMember(t.Context(), "w0", facts.PutMember{
				ID: readstate.MemberID(fmt.Sprint("m", n)),
			}); err != nil {
				t.Errorf("member %d: %v", n, err)
			}
		}
		lane.Close()
		view, err := st.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer view.Close()
		spaces, err := view.Workspaces(t.Context())
		if err != nil || len(spaces) != 6 {
			t.Fatalf("%d workspaces, %v", len(spaces), err)
		}
		members, err := view.ListMembers(t.Context(), spaces[0].Key, "", 100)
		if err != nil || len(members) != 6 || len(applied) != 12 {
			t.Errorf("%d members after %d commits, %v", len(members), len(applied), err)
		}
	})
}
