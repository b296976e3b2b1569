package sqlstore

import (
	"context"
	"slices"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

var (
	selectLeases = query("outbox: load leases", 2,
		`SELECT s.workspace, s.event, s.state, s.lease, s.failures, s.deferrals FROM {keys} k
  CROSS JOIN outbox_state s WHERE s.workspace = k.k1 AND s.event = k.k2`)
	selectAnyWait = query("outbox: find a wait", 0,
		`SELECT w.event FROM outbox_waits w WHERE w.member > 0 LIMIT 1`)
	// What was behind may be next: of each agent the first rows that wait.
	freeBehind = query("outbox: free rows", 1,
		`UPDATE outbox_state SET due_at = 1 WHERE (workspace, event) IN (
  SELECT w.member >> 32, w.event FROM {keys} k CROSS JOIN outbox_waits w
  WHERE w.member = k.k1 AND w.event <= coalesce((SELECT x.event FROM outbox_waits x
    WHERE x.member = k.k1 ORDER BY x.event LIMIT 1 OFFSET 63), 9223372036854775807)
  ) AND state = 4 AND due_at > 1`)

	insertRowLetters = insert("outbox: write letters of rows", insertion{
		table: "dead_letters",
		columns: list("workspace recipient wake kind event scope seq id actor amount created_at " +
			"overflow attempts error died_at"),
	})
)

// SettleEffects implements facts.EffectStore.
func (st *Store) SettleEffects(
	ctx context.Context, s facts.EffectSettlement,
) (settled facts.EffectsSettled, err error) {
	err = st.inTx(ctx, "settle outbox rows", func(t *tx) (bool, error) {
		es := &effectSettle{tx: t, EffectSettlement: s}
		es.settled.States = make([]facts.EffectState, len(s.Outcomes))
		if err := es.run(ctx); err != nil {
			return false, err
		}
		settled = es.settled
		return len(es.states) > 0, nil
	})
	if err != nil {
		return facts.EffectsSettled{}, err
	}
	return settled, nil
}

// effectSettle is one settlement under way.
type effectSettle struct {
	*tx
	facts.EffectSettlement
	settled facts.EffectsSettled
	owners  map[facts.WorkspaceKey]owner
	rows    map[effectKey]effectRow // as they are stored, of workspaces that are ours

	states []effectRow
	waits  []wait // of what is put off
	done   []wait // of what has waited and is finished
	freed  []readstate.MemberKey
	news   []facts.WakeRow
	dead   []*facts.EffectOutcome
}

func (s *effectSettle) run(ctx context.Context) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	for i := range s.Outcomes {
		s.settled.States[i] = s.decide(&s.Outcomes[i])
	}
	if len(s.states) == 0 {
		return nil
	}
	// Wakes come before the mark: a reader of either table in the middle of the transaction, and
	// a test that ends the process there, finds them in the order in which they are promised.
	if err := s.wake(ctx); err != nil {
		return err
	}
	if err := execRows(ctx, s.session, upsertEffects, s.states, bindEffect); err != nil {
		return err
	}
	if err := execRows(ctx, s.session, removeWaits, s.done, bindWait); err != nil {
		return err
	}
	if err := execRows(ctx, s.session, insertWaits, s.waits, bindWait); err != nil {
		return err
	}
	if err := execRows(ctx, s.session, insertRowLetters, s.dead, s.bindLetter); err != nil {
		return err
	}
	return s.free(ctx)
}

// check loads what is known of the rows.
func (s *effectSettle) check(ctx context.Context) (err error) {
	var spaces []facts.WorkspaceKey
	var keys []effectKey
	for i := range s.Outcomes {
		key := keyOf(&s.Outcomes[i].Effect.OutboxRow)
		spaces, keys = append(spaces, key.workspace), append(keys, key)
	}
	if s.owners, err = s.ours(ctx, s.Terms, spaces); err != nil {
		return err
	}
	s.rows = make(map[effectKey]effectRow, len(keys))
	return eachKey(ctx, s.session, selectLeases, keys, bindEffectKey, func(r *record) error {
		key := effectKey{facts.WorkspaceKey(r.uint()), facts.EventKey(r.uint())}
		if o, ok := s.owners[key.workspace]; ok {
			s.rows[key] = effectRow{
				effectKey: key, term: o.term, state: facts.EffectState(r.uint()), lease: r.uint(),
				failures: int(r.int()), deferrals: int(r.int()),
			}
		}
		return nil
	})
}

