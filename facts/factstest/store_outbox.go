package factstest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// OutboxStore is a store of facts that keeps an outbox, too.
type OutboxStore interface {
	facts.Store
	facts.OutboxStore
}

// TestOutbox is what every facts.OutboxStore has to pass: leases, order, terms, queues, letters.
// open returns a new empty store; the suite closes it.
func TestOutbox(t *testing.T, open func(t *testing.T) OutboxStore) {
	for _, p := range []struct {
		name string
		run  func(t *testing.T, open openOutbox)
	}{
		{"ClaimBounds", testOutboxClaimBounds},
		{"Order", testOutboxOrder},
		{"LostLease", testOutboxLostLease},
		{"LettersAndPurge", testOutboxLettersAndPurge},
		{"Queues", testOutboxQueues},
		{"Webhooks", testOutboxWebhooks},
		{"LeasesAndClose", testOutboxLeasesAndClose},
	} {
		t.Run(p.name, func(t *testing.T) { p.run(t, open) })
	}
}

type openOutbox func(t *testing.T) OutboxStore

const (
	outboxSpace facts.WorkspaceKey = 3
	outboxTerm  uint64             = 5
)

// outboxTerms owns the workspace of these tests.
func outboxTerms(w facts.WorkspaceKey) (uint64, bool) { return outboxTerm, w == outboxSpace }

func agentKey(n uint32) readstate.MemberKey { return facts.MemberKeyOf(outboxSpace, n) }

