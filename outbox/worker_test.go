package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/readstate"
)

const (
	workerTasks  = 3
	workerAgents = 4
	workerPosts  = 30 // of a life
)

// blow says where a worker kills itself: at a step of a row, or before a statement, when it is
// reached for the given time. An empty place kills nobody.
type blow struct {
	Step string // stage and whether before or after it
	SQL  string // the beginning of a statement
	// HTTP kills when a wake was accepted, before anybody knows.
	HTTP bool
	Nth  int
}

func (b blow) String() string {
	return fmt.Sprintf("%s%s time %d (answer %v)", b.Step, b.SQL, b.Nth, b.HTTP)
}

// workerSettings are what a worker process is started with.
type workerSettings struct {
	Facts  string
	Base   string // the receiver's
	Passed string // where the barrier writes down which events have passed it
	First  int    // of the posts of this life
	Blow   blow
}

// worker is a lane, an outbox and a writer in one process, with a trap between them.
type worker struct {
	set    workerSettings
	armed  atomic.Bool
	left   atomic.Int64
	passed *os.File
}

func (k *worker) reach(hit bool) {
	if hit && k.armed.Load() && k.left.Add(-1) == 0 {
		die()
	}
}

func (k *worker) statement(_ context.Context, query string) {
	k.reach(k.set.Blow.SQL != "" && strings.HasPrefix(query, k.set.Blow.SQL))
}

func (k *worker) step(_ context.Context, s Step) error {
	if s.Stage == StageUpsert && s.Done {
		fmt.Fprintln(k.passed, uint64(s.Row.Key))
	}
	when := "before"
	if s.Done {
		when = "after"
	}
	k.reach(k.set.Blow.Step == when+" "+s.Stage.String())
	return nil
}

// Upsert implements Barrier: a row has passed it when the stage is done, see step.
func (k *worker) Upsert(context.Context, readstate.WorkspaceID, *facts.OutboxRow) error {
	return nil
}

func playWorker(text string) error {
	k := &worker{}
	if err := json.Unmarshal([]byte(text), &k.set); err != nil {
		return err
	}
	k.left.Store(int64(k.set.Blow.Nth))
	var err error
	k.passed, err = os.OpenFile(k.set.Passed, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	ctx := context.Background()
	store, err := sqlstore.OpenSQLite(ctx, k.set.Facts, sqlstore.Options{OnStatement: k.statement})
	if err != nil {
		return err
	}
	lane, err := facts.NewLane(ctx, facts.LaneConfig{
		Store: store, Apply: func(facts.Commit) {},
		NewID: func() string { return fmt.Sprintf("m%d", rand.Uint64()) },
	})
	if err != nil {
		return err
	}
	if _, err := lane.PutWorkspace(ctx, facts.PutWorkspace{ID: space}); err != nil {
		return err
	}
	b, err := k.outbox(ctx, store)
	if err != nil {
		return err
	}
	if err := k.found(ctx, lane, b); err != nil {
		return err
	}
	fmt.Println("founded")
	k.armed.Store(true)
	go func() {
		fmt.Fprintln(os.Stderr, "run:", b.Run(ctx))
	}()
	for i := range workerPosts {
		n := k.set.First + i
		_, err := lane.Post(ctx, space, facts.Post{
			Scope: taskName(n % workerTasks), OpID: fmt.Sprint("op", n), Author: "author",
			By: facts.Actor{Trusted: true},
		})
		if err != nil {
			return err
		}
		b.Poke(1)
	}
	return k.idle(ctx, b)
}

// idle waits until nothing is left to do and says so.
func (k *worker) idle(ctx context.Context, b *Outbox) error {
	for range time.Tick(20 * time.Millisecond) {
		s, err := b.Stats(ctx)
		if err != nil {
			return err
		}
		g := s.Gauges
		if g.Fresh+g.Leased+g.Deferred+g.Failed+g.Behind+g.Waiting == 0 {
			break
		}
	}
	fmt.Println("idle")
	return nil
}

func (k *worker) outbox(ctx context.Context, store *sqlstore.Store) (*Outbox, error) {
	view, err := store.View(ctx)
	if err != nil {
		return nil, err
	}
	defer view.Close()
	row, _, err := view.Workspace(ctx, space)
	if err != nil {
		return nil, err
	}
	limits := Limits{BatchRows: 8, FreshRows: 8, CommitWakes: 8, Burst: 4}
	limits.RetryFirst, limits.RetryMost = 10*time.Millisecond, 50*time.Millisecond
	b, err := New(Options{
		Store: store, Accounting: Applied(counted), RequireBarrier: true, Barrier: k,
		Terms:   func(w facts.WorkspaceKey) (uint64, bool) { return row.Term, w == row.Key },
		Network: Network{AllowHTTP: true, Allow: AllowPrivate()},
		Limits:  limits, OnStep: k.step,
	})
	if err == nil {
		b.client.Transport = &answerTrap{k, b.client.Transport}
	}
	return b, err
}

// answerTrap kills when a wake was accepted.
type answerTrap struct {
	k    *worker
	next http.RoundTripper
}

func (a *answerTrap) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := a.next.RoundTrip(r)
	a.k.reach(a.k.set.Blow.HTTP && err == nil)
	return resp, err
}

