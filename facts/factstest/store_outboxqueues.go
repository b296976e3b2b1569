package factstest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// deliverRows delivers everything there is to the agents' queues.
func deliverRows(t *testing.T, st OutboxStore) {
	t.Helper()
	batch := claimRows(t, st, 1, 1000, nil)
	settleRows(t, st, 1, 1000, batch.Effects, facts.EffectDelivered)
}

func claimWakes(t *testing.T, st OutboxStore, token uint64, now int64) facts.WakeBatch {
	t.Helper()
	batch, err := st.ClaimWakes(t.Context(), facts.WakeClaim{
		Terms: outboxTerms, Lease: facts.Lease{Owner: "o", Token: token, Until: now + 100}, Now: now,
		Quick: 10, Slow: 10, Burst: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

func settleWakes(t *testing.T, st OutboxStore, now int64, outcomes ...facts.WakeOutcome) facts.WakesSettled {
	t.Helper()
	settled, err := st.SettleWakes(t.Context(), facts.WakeSettlement{
		Terms: outboxTerms, Now: now, Outcomes: outcomes,
	})
	if err != nil {
		t.Fatal(err)
	}
	return settled
}

func endpointOf(t *testing.T, st OutboxStore, r facts.Recipient) facts.EndpointRow {
	t.Helper()
	row, _, err := st.Endpoint(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// Wakes are numbered in their queue, claimed with it, and leave it when they are delivered, read
// or given up; positions are never used again.
func testOutboxQueues(t *testing.T, open openOutbox) {
	both := []readstate.MemberKey{agentKey(2), agentKey(3)}
	st := open.fill(t, both, both, both)
	deliverRows(t, st)
	sent, read := facts.AgentRecipient(agentKey(2)), facts.AgentRecipient(agentKey(3))
	if batch := claimWakes(t, st, 9, 1000); len(batch.Queues) != 0 || batch.NextDue != 0 {
		t.Fatalf("nothing has an address: %+v", batch)
	}
	err := st.PutEndpoint(t.Context(), facts.EndpointChange{
		Term: outboxTerm, Recipient: sent, URL: "u", Secret: []byte("s"), Now: 1000,
	})
	if err != nil {
		t.Fatal(err)
	}
	batch := claimWakes(t, st, 9, 1000)
	if len(batch.Queues) != 1 || batch.NextDue != 0 {
		t.Fatalf("%+v", batch)
	}
	q := batch.Queues[0]
	want := facts.Wake{
		WakeRow: facts.WakeRow{
			Recipient: sent, Key: 1, Kind: facts.WakeTaskMessage, Event: uint64(facts.EventKeyOf(10, 0)),
			Scope: facts.ScopeKeyOf(outboxSpace, 1), Seq: 1, ID: "a", Actor: agentKey(1), CreatedAt: 7,
		},
		WorkspaceID: "w", ScopeID: "t'", ScopeType: readstate.Task, ActorID: "é\x7f\"1",
	}
	if len(q.Wakes) != 2 || q.MemberID != "é\x7f\"2" || q.URL != "u" || string(q.Secret) != "s" {
		t.Fatalf("%+v", q)
	}
	if diff := cmp.Diff(want, q.Wakes[0]); diff != "" {
		t.Error(diff)
	}
	if again := claimWakes(t, st, 8, 1000); len(again.Queues) != 0 {
		t.Error("a leased queue was claimed")
	}
	lease := facts.Lease{Token: 9}
	settled := settleWakes(t, st, 1001,
		facts.WakeOutcome{Recipient: sent, Lease: lease, Through: 1, Attempts: 3, Streak: 3, Slow: true,
			DueAt: 1050, Error: "e"},
		facts.WakeOutcome{Recipient: read, Through: 2, Read: true},
		facts.WakeOutcome{Recipient: facts.AgentRecipient(agentKey(4)), Lease: lease},
	)
	if diff := cmp.Diff(facts.WakesSettled{Removed: 3, Lost: 1}, settled); diff != "" {
		t.Error(diff)
	}
	row := facts.EndpointRow{Recipient: sent, URL: "u", Secret: []byte("s"), Slow: true, Last: 3,
		Waiting: 2, Attempts: 3, Streak: 3, Error: "e"}
	if diff := cmp.Diff(row, endpointOf(t, st, sent)); diff != "" {
		t.Error(diff)
	}
	if batch := claimWakes(t, st, 7, 1049); len(batch.Queues) != 0 || batch.NextDue != 1050 {
		t.Errorf("before its time: %+v", batch)
	}
	if batch := claimWakes(t, st, 7, 1050); len(batch.Queues) != 1 || !batch.Queues[0].Slow {
		t.Errorf("at its time: %+v", batch)
	}
	testOutboxQueueEnds(t, st, sent, read)
}

// testOutboxQueueEnds goes on with a queue of two wakes, whose lease has the token 7, and one that
// its reader has read.
func testOutboxQueueEnds(t *testing.T, st OutboxStore, sent, read facts.Recipient) {
	t.Helper()
	// The dead goes to the letters, a new address voids the lease, and the queue goes on.
	settled := settleWakes(t, st, 1051, facts.WakeOutcome{
		Recipient: sent, Lease: facts.Lease{Token: 7}, Dead: 2, Attempts: 4, Error: "e",
	})
	if settled.Dead != 1 || settled.Removed != 1 || endpointOf(t, st, sent).Attempts != 0 {
		t.Errorf("%+v %+v", settled, endpointOf(t, st, sent))
	}
	claimWakes(t, st, 6, 1052)
	if err := st.PutEndpoint(t.Context(), facts.EndpointChange{
		Term: outboxTerm, Recipient: sent, URL: "v", Now: 1052,
	}); err != nil {
		t.Fatal(err)
	}
	if settled := settleWakes(t, st, 1053, facts.WakeOutcome{
		Recipient: sent, Lease: facts.Lease{Token: 6}, Through: 3, Disable: true,
	}); settled.Lost != 1 || settled.Removed != 1 {
		t.Errorf("%+v", settled)
	}
	row := facts.EndpointRow{Recipient: sent, URL: "v", Last: 3}
	if diff := cmp.Diff(row, endpointOf(t, st, sent), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if err := st.ForgetRecipient(t.Context(), outboxTerm, read); err != nil {
		t.Fatal(err)
	}
	if wakes, err := st.Wakes(t.Context(), read, 0, 10); err != nil || len(wakes) != 0 {
		t.Errorf("%v %v", wakes, err)
	}
}

// Webhooks are made, changed and removed with what they remember; a settlement that is repeated
// fires nothing.
func testOutboxWebhooks(t *testing.T, open openOutbox) {
	st := open.fill(t)
	ctx := t.Context()
	put := facts.PutWebhook{Term: outboxTerm, Now: 1000, Most: 1, Row: facts.WebhookRow{
		Workspace: outboxSpace, ID: "h'", Threshold: 5, Idle: 6000,
		Members:  []facts.WebhookState{{Member: agentKey(1)}, {Member: agentKey(2)}},
		Endpoint: facts.EndpointRow{URL: "u", Secret: []byte("s")},
	}}
	made, err := st.PutWebhook(ctx, put)
	if err != nil || made.Key == 0 || made.WorkspaceID != "" && made.WorkspaceID != "w" || len(made.Members) != 2 {
		t.Fatalf("%+v %v", made, err)
	}
	state := made.Members[0]
	state.Seen, state.Armed, state.IdleSince, state.IdleLSN = true, true, 7, 8
	s := facts.WebhookSettlement{
		Terms: outboxTerms, Now: 1001, QueueLimit: 10,
		States: []facts.WebhookState{state, {Webhook: made.Key, Member: agentKey(5), Seen: true}},
		Firings: []facts.Firing{
			{Webhook: made.Key, Member: agentKey(1), Kind: facts.WakeUnreadIdle, LSN: 8, Amount: 3},
			{Webhook: made.Key, Member: agentKey(5), Kind: facts.WakeUnreadIdle, LSN: 8},
		},
	}
	for _, want := range []int{1, 0} {
		settled, err := st.SettleWebhooks(ctx, s)
		if err != nil || settled.Wakes != want {
			t.Errorf("%+v %v, want %d", settled, err, want)
		}
	}
	put.Row.ID = "other"
	if _, err := st.PutWebhook(ctx, put); !errors.Is(err, facts.ErrLimit) {
		t.Errorf("one too many: %v", err)
	}
	put.Row.ID, put.Row.Threshold = "h'", 9
	put.Row.Members = []facts.WebhookState{{Member: agentKey(3)}, {Member: agentKey(1)}}
	if _, err := st.PutWebhook(ctx, put); err != nil {
		t.Fatal(err)
	}
	all, err := st.Webhooks(ctx, outboxSpace, 0, 10)
	if err != nil || len(all) != 1 || all[0].Threshold != 9 || all[0].CreatedAt != 1000 ||
		all[0].WorkspaceID != "w" || all[0].Endpoint.Waiting != 1 || len(all[0].Members) != 2 {
		t.Fatalf("%+v %v", all, err)
	}
	if diff := cmp.Diff(state, all[0].Members[0]); diff != "" {
		t.Errorf("what was remembered: %s", diff)
	}
	if everywhere, err := st.Webhooks(ctx, 0, 0, 10); err != nil || len(everywhere) != 1 {
		t.Errorf("%+v %v", everywhere, err)
	}
	if next, err := st.Webhooks(ctx, outboxSpace, all[0].Key, 10); err != nil || len(next) != 0 {
		t.Errorf("%+v %v", next, err)
	}
	batch := claimWakes(t, st, 1, 1002)
	if len(batch.Queues) != 1 || batch.Queues[0].WebhookID != "h'" || batch.Queues[0].Wakes[0].Amount != 3 {
		t.Errorf("%+v", batch)
	}
	if _, err := st.RemoveWebhook(ctx, outboxTerm-1, outboxSpace, "h'"); !errors.Is(err, facts.ErrNotOwner) {
		t.Errorf("with another term: %v", err)
	}
	for _, want := range []bool{true, false} {
		if found, err := st.RemoveWebhook(ctx, outboxTerm, outboxSpace, "h'"); err != nil || found != want {
			t.Errorf("removed %v %v", found, err)
		}
	}
	if wakes, err := st.Wakes(ctx, made.Key.Recipient(), 0, 10); err != nil || len(wakes) != 0 {
		t.Errorf("%v %v", wakes, err)
	}
}
