package intake

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// A restart shows what the last flush knew, as a hint. What came after it is lost, and neither
// reads nor time bring it back.
// covers: RT-002 RT-003 RT-108 RT-319 RT-330 RT-357 RT-464 RT-474 RT-489 RT-490 RT-375
func TestRestartServesTheLastFlush(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(room("c", "a", "b")...)
	b.tell(msg("c", 1, "a"), msg("c", 2, "a"))
	b.shows("b", "c", 2, unread.Ready)
	b.flush()
	b.tell(msg("c", 3, "a"))
	b.shows("b", "c", 3, unread.Ready)
	b.crash()
	for range 3 {
		b.shows("b", "c", 2, unread.SnapshotServing)
	}
	// The next event adds to what is shown; what was missed is not guessed at.
	b.tell(msg("c", 4, "a"))
	b.shows("b", "c", 3, unread.SnapshotServing)
	if n := b.f.Stats().PendingFrontiers; n != 1 {
		t.Errorf("%d pending frontiers", n)
	}
	b.f.Runtime().Forget(space0, "b")
	b.shows("b", "c", 3, unread.SnapshotServing)
	// A cursor at the head leaves nothing to be unsure of.
	b.tell(ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 4})
	b.shows("b", "c", 0, unread.Ready)
	b.tell(msg("c", 5, "a"))
	b.shows("b", "c", 1, unread.Ready)
	b.shows("a", "c", 0, unread.SnapshotServing)
}

// Of a member without rows nothing is known, which is not the same as nothing unread.
// covers: RT-335 RT-329 RT-064
func TestNoRows(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(room("c", "a", "b")...)
	b.tell(msg("c", 1, "a"))
	counts, _, err := b.f.Runtime().Counts(t.Context(), space0, "stranger", nil)
	if err != nil || len(counts) > 0 {
		t.Errorf("%v %v", counts, err)
	}
	s, err := b.f.Runtime().Summary(t.Context(), space0, "stranger")
	if err != nil || s.HasUnread || s.State != unread.SnapshotServing {
		t.Errorf("%+v %v", s, err)
	}
	if dot, state := b.f.Runtime().HasUnread(space0, "stranger"); dot || state != unread.SnapshotServing {
		t.Errorf("%t %s", dot, state)
	}
	if s, err = b.f.Runtime().Summary(t.Context(), space0, "b"); err != nil || !s.HasUnread || s.State != unread.Ready {
		t.Errorf("%+v %v", s, err)
	}
}

// A change with an exact meaning changes what is shown at once, and makes its row dirty.
// covers: RT-225 RT-230 RT-048 RT-261
func TestExactChanges(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(room("c", "a", "b")...)
	b.tell(msg("c", 1, "a"))
	b.flush()
	b.store.written()
	b.clock.Add(5)
	b.tell(NotificationPolicyChanged{Scope: "c", Member: "b", Level: readstate.LevelNone})
	b.shows("b", "c", 1, unread.Ready)
	if dot, state := b.f.Runtime().HasUnread(space0, "b"); dot || state != unread.Ready {
		t.Errorf("muted: %t %s", dot, state)
	}
	b.flush()
	if rows := b.store.written(); len(rows) != 1 || rows[0].Member != "b" || rows[0].Notification != "none" ||
		rows[0].UpdatedAt != b.clock.Load() {
		t.Errorf("%+v", rows)
	}
}

// What rebuilds counts from facts cannot be reached from here: no package of facts is.
// covers: RT-284 RT-361
func TestNoWayToFacts(t *testing.T) {
	for _, dir := range []string{".", "../snapshot", "../snapshot/sqlsnap"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range f.Imports {
				if strings.Contains(i.Path.Value, "tidemark/facts") {
					t.Errorf("%s imports %s", name, i.Path.Value)
				}
			}
		}
	}
}

// A stream that resumes where an earlier process stood gets everything anew.
func TestResumeAcrossRestarts(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(room("c", "a", "b")...)
	b.tell(msg("c", 1, "a"))
	b.shows("b", "c", 1, unread.Ready)
	row, _ := b.row("b", "c")
	changes, err := b.f.Runtime().Changed(t.Context(), space0, "b", row.LSN)
	if err != nil || changes.Whole || len(changes.Deltas) > 0 {
		t.Fatalf("%+v %v", changes, err)
	}
	b.clock.Add(100_000)
	b.restart()
	b.shows("b", "c", 1, unread.SnapshotServing)
	if changes, err = b.f.Runtime().Changed(t.Context(), space0, "b", row.LSN); err != nil || !changes.Whole {
		t.Fatalf("%+v %v", changes, err)
	}
}

// So does one whose process took in more than the clock has seconds, when the next one did, too.
func TestResumeAfterABusyProcess(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(room("c", "a", "b")...)
	for r := readstate.Revision(1); r <= 40; r++ {
		b.tell(msg("c", r, "a"))
	}
	b.shows("b", "c", 40, unread.Ready)
	row, _ := b.row("b", "c")
	b.clock.Add(10)
	b.restart()
	b.tell(msg("c", 41, "a")) // which the stream was not told of
	for r := readstate.Revision(1); r <= 60; r++ {
		b.tell(msg("d", r, "a"))
	}
	changes, err := b.f.Runtime().Changed(t.Context(), space0, "b", row.LSN)
	if err != nil || !changes.Whole {
		t.Fatalf("%+v %v", changes, err)
	}
}

// After a restart nobody knows whether the head that was flushed is the scope's: a cursor there
// settles nothing, until an event tells.
// covers: RT-318 RT-320
func TestHeadIsNotKnown(t *testing.T) {
	b := newBench(t, Config{})
	b.tell(room("c", "a", "b")...)
	b.tell(msg("c", 1, "a"), msg("c", 2, "a"))
	b.restart()
	b.tell(ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 2})
	b.shows("b", "c", 0, unread.SnapshotServing)
	b.tell(ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 2, Head: 2})
	b.shows("b", "c", 0, unread.Ready)
	b.tell(msg("c", 3, "a"), ReadCursorAdvanced{Scope: "c", Member: "a", Revision: 3})
	b.shows("a", "c", 0, unread.Ready)
}

// A row that is written and let go while a page is being read is not lost to the page.
// covers: RT-353
func TestPageDuringFlush(t *testing.T) {
	cfg := Config{}
	cfg.Limits.Cached = 1
	b := newBench(t, cfg)
	b.tell(room("c", "a", "b")...)
	b.tell(room("d", "x", "y")...)
	b.tell(msg("c", 1, "a"))
	b.restart()
	b.tell(ReadCursorAdvanced{Scope: "c", Member: "b", Revision: 1, Head: 1})
	done := false
	b.store.after = func(q snapshot.Query) {
		if q.Member != "b" || done {
			return
		}
		done = true
		if err := b.f.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		if err := b.f.Tell(space0, ManualUnreadSet{Scope: "d", Member: "x"}, ManualUnreadSet{Scope: "d", Member: "y"}); err != nil {
			t.Error(err)
		}
		b.settle()
		b.f.all()[0].book.Trim()
	}
	b.shows("b", "c", 0, unread.Ready)
	if !done {
		t.Error("no page was read")
	}
}
