package redisset

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/inbox"
	"github.com/tidemark-im/tidemark/readstate"
)

// The server's own commands behave as the hazards say, and as what is used here needs.
//
// covers: IN-128 IN-130 IN-131 IN-132 IN-133 IN-134 IN-135 IN-137 IN-138 IN-145
func TestHazards(t *testing.T) {
	s := newServer(t)
	if port, err := s.do("CONFIG", "GET", "port").AsStrMap(); err != nil || port["port"] != "0" {
		t.Fatalf("it listens on a port: %v, %v", port, err)
	}
	const ada = "newly_unread:Ada"
	want := func(n int64, args ...string) {
		t.Helper()
		if got := s.number(args...); got != n {
			t.Errorf("%s is %d, want %d", strings.Join(args, " "), got, n)
		}
	}
	s.number("ZADD", ada, "GT", "1", "Bo")
	s.number("ZADD", ada, "GT", "2", "Bo")
	want(1, "ZCARD", ada)
	s.number("ZADD", ada, "GT", "3", "Cy")
	want(2, "ZCOUNT", ada, "(0", "+inf")
	s.number("ZADD", ada, "GT", "4", "Dee")
	want(1, "ZCOUNT", ada, "(3", "+inf")
	s.number("ZADD", ada, "GT", "2", "Dee")
	if score, err := s.do("ZSCORE", ada, "Dee").ToString(); err != nil || score != "4" {
		t.Errorf("an older position made it %s, %v", score, err)
	}
	// Removing what was shown, and then an update that is late: the number of members is wrong.
	s.number("ZREMRANGEBYSCORE", ada, "-inf", "3")
	s.number("ZADD", ada, "GT", "2", "Bo")
	want(2, "ZCARD", ada)
	want(1, "ZCOUNT", ada, "(3", "+inf")
	// Clearing loses who arrived.
	s.number("DEL", ada)
	want(0, "ZCOUNT", ada, "(3", "+inf")
	// Times decide nothing: with one time for two both go.
	s.number("ZADD", ada, "100", "Bo", "100", "Cy")
	want(2, "ZREMRANGEBYSCORE", ada, "-inf", "100")
	// A score is exact through 2^53.
	s.number("ZADD", ada, strconv.Itoa(MaxPosition), "Bo", strconv.Itoa(MaxPosition+1), "Cy")
	a, _ := s.do("ZSCORE", ada, "Bo").ToString()
	b, _ := s.do("ZSCORE", ada, "Cy").ToString()
	if a != b {
		t.Errorf("2^53 and 2^53+1 are %s and %s", a, b)
	}
}

// Positions that a score cannot hold are refused; those at the bound are told apart from the next.
//
// covers: IN-138 IN-139
func TestRange(t *testing.T) {
	s := newServer(t)
	set := New(s.client)
	const m = readstate.MemberKey(1<<32 + 7)
	sum := inbox.Summarized{
		Through: MaxPosition, Whole: true,
		Senders: []facts.SenderPosition{{Sender: 9, Position: MaxPosition}},
	}
	if ok, err := set.Put(t.Context(), m, sum); err != nil || !ok {
		t.Fatal(ok, err)
	}
	got, ok, err := set.Above(t.Context(), m, MaxPosition-1)
	if err != nil || !ok || len(got.Senders) != 1 || got.Senders[0].Position != MaxPosition {
		t.Errorf("%+v, %t, %v", got, ok, err)
	}
	if got, ok, err := set.Above(t.Context(), m, MaxPosition); err != nil || !ok || len(got.Senders) != 0 {
		t.Errorf("%+v, %t, %v", got, ok, err)
	}
	if _, ok, err := set.Above(t.Context(), m, MaxPosition+1); err != nil || ok {
		t.Errorf("above 2^53: %t, %v", ok, err)
	}
	sum.Through++
	if ok, err := set.Put(t.Context(), m, sum); !errors.Is(err, ErrRange) || ok {
		t.Errorf("above 2^53: %t, %v", ok, err)
	}
}

// world is a store with Ada's inbox, read beside the summary and without it.
type world struct {
	t     *testing.T
	lane  *facts.Lane
	store *sqlstore.Store
	with  *inbox.Inbox
	plain *inbox.Inbox
	ops   int
	later time.Duration // by how much the inbox with the summary is ahead of the clock
}