// found makes what is not there yet: tasks that share some of their agents.
func (k *worker) found(ctx context.Context, lane *facts.Lane, b *Outbox) error {
	batch := lane.NewBatch(space)
	yes := true
	batch.PutMember(facts.PutMember{ID: "author"})
	batch.PutMember(facts.PutMember{ID: "human"})
	for i := range workerAgents {
		batch.PutMember(facts.PutMember{ID: agentName(i), Agent: &yes})
	}
	for i := range workerTasks {
		batch.PutScope(facts.PutScope{ID: taskName(i), Type: readstate.Task})
		for _, m := range workerMembers(i) {
			batch.PutMembership(facts.PutMembership{Scope: taskName(i), Member: m, Trusted: true})
		}
	}
	if _, err := batch.Run(ctx); err != nil {
		return err
	}
	for i := range workerTasks {
		for _, m := range workerMembers(i)[1:] {
			_, err := lane.SetFollow(ctx, space, facts.SetFollow{
				Scope: taskName(i), Member: m, Following: true, Trusted: true,
			})
			if err != nil {
				return err
			}
		}
	}
	for i := range workerAgents {
		at, err := b.Endpoint(ctx, space, agentName(i))
		if err != nil {
			return err
		}
		mode := "well"
		if i == 0 {
			mode = "fails"
		}
		url := fmt.Sprintf("%s/%s/%s", k.set.Base, mode, agentName(i))
		if at.URL != "" {
			continue
		}
		if err := b.PutEndpoint(ctx, space, agentName(i), Endpoint{URL: url, Secret: secretText}); err != nil {
			return err
		}
	}
	return nil
}

func agentName(i int) readstate.MemberID { return readstate.MemberID(fmt.Sprint("a", i)) }

// workerMembers are the author, the human, and all agents but one.
func workerMembers(task int) []readstate.MemberID {
	out := []readstate.MemberID{"author", "human"}
	for i := range workerAgents {
		if i != task {
			out = append(out, agentName(i))
		}
	}
	return out
}

// siege is a file, the workers that have it one after the other, and the receiver's log.
type siege struct {
	*world
	dir      string
	receiver string
	lives    int
	missed   int // lives that ended before their blow
	last     blow
}