// fill has one workspace, a human (1) and agents (2 to 5), and rows for the given agents.
func (open openOutbox) fill(t *testing.T, rows ...[]readstate.MemberKey) OutboxStore {
	t.Helper()
	st := open(t)
	t.Cleanup(func() { _ = st.Close() }) // a test may have closed it
	c := &facts.Changes{NewWorkspaces: []facts.WorkspaceRow{
		{Key: outboxSpace, ID: "w", Term: outboxTerm, LSN: 10},
		{Key: outboxSpace + 1, ID: "next", Term: outboxTerm, LSN: 10},
	}}
	for n := uint32(1); n <= 5; n++ {
		c.Members = append(c.Members, facts.MemberChange{MemberInfo: readstate.MemberInfo{
			Key: agentKey(n), ID: readstate.MemberID("é\x7f\"" + string('0'+rune(n))),
			Agent: n > 1,
		}})
	}
	scope := facts.ScopeKeyOf(outboxSpace, 1)
	c.Scopes = []facts.ScopeRow{{Info: readstate.ScopeInfo{Key: scope, ID: "t'", Type: readstate.Task}}}
	for i, agents := range rows {
		c.Outbox = append(c.Outbox, facts.OutboxRow{
			Workspace: outboxSpace, Key: facts.EventKeyOf(10, i), Version: facts.PayloadVersion,
			Kind: facts.TaskMessage, Scope: scope, Seq: readstate.Seq(i + 1), ID: string('a' + rune(i)),
			Actor: agentKey(1), Humans: []readstate.MemberKey{agentKey(1)}, Agents: agents, CreatedAt: 7,
		})
	}
	tx, err := st.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if err := tx.Write(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return st
}

func claimRows(t *testing.T, st OutboxStore, token uint64, now int64, change func(c *facts.EffectClaim)) facts.EffectBatch {
	t.Helper()
	fresh, err := st.FreshEffects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := facts.EffectClaim{
		Terms: outboxTerms, Lease: facts.Lease{Owner: "o", Token: token, Until: now + 100}, Now: now,
		Fresh: fresh, FreshRows: 100, Rows: 100, Recipients: 10_000, BehindFor: 50,
	}
	if change != nil {
		change(&c)
	}
	batch, err := st.ClaimEffects(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

func settleRows(
	t *testing.T, st OutboxStore, token uint64, now int64, effects []facts.Effect, state facts.EffectState,
) facts.EffectsSettled {
	t.Helper()
	s := facts.EffectSettlement{
		Terms: outboxTerms, Lease: facts.Lease{Token: token}, Now: now, QueueLimit: 100,
		Held: map[readstate.MemberKey]struct{}{}, BehindFor: 50,
	}
	for i := range effects {
		s.Outcomes = append(s.Outcomes, facts.EffectOutcome{Effect: &effects[i], State: state, DueAt: now + 10})
	}
	settled, err := st.SettleEffects(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return settled
}

func eventsOf(b facts.EffectBatch) string {
	var out strings.Builder
	for i := range b.Effects {
		out.WriteString(b.Effects[i].ID)
	}
	return out.String()
}

// A claim takes no more than it was asked for, and says where there is more.
func testOutboxClaimBounds(t *testing.T, open openOutbox) {
	one := []readstate.MemberKey{agentKey(2)}
	two := []readstate.MemberKey{agentKey(2), agentKey(3)}
	for _, c := range []struct {
		name   string
		change func(c *facts.EffectClaim)
		want   string
		left   int
	}{
		{"rows", func(c *facts.EffectClaim) { c.Rows = 2 }, "ab", 1},
		{"rows of a workspace", func(c *facts.EffectClaim) { c.FreshRows = 1 }, "a", 1},
		{"recipients", func(c *facts.EffectClaim) { c.Recipients = 5 }, "ab", 1},
		{"the first comes in any case", func(c *facts.EffectClaim) { c.Recipients = 1 }, "a", 1},
		{"all", nil, "abcde", 0},
		{"no term", func(c *facts.EffectClaim) {
			c.Terms = func(facts.WorkspaceKey) (uint64, bool) { return outboxTerm - 1, true }
		}, "", 0},
		{"not ours", func(c *facts.EffectClaim) {
			c.Terms = func(facts.WorkspaceKey) (uint64, bool) { return 0, false }
		}, "", 0},
	} {
		batch := claimRows(t, open.fill(t, one, two, one, one, two), 1, 1000, c.change)
		if got := eventsOf(batch); got != c.want || len(batch.Left) != c.left {
			t.Errorf("%s: %q, left %v, want %q", c.name, got, batch.Left, c.want)
		}
	}
}

// Rows wait for earlier ones of their agents, whoever holds those, and nobody else does.
func testOutboxOrder(t *testing.T, open openOutbox) {
	st := open.fill(t,
		[]readstate.MemberKey{agentKey(2)},              // a
		[]readstate.MemberKey{agentKey(3)},              // b
		[]readstate.MemberKey{agentKey(2), agentKey(3)}, // c
		[]readstate.MemberKey{agentKey(3), agentKey(4)}, // d: behind c
		[]readstate.MemberKey{agentKey(5)},              // e
		nil,                                             // f: nobody to wait for
	)
	one := func(c *facts.EffectClaim) { c.Rows = 1 }
	first := claimRows(t, st, 1, 1000, one)
	// Somebody else is at work on a for the first time.
	rest := claimRows(t, st, 2, 1000, nil)
	if got := eventsOf(rest); got != "bef" {
		t.Fatalf("claimed %q", got)
	}
	settleRows(t, st, 2, 1000, rest.Effects, facts.EffectDelivered)
	if got := eventsOf(claimRows(t, st, 3, 1001, nil)); got != "" {
		t.Errorf("claimed %q although a is not finished", got)
	}
	// It is put off, then delivered: those behind are due at once, in one claim.
	settleRows(t, st, 1, 1001, first.Effects, facts.EffectDeferred)
	if got := eventsOf(claimRows(t, st, 4, 1010, nil)); got != "" {
		t.Errorf("claimed %q before its time", got)
	}
	again := claimRows(t, st, 5, 1011, nil)
	if got := eventsOf(again); got != "a" || !again.Effects[0].Waited || again.Effects[0].Deferrals != 1 {
		t.Fatalf("claimed %q: %+v", got, again)
	}
	if settled := settleRows(t, st, 5, 1011, again.Effects, facts.EffectDelivered); !settled.Freed {
		t.Error("nothing was freed")
	}
	next := claimRows(t, st, 7, 1011, nil)
	if got := eventsOf(next); got != "c" {
		t.Fatalf("claimed %q", got)
	}
	settleRows(t, st, 7, 1011, next.Effects, facts.EffectFailed)
	last := claimRows(t, st, 6, 1070, nil) // d is looked at because its time is over
	if got := eventsOf(last); got != "cd" {
		t.Fatalf("claimed %q", got)
	}
	// Of one claim only the beginning is delivered: what is behind it stays behind.
	s := facts.EffectSettlement{
		Terms: outboxTerms, Lease: facts.Lease{Token: 6}, Now: 1071, QueueLimit: 100, BehindFor: 50,
		Held: map[readstate.MemberKey]struct{}{},
		Outcomes: []facts.EffectOutcome{
			{Effect: &last.Effects[0], State: facts.EffectFailed, DueAt: 1080},
			{Effect: &last.Effects[1], State: facts.EffectDelivered},
		},
	}
	settled, err := st.SettleEffects(t.Context(), s)
	if err != nil || !slices.Equal(settled.States, []facts.EffectState{facts.EffectFailed, facts.EffectBehind}) {
		t.Fatalf("%+v %v", settled, err)
	}
	if settled.Wakes != 0 {
		t.Errorf("%d wakes", settled.Wakes)
	}
}

// A letter belongs to its workspace; what is old goes in steps, with what belongs to it.
func testOutboxLettersAndPurge(t *testing.T, open openOutbox) {
	var rows [][]readstate.MemberKey
	for range 5 {
		rows = append(rows, []readstate.MemberKey{agentKey(2)})
	}
	st := open.fill(t, rows...)
	batch := claimRows(t, st, 1, 1000, nil)
	settleRows(t, st, 1, 1000, batch.Effects[:3], facts.EffectDead)
	settleRows(t, st, 1, 1000, batch.Effects[3:], facts.EffectDelivered)
	letters, err := st.DeadLetters(t.Context(), outboxSpace, 0, 10)
	if err != nil || len(letters) != 3 || letters[0].ID != "a" || !letters[0].Row ||
		letters[0].ActorID == "" || letters[0].ScopeID != "t'" {
		t.Fatalf("%+v %v", letters, err)
	}
	if other, err := st.DeadLetters(t.Context(), outboxSpace+1, 0, 10); err != nil || len(other) != 0 {
		t.Errorf("%+v %v", other, err)
	}
	if page, err := st.DeadLetters(t.Context(), outboxSpace, letters[0].Letter, 1); err != nil ||
		len(page) != 1 || page[0].ID != "b" {
		t.Errorf("%+v %v", page, err)
	}
	requeue := facts.Requeue{Term: outboxTerm, Workspace: outboxSpace + 1, Letter: letters[0].Letter, Now: 1000}
	if err := st.Requeue(t.Context(), requeue); !errors.Is(err, facts.ErrNotFound) {
		t.Errorf("a letter of another workspace: %v", err)
	}
	requeue.Workspace, requeue.Term = outboxSpace, outboxTerm+1
	if err := st.Requeue(t.Context(), requeue); !errors.Is(err, facts.ErrNotOwner) {
		t.Errorf("with another term: %v", err)
	}
	requeue.Term = outboxTerm
	if err := st.Requeue(t.Context(), requeue); err != nil {
		t.Fatal(err)
	}
	if got := eventsOf(claimRows(t, st, 2, 1000, nil)); got != "a" {
		t.Errorf("claimed %q", got)
	}
	purge := facts.OutboxPurge{Terms: outboxTerms, Delivered: 1001, Dead: 1001, Limit: 1}
	for _, want := range []int{3, 3, 0} { // a row delivered, a letter, and the row of the letter
		if n, err := st.Purge(t.Context(), purge); err != nil || n != want {
			t.Errorf("purged %d %v, want %d", n, err, want)
		}
	}
	g, err := st.OutboxGauges(t.Context(), 1000)
	want := facts.OutboxGauges{Leased: 1, OldestAt: 7, Waiting: 2, Queues: 1}
	if err != nil || g != want {
		t.Errorf("%+v %v", g, err)
	}
}

// Whoever is not asked for is not released, and nothing is done on a store that is closed.
func testOutboxLeasesAndClose(t *testing.T, open openOutbox) {
	st := open.fill(t, []readstate.MemberKey{agentKey(2)}, []readstate.MemberKey{agentKey(3)})
	batch := claimRows(t, st, 1, 1000, nil)
	settleRows(t, st, 1, 1000, batch.Effects[:1], facts.EffectDelivered)
	err := st.PutEndpoint(t.Context(), facts.EndpointChange{
		Term: outboxTerm, Recipient: facts.AgentRecipient(agentKey(2)), URL: "u", Now: 1000,
	})
	if err != nil {
		t.Fatal(err)
	}
	wakes, err := st.ClaimWakes(t.Context(), facts.WakeClaim{
		Terms: outboxTerms, Lease: facts.Lease{Owner: "o", Token: 9, Until: 2000}, Now: 1000,
		Quick: 10, Slow: 10, Burst: 10,
	})
	if err != nil || len(wakes.Queues) != 1 || len(wakes.Queues[0].Wakes) != 1 {
		t.Fatalf("%+v %v", wakes, err)
	}
	if n, err := st.ReleaseLeases(t.Context(), outboxTerms, 1000); err != nil || n != 0 {
		t.Errorf("released %d %v of the present term", n, err)
	}
	if _, err := st.TakeOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := st.ReleaseLeases(t.Context(), outboxTerms, 1000); err != nil || n != 0 {
		t.Errorf("released %d %v with a term that is over", n, err)
	}
	next := func(facts.WorkspaceKey) (uint64, bool) { return outboxTerm + 1, true }
	if n, err := st.ReleaseLeases(t.Context(), next, 1000); err != nil || n != 2 {
		t.Errorf("released %d %v", n, err)
	}
	lost, err := st.SettleWakes(t.Context(), facts.WakeSettlement{
		Terms: next, Now: 1000, Outcomes: []facts.WakeOutcome{{
			Recipient: wakes.Queues[0].Recipient, Lease: facts.Lease{Token: 9}, Disable: true,
		}},
	})
	if err != nil || lost.Lost != 1 {
		t.Errorf("%+v %v", lost, err)
	}
	if row, _, err := st.Endpoint(t.Context(), wakes.Queues[0].Recipient); err != nil || row.Disabled {
		t.Errorf("%+v %v", row, err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func(ctx context.Context) error{
		"claim":  func(ctx context.Context) error { _, err := st.ClaimEffects(ctx, facts.EffectClaim{}); return err },
		"settle": func(ctx context.Context) error { _, err := st.SettleWakes(ctx, facts.WakeSettlement{}); return err },
		"gauges": func(ctx context.Context) error { _, err := st.OutboxGauges(ctx, 0); return err },
		"fresh":  func(ctx context.Context) error { _, err := st.FreshEffects(ctx); return err },
	} {
		if err := do(t.Context()); !errors.Is(err, facts.ErrUnavailable) {
			t.Errorf("%s on a closed store: %v", name, err)
		}
	}
}

// Of a claim whose lease ran out, what nobody has taken is settled, but not before what somebody
// has. A settlement that happened and is repeated finds its rows done and holds nobody back.
func testOutboxLostLease(t *testing.T, open openOutbox) {
	same := []readstate.MemberKey{agentKey(2)}
	st := open.fill(t, same, same)
	late := claimRows(t, st, 1, 1000, nil)
	taken := claimRows(t, st, 2, 1100, func(c *facts.EffectClaim) { c.Rows = 1 })
	if got := eventsOf(taken); got != "a" {
		t.Fatalf("claimed %q", got)
	}
	settled := settleRows(t, st, 1, 1100, late.Effects, facts.EffectDelivered)
	if want := []facts.EffectState{0, facts.EffectBehind}; !slices.Equal(settled.States, want) {
		t.Errorf("%v, want %v", settled.States, want)
	}
	st = open.fill(t, same, same)
	all := claimRows(t, st, 1, 1000, nil)
	settleRows(t, st, 1, 1000, all.Effects[:1], facts.EffectDelivered)
	settled = settleRows(t, st, 1, 1000, all.Effects, facts.EffectDelivered)
	if want := []facts.EffectState{0, facts.EffectDelivered}; !slices.Equal(settled.States, want) {
		t.Errorf("%v, want %v", settled.States, want)
	}
	if settled.Wakes != 1 {
		t.Errorf("%d wakes", settled.Wakes)
	}
}