func newWorld(t *testing.T, summary inbox.Summary) *world {
	t.Helper()
	ctx := t.Context()
	w := &world{t: t}
	var err error
	w.store, err = sqlstore.OpenSQLite(ctx, filepath.Join(t.TempDir(), "facts.db"), sqlstore.Options{Unsafe: true})
	w.ok(err)
	told := func(c facts.Commit) {
		for _, i := range c.Inboxes {
			w.with.Poke(i.Member)
		}
	}
	w.lane, err = facts.NewLane(ctx, facts.LaneConfig{Store: w.store, Apply: told, NewID: w.id})
	w.ok(err)
	t.Cleanup(func() {
		w.lane.Close()
		w.ok(w.store.Close())
	})
	_, err = w.lane.PutWorkspace(ctx, facts.PutWorkspace{ID: "w"})
	w.ok(err)
	one := func(facts.WorkspaceKey) (uint64, bool) { return 1, true }
	w.with, err = inbox.New(inbox.Options{
		Store: w.store, Terms: one, Summary: summary,
		Now: func() time.Time { return time.Now().Add(w.later) },
	})
	w.ok(err)
	w.plain, err = inbox.New(inbox.Options{Store: w.store, Terms: one})
	w.ok(err)
	for _, m := range []readstate.MemberID{"Ada", "Bo", "Cy", "Dee"} {
		w.member(m, true)
	}
	_, err = w.lane.PutScope(ctx, "w", facts.PutScope{ID: "d", Type: readstate.DM})
	w.ok(err)
	for _, m := range []readstate.MemberID{"Ada", "Bo", "Cy", "Dee"} {
		_, err = w.lane.PutMembership(ctx, "w", facts.PutMembership{Scope: "d", Member: m, Trusted: true})
		w.ok(err)
	}
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) id() string { w.ops++; return fmt.Sprint("id", w.ops) }

func (w *world) member(m readstate.MemberID, active bool) {
	w.t.Helper()
	_, err := w.lane.PutMember(w.t.Context(), "w", facts.PutMember{ID: m, Active: &active})
	w.ok(err)
}

func (w *world) send(sender readstate.MemberID) {
	w.t.Helper()
	_, err := w.lane.SendInbox(w.t.Context(), "w", facts.SendInbox{
		To: "Ada", Sender: sender, OpID: w.id(), Text: "x", By: facts.Actor{Trusted: true},
	})
	w.ok(err)
}

func (w *world) post(sender readstate.MemberID) string {
	w.t.Helper()
	r, err := w.lane.Post(w.t.Context(), "w", facts.Post{
		Scope: "d", OpID: w.id(), Author: sender, By: facts.Actor{Trusted: true},
	})
	w.ok(err)
	return r.MessageID
}

func (w *world) remove(id string) {
	w.t.Helper()
	_, err := w.lane.Remove(w.t.Context(), "w", facts.Remove{Scope: "d", Message: id, OpID: w.id()})
	w.ok(err)
}

func (w *world) work() {
	w.t.Helper()
	_, err := w.with.Work(w.t.Context())
	w.ok(err)
}

var ada = inbox.Access{Workspace: "w", Member: "Ada", By: "Ada"}

func (w *world) ack() {
	w.t.Helper()
	o, err := w.with.Open(w.t.Context(), ada)
	w.ok(err)
	_, err = w.with.Acknowledge(w.t.Context(), ada, inbox.Ack{OpID: w.id(), Snapshot: o.Snapshot})
	w.ok(err)
}

// badge reads both ways, which have to agree, and returns who counts.
func (w *world) badge() string {
	w.t.Helper()
	got, err := w.with.Badge(w.t.Context(), ada)
	w.ok(err)
	want, err := w.plain.Badge(w.t.Context(), ada)
	w.ok(err)
	if got.Accepted != want.Accepted || got.Acknowledged != want.Acknowledged ||
		!slices.Equal(got.Senders, want.Senders) {
		w.t.Errorf("with a summary %+v, without %+v", got, want)
	}
	return fmt.Sprint(got.Senders)
}

func (w *world) want(who string) {
	w.t.Helper()
	if got := w.badge(); got != who {
		w.t.Errorf("badge %s, want %s", got, who)
	}
}

func (w *world) key(m readstate.MemberID) readstate.MemberKey {
	w.t.Helper()
	v, err := w.store.View(w.t.Context())
	w.ok(err)
	defer v.Close()
	row, _, err := v.Workspace(w.t.Context(), "w")
	w.ok(err)
	info, _, err := v.Member(w.t.Context(), row.Key, m)
	w.ok(err)
	return info.Key
}

