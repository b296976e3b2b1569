package sqlstore

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

var (
	selectDueQueues = query("wakes: find due queues", 0,
		`SELECT `+endpointColumns+` FROM wake_endpoints e
  WHERE e.slow = ? AND e.due_at <= ? ORDER BY e.due_at LIMIT ? OFFSET ?`)
	selectNextQueue = query("wakes: find the next due queue", 0,
		`SELECT min(e.due_at) FROM wake_endpoints e WHERE e.slow = ? AND e.due_at > ?`)
	selectLastBefore = query("wakes: find the last before", 0,
		`SELECT max(w.wake) FROM wakes w WHERE w.recipient = ? AND w.queued_at < ?`)
	leaseQueues = update("wakes: lease queues", change{
		table: "wake_endpoints", columns: list("recipient due_at lease term owner waiting attempts"),
		keys: 1,
	})
	settleQueues = update("wakes: settle queues", change{
		table:   "wake_endpoints",
		columns: list("recipient disabled waiting attempts streak slow due_at lease error"),
		keys:    1,
	})
	putEndpoint = insert("wakes: write endpoint", insertion{
		table: "wake_endpoints",
		columns: list("recipient url secret disabled last_wake waiting attempts streak slow " +
			"due_at lease term owner error"),
		keys:   1,
		update: list("url secret disabled attempts streak slow due_at lease error"),
	})
	removeEndpoint = query("wakes: remove endpoint", 0,
		`DELETE FROM wake_endpoints WHERE recipient = ?`)
	removeLettersOf = query("wakes: remove letters of a recipient", 0,
		`DELETE FROM dead_letters WHERE recipient = ? AND recipient <> 0`)
	selectHookIDs = query("webhooks: load ids", 1,
		`SELECT h.webhook, h.id FROM {keys} k CROSS JOIN webhooks h WHERE h.webhook = k.k1`)
)

// ClaimWakes implements facts.WakeStore.
func (st *Store) ClaimWakes(
	ctx context.Context, c facts.WakeClaim,
) (batch facts.WakeBatch, err error) {
	err = st.inTx(ctx, "claim wakes", func(t *tx) (bool, error) {
		cl := &wakeClaim{tx: t, WakeClaim: c}
		if err := cl.run(ctx); err != nil {
			return false, err
		}
		batch = cl.batch
		return len(cl.rows) > 0, nil
	})
	if err != nil {
		return facts.WakeBatch{}, err
	}
	return batch, nil
}

// wakeClaim is one claim under way.
type wakeClaim struct {
	*tx
	facts.WakeClaim
	batch  facts.WakeBatch
	owners map[facts.WorkspaceKey]owner
	rows   []queueRow // as they are written
}