// decide says what becomes of one outcome and stages it.
func (s *effectSettle) decide(o *facts.EffectOutcome) facts.EffectState {
	e := o.Effect
	row, ok := s.rows[keyOf(&e.OutboxRow)]
	if !ok || row.state != facts.EffectLeased || row.lease != s.Lease.Token {
		if !ok || row.state < facts.EffectDelivered { // somebody else may be at work on it
			s.holdBack(e)
		}
		return 0
	}
	row.lease = 0
	state := o.State
	held := slices.ContainsFunc(e.Agents, func(m readstate.MemberKey) bool {
		_, ok := s.Held[m]
		return ok
	})
	if state == facts.EffectDelivered && held {
		state = facts.EffectBehind
	}
	row.state, row.dueAt, row.err, row.createdAt = state, o.DueAt, o.Error, e.CreatedAt
	switch state {
	case facts.EffectDelivered, facts.EffectDead:
		row.dueAt, row.settledAt = 0, s.Now
		s.finish(o, state)
	case facts.EffectDeferred:
		row.deferrals++
	case facts.EffectFailed:
		row.failures++
	case facts.EffectBehind:
		row.dueAt = s.Now + s.BehindFor
	}
	if state == facts.EffectDead {
		row.failures++
	}
	if row.settledAt == 0 {
		s.holdBack(e)
		s.waits = waitsOf(s.waits, &e.OutboxRow)
	}
	s.states = append(s.states, row)
	return state
}

func (s *effectSettle) holdBack(e *facts.Effect) {
	for _, m := range e.Agents {
		s.Held[m] = struct{}{}
	}
}

// finish stages what follows from a row that is not worked on any more.
func (s *effectSettle) finish(o *facts.EffectOutcome, state facts.EffectState) {
	e := o.Effect
	if e.Waited {
		s.done = waitsOf(s.done, &e.OutboxRow)
	}
	s.freed = append(s.freed, e.Agents...)
	if state == facts.EffectDead {
		s.dead = append(s.dead, o)
		return
	}
	for _, m := range e.Agents {
		s.news = append(s.news, facts.WakeRow{
			Recipient: facts.AgentRecipient(m), Kind: wakeKind(e.Kind), Event: uint64(e.Key),
			Scope: e.Scope, Seq: e.Seq, ID: e.ID, Actor: e.Actor, CreatedAt: e.CreatedAt,
		})
	}
}

func wakeKind(k facts.EffectKind) facts.WakeKind {
	if k == facts.TaskActivity {
		return facts.WakeTaskActivity
	}
	return facts.WakeTaskMessage
}

// wake queues the wakes of what is delivered, but for agents who are erased by now.
func (s *effectSettle) wake(ctx context.Context) error {
	if len(s.news) == 0 {
		return nil
	}
	erased := map[facts.Recipient]struct{}{}
	agents := slices.Compact(slices.Sorted(slices.Values(s.freed)))
	err := eachKey(ctx, s.session, selectMembers, agents, bindNumber, func(r *record) error {
		if m := readMember(r); m.Erased {
			erased[facts.AgentRecipient(m.Key)] = struct{}{}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.news = slices.DeleteFunc(s.news, func(w facts.WakeRow) bool {
		_, gone := erased[w.Recipient]
		return gone
	})
	return s.queue(ctx, s.news, s.Now, s.QueueLimit, &s.settled)
}

// free makes rows due that may have waited for those that are finished.
func (s *effectSettle) free(ctx context.Context) error {
	if len(s.freed) == 0 {
		return nil
	}
	waiting := false
	err := s.each(ctx, selectAnyWait, 0, nil, func(*record) error {
		waiting = true
		return nil
	})
	if err != nil || !waiting {
		return err
	}
	agents := slices.Compact(slices.Sorted(slices.Values(s.freed)))
	s.settled.Freed = true
	return eachKey(ctx, s.session, freeBehind, agents, bindNumber, ignored)
}

func ignored(*record) error { return nil }

func (s *effectSettle) bindLetter(args []any, p **facts.EffectOutcome) []any {
	o := *p
	e := o.Effect
	return append(args, number(e.Workspace), zero, zero, number(wakeKind(e.Kind)), number(e.Key),
		number(e.Scope), number(e.Seq), optional(e.ID), number(e.Actor), zero, e.CreatedAt, zero,
		int64(e.Failures+1), o.Error, s.Now)
}
