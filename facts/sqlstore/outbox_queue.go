package sqlstore

import (
	"context"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

const endpointColumns = `e.recipient, e.url, e.secret, e.disabled, e.last_wake, e.waiting,
  e.attempts, e.streak, e.slow, e.due_at, e.lease, e.error`

var (
	selectQueues = query("wakes: load queues", 1,
		`SELECT `+endpointColumns+` FROM {keys} k CROSS JOIN wake_endpoints e
  WHERE e.recipient = k.k1`)
	// A queue that exists gets only what the news change.
	upsertQueues = insert("wakes: grow queues", insertion{
		table: "wake_endpoints",
		columns: list("recipient url secret disabled last_wake waiting attempts streak slow " +
			"due_at lease term owner error"),
		keys:   1,
		update: list("last_wake waiting attempts due_at"),
	})
	insertWakes = insert("wakes: write", insertion{
		table: "wakes",
		columns: list("recipient wake kind event scope seq id actor amount created_at " +
			"queued_at"),
		keys: 2,
	})
	selectWakeAt = query("wakes: find the last to give up", 0,
		`SELECT w.wake FROM wakes w WHERE w.recipient = ? ORDER BY w.wake LIMIT 1 OFFSET ?`)
	buryWakes = query("wakes: give up", 0,
		`INSERT INTO dead_letters (workspace, recipient, wake, kind, event, scope, seq, id, actor,
    amount, created_at, overflow, attempts, error, died_at)
  SELECT ?, w.recipient, w.wake, w.kind, w.event, w.scope, w.seq, w.id, w.actor, w.amount,
    w.created_at, ?, ?, ?, ?
  FROM wakes w WHERE w.recipient = ? AND w.wake <= ?`)
	removeWakes = query("wakes: remove", 0,
		`DELETE FROM wakes WHERE recipient = ? AND wake <= ?`)

	// Names that a receiver knows; what has no scope or no actor has none.
	wakeColumns = `w.recipient, w.wake, w.kind, w.event, w.scope, w.seq, w.id, w.actor, w.amount,
  w.created_at, c.id, s.id, s.type, m.id`
	wakeNames = `LEFT JOIN scopes s ON s.scope = w.scope
  LEFT JOIN members m ON m.member = w.actor
  LEFT JOIN workspaces c ON c.workspace = abs(w.recipient) >> 32`
	selectWakes = query("wakes: load", 0,
		`SELECT `+wakeColumns+`, w.queued_at FROM wakes w `+wakeNames+`
  WHERE w.recipient = ? AND w.wake > ? ORDER BY w.wake LIMIT ?`)
)

// queueRow is one row of wake_endpoints.
type queueRow struct {
	facts.EndpointRow
	dueAt int64 // zero for nothing to send
	lease uint64
}

func readQueue(r *record) queueRow {
	var q queueRow
	q.Recipient = facts.Recipient(r.int())
	q.URL, q.Secret = r.string(), r.bytes()
	q.Disabled = r.bool()
	q.Last = facts.WakeKey(r.uint())
	q.Waiting, q.Attempts, q.Streak = int(r.int()), int(r.int()), int(r.int())
	q.Slow = r.bool()
	q.dueAt = r.int()
	q.lease = r.uint()
	q.Error = r.string()
	return q
}

func bindQueue(args []any, q *queueRow) []any {
	var url any
	if q.URL != "" {
		url = q.URL
	}
	return append(args, number(q.Recipient), url, blob(q.Secret), flag(q.Disabled), number(q.Last),
		int64(q.Waiting), int64(q.Attempts), int64(q.Streak), flag(q.Slow), positive(q.dueAt),
		number(q.lease), zero, "", q.Error)
}

// sends reports that whatever waits is to be sent.
func (q *queueRow) sends() bool { return q.URL != "" && !q.Disabled && q.Waiting > 0 }

func (s *session) queues(
	ctx context.Context, recipients []facts.Recipient,
) (map[facts.Recipient]*queueRow, error) {
	out := make(map[facts.Recipient]*queueRow, len(recipients))
	bind := func(args []any, r facts.Recipient) []any { return append(args, number(r)) }
	err := eachKey(ctx, s, selectQueues, recipients, bind, func(r *record) error {
		q := readQueue(r)
		out[q.Recipient] = &q
		return nil
	})
	return out, err
}

// queue appends wakes to their recipients' queues, in their order, and gives up the oldest of a
// queue that becomes too long.
func (s *session) queue(
	ctx context.Context, news []facts.WakeRow, now int64, limit int, settled *facts.EffectsSettled,
) error {
	if len(news) == 0 {
		return nil
	}
	var order []facts.Recipient
	seen := map[facts.Recipient]struct{}{}
	for i := range news {
		r := news[i].Recipient
		if _, ok := seen[r]; !ok {
			seen[r] = struct{}{}
			order = append(order, r)
		}
	}
	queues, err := s.queues(ctx, order)
	if err != nil {
		return err
	}
	for i := range news {
		q := queues[news[i].Recipient]
		if q == nil {
			q = &queueRow{EndpointRow: facts.EndpointRow{Recipient: news[i].Recipient}}
			queues[q.Recipient] = q
		}
		q.Last++
		q.Waiting++
		news[i].Key = q.Last
	}
	bind := func(args []any, w *facts.WakeRow) []any { return bindWake(args, w, now) }
	if err := execRows(ctx, s, insertWakes, news, bind); err != nil {
		return err
	}
	rows := make([]queueRow, 0, len(order))
	for _, r := range order {
		q := queues[r]
		if over := q.Waiting - limit; over > 0 {
			if err := s.overflow(ctx, q, over, now); err != nil {
				return err
			}
			settled.Overflow += over
		}
		if q.dueAt == 0 && q.sends() {
			q.dueAt = now
		}
		rows = append(rows, *q)
	}
	settled.Wakes += len(news)
	settled.Woken = append(settled.Woken, order...)
	return execRows(ctx, s, upsertQueues, rows, bindQueue)
}

// overflow gives up the oldest wakes of a queue.
func (s *session) overflow(ctx context.Context, q *queueRow, n int, now int64) error {
	var last facts.WakeKey
	args := []any{number(q.Recipient), int64(n - 1)}
	err := s.each(ctx, selectWakeAt, 0, args, func(r *record) error {
		last = facts.WakeKey(r.uint())
		return nil
	})
	if err != nil {
		return err
	}
	_, err = s.bury(ctx, q, last, burial{overflow: true, attempts: q.Attempts, now: now})
	return err
}

// burial says why wakes are given up.
type burial struct {
	overflow bool
	attempts int // that the first of them has cost
	err      string
	now      int64
}

// bury moves a queue's wakes up to a position to the dead letters and returns their number.
func (s *session) bury(
	ctx context.Context, q *queueRow, through facts.WakeKey, b burial,
) (int, error) {
	n, err := s.exec(ctx, buryWakes, 0, number(q.Recipient.Workspace()), flag(b.overflow),
		int64(b.attempts), b.err, b.now, number(q.Recipient), number(through))
	if err != nil || n == 0 {
		return 0, err
	}
	_, err = s.exec(ctx, removeWakes, 0, number(q.Recipient), number(through))
	q.Waiting -= int(n)
	q.Attempts = 0
	return int(n), err
}

func bindWake(args []any, w *facts.WakeRow, now int64) []any {
	return append(args, number(w.Recipient), number(w.Key), number(w.Kind), number(w.Event),
		number(w.Scope), number(w.Seq), optional(w.ID), number(w.Actor), number(w.Amount),
		w.CreatedAt, now)
}

func readWake(r *record) facts.Wake {
	return facts.Wake{
		WakeRow: facts.WakeRow{
			Recipient: facts.Recipient(r.int()), Key: facts.WakeKey(r.uint()),
			Kind: facts.WakeKind(r.uint()), Event: r.uint(),
			Scope: readstate.ScopeKey(r.uint()), Seq: readstate.Seq(r.uint()), ID: r.string(),
			Actor: readstate.MemberKey(r.uint()), Amount: r.uint(), CreatedAt: r.int(),
		},
		WorkspaceID: readstate.WorkspaceID(r.string()),
		ScopeID:     readstate.ScopeID(r.string()),
		ScopeType:   readstate.ScopeType(r.uint()),
		ActorID:     readstate.MemberID(r.string()),
	}
}

// wakesOf loads the first wakes of a queue above a position, and when each was queued.
func (s *session) wakesOf(
	ctx context.Context, recipient facts.Recipient, above facts.WakeKey, limit int,
) (wakes []facts.Wake, queuedAt []int64, err error) {
	args := []any{number(recipient), number(above), bounded(limit)}
	err = s.each(ctx, selectWakes, 0, args, func(r *record) error {
		wakes = append(wakes, readWake(r))
		queuedAt = append(queuedAt, r.int())
		return nil
	})
	return wakes, queuedAt, err
}

// Wakes implements facts.WakeStore.
func (st *Store) Wakes(
	ctx context.Context, recipient facts.Recipient, above facts.WakeKey, limit int,
) (out []facts.Wake, err error) {
	err = st.inView(ctx, "load wakes", func(s *session) error {
		out, _, err = s.wakesOf(ctx, recipient, above, limit)
		return err
	})
	return out, err
}

// Endpoint implements facts.WakeStore.
func (st *Store) Endpoint(
	ctx context.Context, recipient facts.Recipient,
) (row facts.EndpointRow, found bool, err error) {
	err = st.inView(ctx, "load endpoint", func(s *session) error {
		all, err := s.queues(ctx, []facts.Recipient{recipient})
		if q := all[recipient]; q != nil {
			row, found = q.EndpointRow, true
		}
		return err
	})
	return row, found, err
}
