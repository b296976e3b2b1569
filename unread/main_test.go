package unread

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark/readstate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk is a runtime over a mirror for tests that say step by step what happens. Its pages are
// read by the test's own goroutine.
type desk struct {
	t     *testing.T
	facts *mirror
	r     *Runtime
}

func newDesk(t *testing.T, cfg Config, lines ...string) *desk {
	t.Helper()
	d := &desk{t: t, facts: newMirror(nil)}
	cfg.Source = d.facts
	if cfg.Now == nil {
		cfg.Now = d.facts.now
	}
	r, err := newRuntime(cfg)
	if err != nil {
		t.Fatal(err)
	}
	d.r = r
	t.Cleanup(r.Close)
	r.Open(testSpace, 0)
	d.do(lines...)
	return d
}

// do carries operations out, each as a commit that is applied.
func (d *desk) do(lines ...string) {
	d.t.Helper()
	d.facts.do(d.t, d.r, lines...)
}

// load reads pages until nobody is being loaded.
func (d *desk) load(members ...readstate.MemberID) {
	d.t.Helper()
	for _, id := range members {
		d.r.HasUnread(testSpace, id)
	}
	d.pump()
}

func (d *desk) pump() {
	for len(d.r.queue.jobs) > 0 {
		j := d.r.queue.next()
		if req, ok := d.r.beginPage(j); ok {
			page, err := d.facts.Page(context.Background(), req)
			d.r.finishPage(j, page, err)
		}
	}
}

// cold is a context for reads that must not wait.
func cold() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func (d *desk) row(m readstate.MemberID, s readstate.ScopeID) Row {
	d.t.Helper()
	row, err := d.r.Row(cold(), testSpace, m, s)
	if err != nil {
		d.t.Fatalf("row of %s in %s: %v", m, s, err)
	}
	return row
}

func (d *desk) unread(m readstate.MemberID, s readstate.ScopeID) uint64 {
	d.t.Helper()
	return d.row(m, s).Values.Unread
}

func (d *desk) summary(m readstate.MemberID) Summary {
	d.t.Helper()
	s, err := d.r.Summary(cold(), testSpace, m)
	if err != nil {
		d.t.Fatalf("summary of %s: %v", m, err)
	}
	return s
}

func (d *desk) dot(m readstate.MemberID) bool {
	d.t.Helper()
	dot, state := d.r.HasUnread(testSpace, m)
	if state != Ready {
		d.t.Fatalf("dot of %s is %s", m, state)
	}
	return dot
}

func (d *desk) watch(members ...readstate.MemberID) *Watch {
	d.t.Helper()
	w, err := d.r.Watch(testSpace, members)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(w.Close)
	d.pump()
	d.told(w)
	return w
}

// told takes what a watch has, as "member scope" words.
func (d *desk) told(w *Watch) []string {
	var words []string
	for deltas := w.Next(100); deltas != nil; deltas = w.Next(100) {
		for _, x := range deltas {
			word := string(x.Member) + " " + string(x.Scope)
			if x.Removed {
				word += " removed"
			}
			words = append(words, word)
		}
	}
	return words
}

// space is the desk's workspace.
func (d *desk) space() *workspace {
	ws, err := d.r.workspace(testSpace)
	if err != nil {
		d.t.Fatal(err)
	}
	return ws
}

// room is a channel with A, B and C in it.
var room = []string{"create s1 channel", "join s1 A", "join s1 B", "join s1 C"}

// agree compares everything loaded with the world.
func (d *desk) agree() {
	d.t.Helper()
	o := oracle{world: d.facts.world, facts: d.facts}
	ws := d.space()
	d.r.lock(ws)
	defer d.r.unlock(ws)
	for _, m := range ws.st.memberByKey {
		if err := o.member(ws.st, m, ws.st.now); err != nil {
			d.t.Fatal(err)
		}
	}
	if err := ws.st.sound(); err != nil {
		d.t.Fatal(err)
	}
}