// A summary has each sender's greatest position and answers as the store does; what it has lost, or
// what it cannot know, the store answers.
//
// covers: IN-127 IN-129 IN-136 IN-140 IN-141 IN-142 IN-143 IN-144
func TestSummary(t *testing.T) {
	s := newServer(t)
	w := newWorld(t, New(s.client))
	w.send("Bo")
	w.send("Bo")
	w.send("Cy")
	w.want("[Bo Cy]") // nothing is known: the store
	if st := w.with.Stats(); st.SummaryHits != 0 || st.SummaryMisses != 1 {
		t.Errorf("%+v", st)
	}
	w.work()
	w.want("[Bo Cy]")
	if st := w.with.Stats(); st.SummaryHits != 1 {
		t.Errorf("%+v", st)
	}
	set := keysOf(w.key("Ada"))[0]
	scores := func() string {
		t.Helper()
		all, err := s.do("ZRANGE", set, "0", "-1", "WITHSCORES").AsZScores()
		w.ok(err)
		var out []string
		for _, z := range all {
			out = append(out, fmt.Sprintf("%s %v", z.Member, z.Score))
		}
		return strings.Join(out, " ")
	}
	both := fmt.Sprintf("%d 2 %d 3", w.key("Bo"), w.key("Cy"))
	if got := scores(); got != both {
		t.Errorf("the set is %s, want %s", got, both)
	}
	name := "Bo of old"
	_, err := w.lane.PutMember(t.Context(), "w", facts.PutMember{ID: "Bo", DisplayName: &name})
	w.ok(err)
	w.ack()
	w.want("[]")
	if got := scores(); got != both {
		t.Errorf("an acknowledgement made it %s", got)
	}
	w.send("Dee")
	w.work()
	w.want("[Dee]")
	w.member("Dee", false)
	w.want("[]")
	w.member("Dee", true)

	lose := map[string]func(){
		"the set":     func() { s.number("DEL", set) },
		"the state":   func() { s.number("DEL", set+":state") },
		"a sender":    func() { s.number("ZREM", set, strconv.FormatUint(uint64(w.key("Dee")), 10)) },
		"everything":  func() { s.do("FLUSHALL") },
		"their order": func() { s.number("HSET", set+":state", "epoch", "another") },
	}
	for what, f := range lose {
		f()
		before := w.with.Stats()
		w.want("[Dee]")
		if st := w.with.Stats(); st.SummaryMisses != before.SummaryMisses+1 {
			t.Errorf("without %s: %+v", what, st)
		}
		w.work()
		hits := w.with.Stats().SummaryHits
		w.want("[Dee]")
		if w.with.Stats().SummaryHits != hits+1 {
			t.Errorf("without %s it is not written anew", what)
		}
	}
	s.Kill()
	w.send("Bo")
	w.want("[Bo Dee]")
	w.ack()
	w.work()
	w.want("[]")
	if st := w.with.Stats(); st.SummaryErrors == 0 {
		t.Errorf("%+v", st)
	}
	w.send("Cy")
	w.want("[Cy]")
	s.Start() // a new one with nothing in it, under the same address
	again := s.connect()
	again.Close()
}

// A retraction makes a summary worthless at once; so does another process.
func TestSummaryIsOfItsMoment(t *testing.T) {
	s := newServer(t)
	w := newWorld(t, New(s.client))
	only := w.post("Bo")
	w.send("Cy")
	w.work()
	w.want("[Bo Cy]")
	w.remove(only)
	hits := w.with.Stats().SummaryHits
	w.want("[Cy]")
	if w.with.Stats().SummaryHits != hits {
		t.Error("a summary from before the retraction was used")
	}
	w.work()
	w.want("[Cy]")
	if w.with.Stats().SummaryHits != hits+1 {
		t.Error("it was not written anew")
	}
	other := New(s.client)
	if _, ok, err := other.Above(t.Context(), w.key("Ada"), 0); err != nil || ok {
		t.Errorf("another process uses it: %t, %v", ok, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	taken, err := other.Put(ctx, w.key("Ada"), inbox.Summarized{From: 2, Through: 3, Retractions: 1})
	if err != nil || taken {
		t.Errorf("another process goes on from it: %t, %v", taken, err)
	}
}

// item is what a recount knows of something that arrived.
type item struct {
	sender readstate.MemberID
	id     string
	live   bool
}

// recount is who counts by looking at everything above the boundary.
func recount(items []item, acknowledged int) string {
	var senders []readstate.MemberID
	for _, i := range items[acknowledged:] {
		if i.live && !slices.Contains(senders, i.sender) {
			senders = append(senders, i.sender)
		}
	}
	slices.Sort(senders)
	return fmt.Sprint(senders)
}

// The badge with a summary, the one without and a recount are equal after each of many random
// operations, whether the worker runs, lags or was interrupted, and whatever the server has lost.
//
// covers: IN-168
func TestSummaryHistories(t *testing.T) {
	histories, steps := 2, 150
	if os.Getenv("TIDEMARK_SOAK") != "" {
		histories, steps = 100, 1000
	}
	s := newServer(t)
	for seed := range uint64(histories) {
		w := newWorld(t, New(s.client))
		rng := rand.New(rand.NewPCG(seed, 3))
		var items []item
		acknowledged := 0
		senders := []readstate.MemberID{"Bo", "Cy", "Dee"}
		interrupted, cancel := context.WithCancel(t.Context())
		cancel()
		for step := range steps {
			sender := senders[rng.IntN(3)]
			switch n := rng.IntN(20); {
			case n < 6:
				items = append(items, item{sender, w.post(sender), true})
			case n < 8 && len(items) > 0:
				i := &items[rng.IntN(len(items))]
				w.remove(i.id)
				i.live = false
			case n < 10:
				w.ack()
				acknowledged = len(items)
			case n < 17:
				w.work()
			case n < 18:
				_, _ = w.with.Work(interrupted) // somewhere, or not at all
			default:
				s.do("DEL", keysOf(w.key("Ada"))[rng.IntN(2)])
			}
			w.want(recount(items, acknowledged))
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
		if st := w.with.Stats(); st.SummaryHits < 20 || st.SummaryMisses < 5 {
			t.Errorf("%d answered by the summary, %d not", st.SummaryHits, st.SummaryMisses)
		}
	}
}