func (c *wakeClaim) run(ctx context.Context) error {
	c.owners = map[facts.WorkspaceKey]owner{}
	for _, class := range [...]struct {
		slow bool
		n    int
	}{{false, c.Quick}, {true, c.Slow}} {
		due, err := c.due(ctx, class.slow, class.n)
		if err != nil {
			return err
		}
		for i := range due {
			if err := c.take(ctx, due[i]); err != nil {
				return err
			}
		}
		args := []any{flag(class.slow), c.Now}
		err = c.each(ctx, selectNextQueue, 0, args, func(r *record) error {
			if at := r.int(); at != 0 && (c.batch.NextDue == 0 || at < c.batch.NextDue) {
				c.batch.NextDue = at
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	bind := func(args []any, q *queueRow) []any {
		var name string
		var term uint64
		if q.lease != 0 {
			name, term = c.Lease.Owner, c.owners[q.Recipient.Workspace()].term
		}
		return append(args, number(q.Recipient), positive(q.dueAt), number(q.lease), number(term),
			name, int64(q.Waiting), int64(q.Attempts))
	}
	if err := execRows(ctx, c.session, leaseQueues, c.rows, bind); err != nil {
		return err
	}
	return c.name(ctx)
}

// due finds queues of a class that are due and ours.
func (c *wakeClaim) due(ctx context.Context, slow bool, n int) ([]queueRow, error) {
	if n <= 0 {
		return nil, nil
	}
	for look := range dueLooks {
		var found []queueRow
		args := []any{flag(slow), c.Now, bounded(n), bounded(look * n)}
		err := c.each(ctx, selectDueQueues, 0, args, func(r *record) error {
			found = append(found, readQueue(r))
			return nil
		})
		if err != nil || len(found) == 0 {
			return nil, err
		}
		full := len(found) == n
		var spaces []facts.WorkspaceKey
		for i := range found {
			spaces = append(spaces, found[i].Recipient.Workspace())
		}
		owners, err := c.ours(ctx, c.Terms, spaces)
		if err != nil {
			return nil, err
		}
		maps.Copy(c.owners, owners)
		found = slices.DeleteFunc(found, func(q queueRow) bool {
			_, ok := c.owners[q.Recipient.Workspace()]
			return !ok
		})
		if !full || len(found) > 0 {
			c.batch.More = c.batch.More || full
			return found, nil
		}
	}
	return nil, nil
}

// take leases a queue with its first wakes, once those that are too old are given up.
func (c *wakeClaim) take(ctx context.Context, q queueRow) error {
	wakes, queuedAt, err := c.wakesOf(ctx, q.Recipient, 0, c.Burst)
	if err != nil {
		return err
	}
	if len(wakes) > 0 && queuedAt[0] < c.Oldest {
		if err := c.expire(ctx, &q); err != nil {
			return err
		}
		if wakes, _, err = c.wakesOf(ctx, q.Recipient, 0, c.Burst); err != nil {
			return err
		}
	}
	if len(wakes) == 0 {
		q.Waiting, q.dueAt, q.lease = 0, 0, 0
		c.rows = append(c.rows, q)
		return nil
	}
	q.dueAt, q.lease = c.Lease.Until, c.Lease.Token
	c.rows = append(c.rows, q)
	c.batch.Queues = append(c.batch.Queues, facts.WakeQueue{
		EndpointRow: q.EndpointRow, WorkspaceID: c.owners[q.Recipient.Workspace()].id, Wakes: wakes,
	})
	return nil
}

func (c *wakeClaim) expire(ctx context.Context, q *queueRow) error {
	var last facts.WakeKey
	args := []any{number(q.Recipient), c.Oldest}
	err := c.each(ctx, selectLastBefore, 0, args, func(r *record) error {
		last = facts.WakeKey(r.uint())
		return nil
	})
	if err != nil || last == 0 {
		return err
	}
	n, err := c.bury(ctx, q, last, burial{
		attempts: q.Attempts, err: "too old: " + q.Error, now: c.Now,
	})
	c.batch.Expired += n
	return err
}

// name finds the names of the recipients.
func (c *wakeClaim) name(ctx context.Context) error {
	var agents []readstate.MemberKey
	var hooks []facts.WebhookKey
	at := map[facts.Recipient]*facts.WakeQueue{}
	for i := range c.batch.Queues {
		q := &c.batch.Queues[i]
		at[q.Recipient] = q
		if m, ok := q.Recipient.Agent(); ok {
			agents = append(agents, m)
		} else if h, ok := q.Recipient.Webhook(); ok {
			hooks = append(hooks, h)
		}
	}
	err := eachKey(ctx, c.session, selectMemberIDs, agents, bindNumber, func(r *record) error {
		m := facts.AgentRecipient(readstate.MemberKey(r.uint()))
		at[m].MemberID = readstate.MemberID(r.string())
		return nil
	})
	if err != nil {
		return err
	}
	return eachKey(ctx, c.session, selectHookIDs, hooks, bindHook, func(r *record) error {
		h := facts.WebhookKey(r.uint()).Recipient()
		at[h].WebhookID = r.string()
		return nil
	})
}

func bindHook(args []any, h facts.WebhookKey) []any { return append(args, number(h)) }

// SettleWakes implements facts.WakeStore.
func (st *Store) SettleWakes(
	ctx context.Context, s facts.WakeSettlement,
) (settled facts.WakesSettled, err error) {
	err = st.inTx(ctx, "settle wakes", func(t *tx) (bool, error) {
		ws := &wakeSettle{tx: t, WakeSettlement: s}
		if err := ws.run(ctx); err != nil {
			return false, err
		}
		settled = ws.settled
		return len(ws.rows) > 0, nil
	})
	if err != nil {
		return facts.WakesSettled{}, err
	}
	return settled, nil
}

// wakeSettle is one settlement under way.
type wakeSettle struct {
	*tx
	facts.WakeSettlement
	settled facts.WakesSettled
	rows    []queueRow
}

func (s *wakeSettle) run(ctx context.Context) error {
	var spaces []facts.WorkspaceKey
	var recipients []facts.Recipient
	for i := range s.Outcomes {
		r := s.Outcomes[i].Recipient
		spaces, recipients = append(spaces, r.Workspace()), append(recipients, r)
	}
	owners, err := s.ours(ctx, s.Terms, spaces)
	if err != nil {
		return err
	}
	recipients = slices.Compact(slices.Sorted(slices.Values(recipients)))
	queues, err := s.queues(ctx, recipients)
	if err != nil {
		return err
	}
	for i := range s.Outcomes {
		o := &s.Outcomes[i]
		_, owned := owners[o.Recipient.Workspace()]
		q := queues[o.Recipient]
		if !owned || q == nil {
			s.settled.Lost++
			continue
		}
		if err := s.one(ctx, q, o); err != nil {
			return err
		}
	}
	for _, r := range recipients {
		q := queues[r]
		if q == nil {
			continue
		}
		if _, owned := owners[r.Workspace()]; owned {
			s.rows = append(s.rows, *q)
		}
	}
	return execRows(ctx, s.session, settleQueues, s.rows, bindSettled)
}

// one takes the outcome of a queue in.
func (s *wakeSettle) one(ctx context.Context, q *queueRow, o *facts.WakeOutcome) error {
	if o.Through > 0 { // delivered is delivered, whoever holds the lease by now
		n, err := s.exec(ctx, removeWakes, 0, number(q.Recipient), number(o.Through))
		if err != nil {
			return err
		}
		q.Waiting -= int(n)
		s.settled.Removed += int(n)
		if n > 0 {
			q.Attempts = 0
		}
	}
	switch {
	case o.Read:
		if q.lease == 0 && !q.sends() {
			q.dueAt = 0
		}
		return nil
	case q.lease != o.Lease.Token:
		s.settled.Lost++
		return nil
	}
	q.lease, q.Attempts, q.Streak, q.Slow, q.Error = 0, o.Attempts, o.Streak, o.Slow, o.Error
	q.Disabled = q.Disabled || o.Disable
	if o.Dead > 0 { // nothing else is left at or below it
		n, err := s.bury(ctx, q, o.Dead, burial{attempts: o.Attempts, err: o.Error, now: s.Now})
		if err != nil {
			return err
		}
		s.settled.Dead += n
		s.settled.Removed += n
	}
	switch {
	case !q.sends():
		q.dueAt = 0
	case o.DueAt > 0:
		q.dueAt = o.DueAt
	default:
		q.dueAt = s.Now
	}
	return nil
}

func bindSettled(args []any, q *queueRow) []any {
	return append(args, number(q.Recipient), flag(q.Disabled), int64(q.Waiting), int64(q.Attempts),
		int64(q.Streak), flag(q.Slow), positive(q.dueAt), number(q.lease), q.Error)
}

// PutEndpoint implements facts.WakeStore.
func (st *Store) PutEndpoint(ctx context.Context, e facts.EndpointChange) error {
	return st.inTx(ctx, "put endpoint", func(t *tx) (bool, error) {
		if err := t.fenced(ctx, e.Recipient.Workspace(), e.Term); err != nil {
			return false, err
		}
		return true, t.putEndpoint(ctx, e)
	})
}

// putEndpoint also ends a lease: whoever sends to the old address settles nothing but what they
// have delivered.
func (t *tx) putEndpoint(ctx context.Context, e facts.EndpointChange) error {
	all, err := t.queues(ctx, []facts.Recipient{e.Recipient})
	if err != nil {
		return err
	}
	q := queueRow{EndpointRow: facts.EndpointRow{Recipient: e.Recipient}}
	if found := all[e.Recipient]; found != nil {
		q.Waiting, q.Last = found.Waiting, found.Last
	}
	q.URL, q.Secret = e.URL, e.Secret
	if q.sends() {
		q.dueAt = e.Now
	}
	return execRows(ctx, t.session, putEndpoint, []queueRow{q}, bindQueue)
}

// ForgetRecipient implements facts.WakeStore.
func (st *Store) ForgetRecipient(
	ctx context.Context, term uint64, recipient facts.Recipient,
) error {
	return st.inTx(ctx, "forget recipient", func(t *tx) (bool, error) {
		if err := t.fenced(ctx, recipient.Workspace(), term); err != nil {
			return false, err
		}
		return true, t.forget(ctx, recipient)
	})
}

func (t *tx) forget(ctx context.Context, recipient facts.Recipient) error {
	_, err := t.exec(ctx, removeWakes, 0, number(recipient), int64(math.MaxInt64))
	if err != nil {
		return err
	}
	if _, err := t.exec(ctx, removeLettersOf, 0, number(recipient)); err != nil {
		return err
	}
	_, err = t.exec(ctx, removeEndpoint, 0, number(recipient))
	return err
}
