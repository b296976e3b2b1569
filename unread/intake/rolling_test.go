package intake

import (
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
)

// Old and new programs take turns on one table, in any order: what was delivered is shown or its row is
// withheld, never less; nothing is shown that was never stored; and the way back leaves an older
// program with exactly what the new one showed, or names the rows that it withheld. Seeds replay.
// covers: RT-287 RT-288 RT-290 RT-293 RT-304 RT-305 RT-308 RT-309 RT-312 RT-315
func TestSeededRollingUpgrade(t *testing.T) {
	seeds := 20
	if n, err := strconv.Atoi(os.Getenv("TIDEMARK_SEEDS")); err == nil {
		seeds = n
	} else if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { roll(t, uint64(seed)) })
	}
}

// rolling is a window in which both programs write.
type rolling struct {
	*bench
	rng    *rand.Rand
	people []readstate.MemberID
	all    []*errand
	read   map[readstate.MemberID]readstate.Revision // as the facts have it, whoever was told
	copies map[readstate.MemberID]older              // what the older program has in memory
	log    []string
}

func roll(t *testing.T, seed uint64) {
	cfg := Config{Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	rng := rand.New(rand.NewPCG(seed, 77))
	cfg.Flush.FlushBatchSize = 1 + rng.IntN(3)
	cfg.Limits.Cached, cfg.Limits.Held = 1+rng.IntN(8), 1+rng.IntN(4)
	r := &rolling{
		bench: newBench(t, cfg), rng: rng, people: []readstate.MemberID{"b", "x", "y"},
		read: map[readstate.MemberID]readstate.Revision{}, copies: map[readstate.MemberID]older{},
	}
	defer func() {
		if t.Failed() {
			for _, line := range r.log {
				t.Log(line)
			}
		}
	}()
	r.tell(job("t", r.people...)...)
	r.flush()
	for range 60 {
		r.step()
		r.check(false)
	}
	for _, m := range r.people { // facts are told in the end, whoever wrote them
		r.tell(ReadCursorAdvanced{Scope: "t", Member: m, Revision: r.read[m]})
	}
	r.goBack()
	for _, e := range r.all {
		r.deliver(e)
		if e.removed {
			r.takeBack(e)
		}
	}
	r.check(true)
	if s := r.f.Stats(); s.Failures+s.Runtime.Alarms > 0 {
		t.Fatalf("%d failures, %d alarms; %+v", s.Failures, s.Runtime.Alarms, s.Books)
	}
}

func (r *rolling) note(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

func (r *rolling) member() readstate.MemberID { return r.people[r.rng.IntN(len(r.people))] }

func (r *rolling) deliver(e *errand) {
	r.tell(e.event)
	err := r.barrier("t", e.event.Revision, 0, e.event.Recipients...)
	e.delivered = e.delivered || err == nil
	r.note("deliver %d: %v", e.event.Revision, err)
}

func (r *rolling) takeBack(e *errand) {
	r.tell(MessageRewound{Scope: "t", Removed: []MessageFacts{{
		Revision: e.event.Revision, Author: "a", Recipients: e.event.Recipients,
	}}})
}

func (r *rolling) step() {
	switch n := r.rng.IntN(16); {
	case n < 4:
		e := &errand{event: delivered("t", readstate.Revision(len(r.all)+1))}
		for _, m := range r.people {
			if r.rng.IntN(2) == 0 {
				e.event.Recipients = append(e.event.Recipients, m)
			}
		}
		if r.all = append(r.all, e); r.rng.IntN(4) > 0 {
			r.tell(e.event)
		}
		r.note("post %d to %v", e.event.Revision, e.event.Recipients)
	case n < 7 && len(r.all) > 0:
		r.deliver(r.all[r.rng.IntN(len(r.all))])
	case n == 7 && len(r.all) > 0:
		e := r.all[r.rng.IntN(len(r.all))]
		if e.removed = true; r.rng.IntN(2) == 0 {
			r.takeBack(e)
		}
		r.note("take %d back", e.event.Revision)
	case n == 8:
		m := r.member()
		r.read[m] = max(r.read[m], readstate.Revision(r.rng.IntN(len(r.all)+1)))
		r.tell(ReadCursorAdvanced{Scope: "t", Member: m, Revision: r.read[m]})
		r.note("%s reads to %d", m, r.read[m])
	case n == 9:
		r.store.failAfter(r.rng.IntN(4) - 1)
		err := r.f.Flush(r.t.Context())
		r.store.failAfter(-1)
		r.note("flush: %v", err)
	case n < 12:
		r.crash()
		r.note("crash")
	case n == 12:
		for _, m := range r.people {
			r.copies[m] = r.oldReads(m, "t")
		}
		r.note("the older program reads everything")
	case n < 15:
		r.oldTurn()
	default:
		m := r.member()
		r.tell(ReadCursorAdvanced{Scope: "t", Member: m, Revision: r.read[m]})
		r.note("%s is told to have read to %d", m, r.read[m])
	}
}

// oldTurn has the older program write what it has in memory: late, brought as far as it pleases, with
// as many of the entries as it happened to count, and perhaps with a cursor of its own.
func (r *rolling) oldTurn() {
	m := r.member()
	o, ok := r.copies[m]
	if !ok {
		return
	}
	if r.rng.IntN(3) == 0 {
		to := readstate.Revision(r.rng.IntN(len(r.all) + 1))
		r.read[m] = max(r.read[m], to)
		o.read = max(o.read, int64(to))
	}
	o.accounted = max(o.read, int64(r.rng.IntN(len(r.all)+50)))
	o.count = 0
	for _, e := range r.all {
		at := int64(e.event.Revision)
		if at > o.read && at <= o.accounted && slices.Contains(e.event.Recipients, m) && r.rng.IntN(2) == 0 {
			o.count++
		}
	}
	for _, g := range []*int64{&o.messages, &o.activities, &o.wound, &o.roster} {
		*g += int64(r.rng.IntN(50))
	}
	o.updated++
	r.copies[m] = o
	r.oldWrites(m, "t", o)
	r.note("the older program writes %s: %+v", m, o)
}

// check holds what is shown against what was delivered and what was posted.
func (r *rolling) check(exact bool) {
	r.t.Helper()
	for _, m := range r.people {
		row, err := r.row(m, "t")
		if err != nil {
			continue // withheld
		}
		var least, most uint64
		for _, e := range r.all {
			if !slices.Contains(e.event.Recipients, m) {
				continue
			}
			if e.event.Revision > row.Row.Read && (!exact || !e.removed) {
				most++
			}
			if e.delivered && !e.removed && e.event.Revision > max(row.Row.Read, r.read[m]) {
				least++
			}
		}
		if n := row.Values.Unread; n < least || n > most {
			r.t.Fatalf("%s sees %d, want %d to %d; %+v", m, n, least, most, row.Row)
		}
	}
}

// goBack folds the table, and has both programs read it.
func (r *rolling) goBack() {
	r.t.Helper()
	r.restart()
	type seen struct {
		shown     bool
		n         uint64
		protected bool
	}
	before := map[readstate.MemberID]seen{}
	hidden := 0
	for _, m := range r.people {
		row, err := r.row(m, "t")
		s := seen{err == nil, row.Values.Unread, r.task(m, "t").format.Valid}
		if before[m] = s; s.protected && !s.shown {
			hidden++
		}
	}
	r.f.Abandon()
	found, err := r.fold(false)
	if err != nil || int(found.Stopped) != hidden {
		r.t.Fatalf("%+v, %v; %d rows are withheld", found, err, hidden)
	}
	for _, o := range found.Obstacles {
		if s := before[o.Member]; s.shown || !s.protected {
			r.t.Errorf("%s stops the way back: %s", o.Member, o.Why)
		}
	}
	r.table(func(db *sql.DB) {
		for m, s := range before {
			if !s.protected {
				continue
			}
			c := taskOf(r.t, db, m, "t")
			if c.format.Valid != (hidden > 0) || c.text.Valid != (hidden > 0) {
				r.t.Errorf("%s: after the way back %+v", m, c)
			}
			if o, _ := readOlder(r.t, db, m, "t"); hidden == 0 && uint64(o.count) != s.n {
				r.t.Errorf("%s: the older program reads %d, the new one showed %d", m, o.count, s.n)
			}
		}
	})
	r.open()
	for m, s := range before {
		row, err := r.row(m, "t")
		if (err == nil) != s.shown || s.shown && row.Values.Unread != s.n {
			r.t.Errorf("%s: forth again %d %v, was %d", m, row.Values.Unread, err, s.n)
		}
	}
}
