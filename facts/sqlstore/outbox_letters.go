package sqlstore

import (
	"context"
	"fmt"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

var (
	// The queue of a row's letter is 0, which has no workspace: its names are found by the
	// letter's own.
	letterColumns = `w.recipient, w.wake, w.kind, w.event, w.scope, w.seq, w.id, w.actor, w.amount,
  w.created_at, c.id, s.id, s.type, m.id, w.letter, w.workspace, w.overflow, w.attempts, w.error,
  w.died_at, a.id, h.id`
	letterNames = `LEFT JOIN scopes s ON s.scope = w.scope
  LEFT JOIN members m ON m.member = w.actor
  LEFT JOIN members a ON a.member = w.recipient
  LEFT JOIN webhooks h ON h.webhook = -w.recipient
  LEFT JOIN workspaces c ON c.workspace = w.workspace`
	selectLetters = query("outbox: list letters", 0,
		`SELECT `+letterColumns+` FROM dead_letters w {index dead_letters_by_workspace}
  `+letterNames+` WHERE w.workspace = ? AND w.letter > ? ORDER BY w.letter LIMIT ?`)
	selectLetter = query("outbox: load letter", 0,
		`SELECT `+letterColumns+` FROM dead_letters w `+letterNames+`
  WHERE w.letter = ? AND w.workspace = ?`)
	removeLetter = query("outbox: remove letter", 0, `DELETE FROM dead_letters WHERE letter = ?`)
	reviveEffect = query("outbox: revive row", 0,
		`UPDATE outbox_state SET state = 3, due_at = ?, failures = 0, settled_at = NULL
  WHERE workspace = ? AND event = ? AND state = 6`)
	selectOutboxRow = query("outbox: load row", 0,
		`SELECT `+outboxColumns+` FROM outbox o WHERE o.workspace = ? AND o.event = ?`)

	selectDelivered = query("outbox: find old rows", 0,
		`SELECT s.workspace, s.event FROM outbox_state s {index outbox_state_delivered}
  WHERE s.state = 5 AND s.settled_at < ? ORDER BY s.settled_at LIMIT ?`)
	selectOldLetters = query("outbox: find old letters", 0,
		`SELECT d.letter, d.workspace, d.recipient, d.event
  FROM dead_letters d {index dead_letters_by_age} WHERE d.died_at < ? ORDER BY d.died_at LIMIT ?`)
	removeOutbox  = remove("outbox: remove rows", "outbox", "workspace", "event")
	removeLetters = remove("outbox: remove letters", "dead_letters", "letter")
)

func readLetter(r *record) facts.DeadLetter {
	d := facts.DeadLetter{Wake: readWake(r)}
	d.Letter, d.Workspace = facts.LetterID(r.uint()), facts.WorkspaceKey(r.uint())
	d.Overflow, d.Attempts, d.Error = r.bool(), int(r.int()), r.string()
	d.DiedAt = r.int()
	d.MemberID, d.WebhookID = readstate.MemberID(r.string()), r.string()
	d.Row = d.Recipient == 0
	return d
}

// DeadLetters implements facts.OutboxStore.
func (st *Store) DeadLetters(
	ctx context.Context, w facts.WorkspaceKey, after facts.LetterID, limit int,
) (out []facts.DeadLetter, err error) {
	err = st.inView(ctx, "list dead letters", func(s *session) error {
		args := []any{number(w), number(after), bounded(limit)}
		return s.each(ctx, selectLetters, 0, args, func(r *record) error {
			out = append(out, readLetter(r))
			return nil
		})
	})
	return out, err
}

// Requeue implements facts.OutboxStore.
func (st *Store) Requeue(ctx context.Context, q facts.Requeue) error {
	return st.inTx(ctx, "requeue", func(t *tx) (bool, error) {
		if err := t.fenced(ctx, q.Workspace, q.Term); err != nil {
			return false, err
		}
		var letters []facts.DeadLetter
		args := []any{number(q.Letter), number(q.Workspace)}
		err := t.each(ctx, selectLetter, 0, args, func(r *record) error {
			letters = append(letters, readLetter(r))
			return nil
		})
		if err == nil && len(letters) == 0 {
			err = fmt.Errorf("dead letter %d: %w", q.Letter, facts.ErrNotFound)
		}
		if err != nil {
			return false, err
		}
		if _, err := t.exec(ctx, removeLetter, 0, number(q.Letter)); err != nil {
			return false, err
		}
		if letters[0].Row {
			return true, t.revive(ctx, facts.EventKey(letters[0].Event), q)
		}
		var settled facts.EffectsSettled
		news := []facts.WakeRow{letters[0].WakeRow}
		return true, t.queue(ctx, news, q.Now, q.QueueLimit, &settled)
	})
}

// revive makes a row that was given up due again.
func (t *tx) revive(ctx context.Context, event facts.EventKey, q facts.Requeue) error {
	_, err := t.exec(ctx, reviveEffect, 0, q.Now, number(q.Workspace), number(event))
	if err != nil {
		return err
	}
	var waits []wait
	args := []any{number(q.Workspace), number(event)}
	err = t.each(ctx, selectOutboxRow, 0, args, func(r *record) error {
		row, err := readOutbox(r)
		waits = waitsOf(waits, &row)
		return err
	})
	if err != nil {
		return err
	}
	return execRows(ctx, t.session, insertWaits, waits, bindWait)
}

// Purge implements facts.OutboxStore.
func (st *Store) Purge(ctx context.Context, p facts.OutboxPurge) (purged int, err error) {
	err = st.inTx(ctx, "purge outbox", func(t *tx) (bool, error) {
		var rows []effectKey
		args := []any{p.Delivered, bounded(p.Limit)}
		err := t.each(ctx, selectDelivered, 0, args, func(r *record) error {
			rows = append(rows, effectKey{facts.WorkspaceKey(r.uint()), facts.EventKey(r.uint())})
			return nil
		})
		if err != nil {
			return false, err
		}
		letters, dead, err := t.oldLetters(ctx, p)
		if err != nil {
			return false, err
		}
		rows, err = t.mine(ctx, p.Terms, append(rows, dead...))
		if err != nil {
			return false, err
		}
		purged = len(rows) + len(letters)
		bind := func(args []any, k *effectKey) []any { return bindEffectKey(args, *k) }
		for _, st := range [...]*statement{removeEffects, removeOutbox} {
			if err := execRows(ctx, t.session, st, rows, bind); err != nil {
				return false, err
			}
		}
		bindLetter := func(args []any, id *facts.LetterID) []any { return append(args, number(*id)) }
		return purged > 0, execRows(ctx, t.session, removeLetters, letters, bindLetter)
	})
	return purged, err
}

// oldLetters finds old letters, and the rows that go with them.
func (t *tx) oldLetters(
	ctx context.Context, p facts.OutboxPurge,
) (letters []facts.LetterID, rows []effectKey, err error) {
	type found struct {
		id   facts.LetterID
		row  effectKey
		wake bool
	}
	var all []found
	var spaces []facts.WorkspaceKey
	args := []any{p.Dead, bounded(p.Limit)}
	err = t.each(ctx, selectOldLetters, 0, args, func(r *record) error {
		f := found{id: facts.LetterID(r.uint())}
		f.row.workspace = facts.WorkspaceKey(r.uint())
		f.wake = r.int() != 0
		f.row.event = facts.EventKey(r.uint())
		all, spaces = append(all, f), append(spaces, f.row.workspace)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	owners, err := t.ours(ctx, p.Terms, spaces)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range all {
		if _, ok := owners[f.row.workspace]; !ok {
			continue
		}
		letters = append(letters, f.id)
		if !f.wake {
			rows = append(rows, f.row)
		}
	}
	return letters, rows, nil
}

// mine keeps the rows of workspaces that the caller owns.
func (t *tx) mine(
	ctx context.Context, terms facts.TermOf, rows []effectKey,
) ([]effectKey, error) {
	var spaces []facts.WorkspaceKey
	for _, k := range rows {
		spaces = append(spaces, k.workspace)
	}
	owners, err := t.ours(ctx, terms, spaces)
	if err != nil {
		return nil, err
	}
	var out []effectKey
	for _, k := range rows {
		if _, ok := owners[k.workspace]; ok {
			out = append(out, k)
		}
	}
	return out, nil
}
