package unread

import (
	"context"
	"fmt"
	"maps"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// stream is a client of the simulation: it holds what it was told, and nothing else.
type stream struct {
	watch  *Watch
	copies map[readstate.MemberID]*copied
}

// copied is a client's copy of one member.
type copied struct {
	taken   bool // a whole snapshot
	rows    map[readstate.ScopeID]Row
	summary Summary
	lsn     readstate.LSN // up to which everything was told
	old     *copied       // what a client has that went away a while ago
}

func (s *simulation) connect() {
	if len(s.streams) >= 3 {
		return
	}
	x := &stream{copies: map[readstate.MemberID]*copied{}}
	var ids []readstate.MemberID
	for range 1 + s.rng.IntN(3) {
		id := memberID(s.member())
		ids = append(ids, id)
		x.copies[id] = &copied{}
	}
	w, err := s.r.Watch(testSpace, ids)
	if err != nil {
		s.t.Fatal(err)
	}
	x.watch = w
	s.streams = append(s.streams, x)
}

func (s *simulation) disconnect() {
	if n := len(s.streams); n > 0 {
		s.streams[n-1].watch.Close()
		s.streams = s.streams[:n-1]
	}
}

// drain lets every stream catch up and compares its copy with the oracle.
func (s *simulation) drain() error {
	for s.ws.st.pending() {
		s.r.step(s.ws)
	}
	_, due, _ := s.r.agenda.take(s.r.now())
	for _, a := range due {
		s.r.keep(a)
	}
	for i := 0; i < len(s.streams); i++ {
		x := s.streams[i]
		select {
		case <-x.watch.Lost():
			x.watch.Close()
			s.streams = append(s.streams[:i], s.streams[i+1:]...)
			i--
			continue
		default:
		}
		if err := s.catchUp(x); err != nil {
			return err
		}
	}
	return nil
}

func (s *simulation) catchUp(x *stream) error {
	for id, c := range x.copies {
		if !c.taken && s.complete(id) {
			if err := s.snapshot(id, c); err != nil {
				return err
			}
		}
	}
	for {
		deltas := x.watch.Next(1 + s.rng.IntN(4))
		if deltas == nil {
			break
		}
		for _, d := range deltas {
			x.copies[d.Member].take(d)
		}
	}
	for id, c := range x.copies {
		if c.taken && s.complete(id) {
			if err := s.compareCopy(id, c); err != nil {
				return err
			}
			at, settled := x.watch.Settled()
			if !settled {
				continue // another member of the stream is being loaded
			}
			if at != s.ws.st.lsn {
				return fmt.Errorf("a drained stream is settled at %d, not %d", at, s.ws.st.lsn)
			}
			c.lsn = at
			if err := s.resume(id, c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *copied) take(d Delta) {
	if !c.taken {
		return
	}
	c.summary = d.Summary
	c.lsn = d.Summary.LSN
	if d.Removed {
		delete(c.rows, d.Scope)
	} else {
		c.rows[d.Scope] = d.Row
	}
}

func (s *simulation) complete(id readstate.MemberID) bool {
	m := s.ws.st.memberNamed(id)
	return m != none && s.ws.st.members.At(m).is(complete)
}

// snapshot pages through the member's rows.
func (s *simulation) snapshot(id readstate.MemberID, c *copied) error {
	c.taken, c.rows = true, map[readstate.ScopeID]Row{}
	cursor := ""
	for {
		page, err := s.r.Rows(context.Background(), testSpace, id, cursor, 1+s.rng.IntN(4))
		if err != nil {
			return err
		}
		for _, row := range page.Rows {
			c.rows[row.Scope.ID] = row
		}
		c.summary, c.lsn = page.Summary, page.LSN
		if cursor = page.Next; cursor == "" {
			return nil
		}
	}
}

// compareCopy holds a client's copy against the oracle.
func (s *simulation) compareCopy(id readstate.MemberID, c *copied) error {
	m := model.MemberID(id[0]-'A') + 1
	w := s.world()
	present := 0
	for _, sc := range w.ScopeIDs() {
		want := w.Values(m, sc)
		row, has := c.rows[scopeID(sc)]
		if has != want.Present {
			return fmt.Errorf("stream of %s: has %s: %t, want %t", id, sc, has, want.Present)
		}
		if !has {
			continue
		}
		present++
		s.oracle.comparisons++
		got := model.Values{
			Unread: int(row.Values.Unread), Attention: int(row.Values.Attention),
			Activity: int(row.Values.Activity), Level: model.Level(row.Level),
			Manual: row.Row.Manual.Set, Version: model.Version(row.Row.Manual.Version),
			Archived: row.Archived, Counted: row.Presented.Counts, Shown: row.Presented.Shown,
			ShownUnread: int(row.Presented.Unread),
		}
		want.Exists, want.Present, want.Head, want.Read = false, false, 0, 0
		want.ManualFrom, want.ActivityRead = 0, 0
		if got != want {
			return fmt.Errorf("stream of %s, %s:\n got %v\nwant %v", id, sc, got, want)
		}
	}
	if len(c.rows) != present {
		return fmt.Errorf("stream of %s has %d rows, want %d", id, len(c.rows), present)
	}
	return nil
}

// resume asks what a client has missed that saw everything up to some earlier LSN, of which the
// copy kept the rows, and patches that copy.
func (s *simulation) resume(id readstate.MemberID, c *copied) error {
	old := c.old
	if old == nil {
		old = c.frozen()
	}
	if c.old == nil || s.rng.IntN(3) == 0 {
		c.old = c.frozen()
	}
	changes, err := s.r.Changed(context.Background(), testSpace, id, old.lsn)
	if err != nil || changes.Whole {
		return err
	}
	patched := old.frozen()
	for _, d := range changes.Deltas {
		patched.take(d)
	}
	if err := s.compareCopy(id, patched); err != nil {
		return fmt.Errorf("resume from %d at %d: %w", old.lsn, changes.LSN, err)
	}
	return nil
}

// frozen is the copy as it is now.
func (c *copied) frozen() *copied {
	return &copied{taken: true, rows: maps.Clone(c.rows), lsn: c.lsn}
}