// Wherever a worker is killed, the next one goes on: no wake before its row's barrier, none lost,
// none counted twice, each agent's in order.
//
// covers: RT-211, RT-212, RT-214, RT-216, RT-218
func TestKilledWorkers(t *testing.T) {
	dir := t.TempDir()
	s := &siege{world: &world{t: t, path: filepath.Join(dir, "facts.db")}, dir: dir}
	r := launch(t, "receiver", receiverSettings{Log: filepath.Join(dir, "receiver.log")})
	line, ok := r.line(t)
	if !ok {
		t.Fatalf("the receiver did not start:\n%s", r.errors)
	}
	s.receiver = "http://" + strings.Fields(line)[0]
	var blows []blow
	for _, stage := range stageNames[1:] {
		blows = append(blows, blow{Step: "before " + stage}, blow{Step: "after " + stage})
	}
	for _, sql := range []string{
		"INSERT OR ROLLBACK INTO outbox_progress", // a claim
		"INSERT OR ROLLBACK INTO outbox_state",
		"INSERT OR ROLLBACK INTO wakes", // a settlement, between its statements
		"INSERT OR ROLLBACK INTO wake_endpoints",
		"UPDATE OR ROLLBACK wake_endpoints",
		"DELETE FROM wakes",
		"BEGIN IMMEDIATE", "COMMIT",
	} {
		blows = append(blows, blow{SQL: sql})
	}
	blows = append(blows, blow{HTTP: true})
	blows = slices.DeleteFunc(blows, func(b blow) bool { // both moments lie in one transaction
		return b.Step == "after wake" || b.Step == "before delivered"
	})
	rounds, seed := 1, uint64(1)
	if soaking() {
		rounds, seed = 15, uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range rounds {
		for _, b := range blows {
			b.Nth = 1 + rng.IntN(12)
			s.live(b)
		}
	}
	s.live(blow{})
	s.complete()
}

// live runs one worker until it is killed, or has done everything, and judges what it leaves.
func (s *siege) live(b blow) {
	s.t.Helper()
	s.last = b
	p := launch(s.t, "worker", workerSettings{
		Facts: s.path, Base: s.receiver, Passed: filepath.Join(s.dir, "passed"),
		First: s.lives * workerPosts, Blow: b,
	})
	s.lives++
	if line, _ := p.line(s.t); line != "founded" {
		p.kill()
		s.t.Fatalf("the worker says %q\n%s", line, p.errors)
	}
	switch _, alive := p.line(s.t); {
	case alive: // everything was done before the blow; how often it would come is chance
		p.kill()
		s.missed++
	case b == (blow{}):
		s.t.Fatalf("the worker died:\n%s", p.errors)
	default:
		p.killed(s.t)
	}
	s.judge()
}

// judge holds what is there now against what has passed the barrier.
func (s *siege) judge() {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "passed"))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	passed := map[int64]bool{}
	for line := range strings.Lines(string(text)) {
		event, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		s.ok(err)
		passed[event] = true
	}
	for _, query := range []string{
		`SELECT event FROM wakes`, `SELECT event FROM outbox_state WHERE state = 5`,
	} {
		for _, r := range s.query(query) {
			if !passed[r[0].(int64)] {
				s.t.Errorf("%v: %s: %d before its barrier", s.last, query, r[0])
			}
		}
	}
	for agent, events := range s.taken() {
		for i, event := range events {
			if !passed[event] {
				s.t.Errorf("%v: %s was woken for %d before its barrier", s.last, agent, event)
			}
			if i > 0 && event <= events[i-1] {
				s.t.Errorf("%v: %s was woken for %d after %d", s.last, agent, event, events[i-1])
			}
		}
	}
	if s.t.Failed() {
		s.t.FailNow()
	}
}

// taken are the events that each agent's receiver has taken, in the order of the first time.
func (s *siege) taken() map[string][]int64 {
	s.t.Helper()
	first, _ := logged(s.t, filepath.Join(s.dir, "receiver.log"))
	out := map[string][]int64{}
	for agent, ids := range first {
		for _, id := range ids {
			var w, member int
			var event int64
			_, err := fmt.Sscanf(id, "wake_%d_%d_%d", &w, &event, &member)
			s.ok(err)
			out[agent] = append(out[agent], event)
		}
	}
	return out
}

// complete checks that everything has happened, once.
func (s *siege) complete() {
	s.t.Helper()
	events := map[string][]int64{}
	messages := 0
	for _, r := range s.query(`SELECT o.event, s.id FROM outbox o JOIN scopes s ON s.scope = o.scope
  ORDER BY o.event`) {
		messages++
		for i := range workerTasks {
			if !bytes.Equal(r[1].([]byte), []byte(taskName(i))) {
				continue
			}
			for _, a := range workerMembers(i)[2:] {
				events[string(a)] = append(events[string(a)], r[0].(int64))
			}
		}
	}
	taken := s.taken()
	for i := range workerAgents {
		a := string(agentName(i))
		if !slices.Equal(taken[a], events[a]) {
			s.t.Errorf("%s: %d of %d events, or another order", a, len(taken[a]), len(events[a]))
		}
	}
	counted := s.query(`SELECT sum(c.targets_above_e) FROM conversation_member_states c
  JOIN members m ON m.member = c.member WHERE m.id = ?`, []byte("human"))[0][0]
	if counted != int64(messages) {
		s.t.Errorf("%v of %d messages are counted", counted, messages)
	}
	if sound := s.query(`PRAGMA integrity_check`)[0][0]; sound != "ok" {
		s.t.Error(sound)
	}
	_, repeats := logged(s.t, filepath.Join(s.dir, "receiver.log"))
	if s.missed > 1+s.lives/5 {
		s.t.Errorf("%d of %d lives were not ended by a kill", s.missed, s.lives)
	}
	s.t.Logf("%d lives, %d kills, %d messages, %d repeated deliveries", s.lives, s.lives-s.missed,
		messages, repeats)
}
