package sqlstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

const hookColumns = `h.webhook, h.workspace, c.id, h.id, h.threshold, h.idle, h.created_at`

var (
	selectHookByID = query("webhooks: load by id", 0,
		`SELECT `+hookColumns+` FROM webhooks h CROSS JOIN workspaces c
  WHERE h.workspace = ? AND h.id = ? AND c.workspace = h.workspace`)
	selectHooks = query("webhooks: list", 0,
		`SELECT `+hookColumns+` FROM webhooks h CROSS JOIN workspaces c
  WHERE h.webhook > ? AND h.webhook < ? AND c.workspace = h.workspace
  ORDER BY h.webhook LIMIT ?`)
	selectLastHook = query("webhooks: find the last of a workspace", 0,
		`SELECT max(h.webhook) FROM webhooks h WHERE h.webhook > ? AND h.webhook < ?`)
	countHooks = query("webhooks: count", 0,
		`SELECT count(*) FROM webhooks h WHERE h.workspace = ?`)
	upsertHooks = insert("webhooks: write", insertion{
		table: "webhooks", columns: list("webhook workspace id threshold idle created_at"),
		keys: 1, update: list("threshold idle"),
	})
	removeHook = query("webhooks: remove", 0, `DELETE FROM webhooks WHERE webhook = ?`)

	selectHookStates = query("webhooks: load states", 1,
		`SELECT t.webhook, t.member, m.id, t.seen, t.armed, t.idle_since, t.idle_lsn, t.idle_fired
  FROM {keys} k CROSS JOIN webhook_states t LEFT JOIN members m ON m.member = t.member
  WHERE t.webhook = k.k1 ORDER BY t.webhook, t.member`)
	insertHookStates = insert("webhooks: write states", insertion{
		table:   "webhook_states",
		columns: list("webhook member seen armed idle_since idle_lsn idle_fired"), keys: 2,
		ignore: true,
	})
	updateHookStates = update("webhooks: change states", change{
		table:   "webhook_states",
		columns: list("webhook member seen armed idle_since idle_lsn idle_fired"), keys: 2,
	})
	removeHookStates = remove("webhooks: remove states", "webhook_states", "webhook", "member")
	removeStatesOf   = query("webhooks: remove all states", 0,
		`DELETE FROM webhook_states WHERE webhook = ?`)
	selectWatched = query("webhooks: find watched", 2,
		`SELECT t.webhook, t.member, NULL, t.seen, t.armed, t.idle_since, t.idle_lsn, t.idle_fired
  FROM {keys} k CROSS JOIN webhook_states t WHERE t.webhook = k.k1 AND t.member = k.k2`)
)

func readHook(r *record) facts.WebhookRow {
	return facts.WebhookRow{
		Key: facts.WebhookKey(r.uint()), Workspace: facts.WorkspaceKey(r.uint()),
		WorkspaceID: readstate.WorkspaceID(r.string()), ID: r.string(),
		Threshold: r.uint(), Idle: r.int(), CreatedAt: r.int(),
	}
}

func bindHookRow(args []any, h *facts.WebhookRow) []any {
	return append(args, number(h.Key), number(h.Workspace), []byte(h.ID), number(h.Threshold),
		h.Idle, h.CreatedAt)
}

func readHookState(r *record) facts.WebhookState {
	return facts.WebhookState{
		Webhook: facts.WebhookKey(r.uint()), Member: readstate.MemberKey(r.uint()),
		MemberID: readstate.MemberID(r.string()), Seen: r.bool(), Armed: r.bool(),
		IdleSince: r.int(), IdleLSN: readstate.LSN(r.uint()), IdleFired: r.bool(),
	}
}

func bindHookState(args []any, s *facts.WebhookState) []any {
	return append(args, number(s.Webhook), number(s.Member), flag(s.Seen), flag(s.Armed),
		s.IdleSince, number(s.IdleLSN), flag(s.IdleFired))
}

// watch is a member whom a webhook watches.
type watch struct {
	hook   facts.WebhookKey
	member readstate.MemberKey
}

func bindWatch(args []any, w watch) []any { return append(args, number(w.hook), number(w.member)) }

// PutWebhook implements facts.WebhookStore.
func (st *Store) PutWebhook(
	ctx context.Context, p facts.PutWebhook,
) (row facts.WebhookRow, err error) {
	err = st.inTx(ctx, "put webhook", func(t *tx) (bool, error) {
		if err := t.fenced(ctx, p.Row.Workspace, p.Term); err != nil {
			return false, err
		}
		h := p.Row
		if err := t.keyHook(ctx, &h, p); err != nil {
			return false, err
		}
		if err := execRows(ctx, t.session, upsertHooks, []facts.WebhookRow{h}, bindHookRow); err != nil {
			return false, err
		}
		if err := t.watch(ctx, h.Key, h.Members); err != nil {
			return false, err
		}
		err := t.putEndpoint(ctx, facts.EndpointChange{
			Recipient: h.Key.Recipient(), URL: h.Endpoint.URL, Secret: h.Endpoint.Secret, Now: p.Now,
		})
		if err != nil {
			return false, err
		}
		rows := []facts.WebhookRow{h}
		err = t.fillHooks(ctx, rows)
		row = rows[0]
		return true, err
	})
	return row, err
}

// keyHook finds the webhook's number, or gives it one.
func (t *tx) keyHook(ctx context.Context, h *facts.WebhookRow, p facts.PutWebhook) error {
	h.CreatedAt = p.Now
	found := false
	args := []any{number(h.Workspace), []byte(h.ID)}
	err := t.each(ctx, selectHookByID, 0, args, func(r *record) error {
		old := readHook(r)
		h.Key, h.CreatedAt, found = old.Key, old.CreatedAt, true
		return nil
	})
	if err != nil || found {
		return err
	}
	n := 0
	err = t.each(ctx, countHooks, 0, []any{number(h.Workspace)}, func(r *record) error {
		n = int(r.int())
		return nil
	})
	if err == nil && n >= p.Most {
		err = fmt.Errorf("%w: %d webhooks are too many", facts.ErrLimit, n+1)
	}
	if err != nil {
		return err
	}
	first, last := int64(h.Workspace)<<32, int64(h.Workspace+1)<<32
	return t.each(ctx, selectLastHook, 0, []any{first, last}, func(r *record) error {
		h.Key = facts.WebhookKey(max(r.int(), first) + 1)
		return nil
	})
}

// watch makes the members those whom a webhook watches, and keeps what it remembers of them.
func (t *tx) watch(
	ctx context.Context, hook facts.WebhookKey, members []facts.WebhookState,
) error {
	keep := make(map[readstate.MemberKey]struct{}, len(members))
	states := slices.Clone(members)
	for i := range states {
		keep[states[i].Member] = struct{}{}
		states[i] = facts.WebhookState{Webhook: hook, Member: states[i].Member}
	}
	var gone []watch
	err := eachKey(ctx, t.session, selectHookStates, []facts.WebhookKey{hook}, bindHook,
		func(r *record) error {
			s := readHookState(r)
			if _, ok := keep[s.Member]; !ok {
				gone = append(gone, watch{hook, s.Member})
			}
			return nil
		})
	if err != nil {
		return err
	}
	bind := func(args []any, w *watch) []any { return bindWatch(args, *w) }
	if err := execRows(ctx, t.session, removeHookStates, gone, bind); err != nil {
		return err
	}
	return execRows(ctx, t.session, insertHookStates, states, bindHookState)
}

// fillHooks adds members and endpoints to webhooks.
func (s *session) fillHooks(ctx context.Context, hooks []facts.WebhookRow) error {
	at := make(map[facts.WebhookKey]*facts.WebhookRow, len(hooks))
	var keys []facts.WebhookKey
	var recipients []facts.Recipient
	for i := range hooks {
		h := &hooks[i]
		h.Members = nil
		at[h.Key] = h
		keys, recipients = append(keys, h.Key), append(recipients, h.Key.Recipient())
	}
	err := eachKey(ctx, s, selectHookStates, keys, bindHook, func(r *record) error {
		state := readHookState(r)
		h := at[state.Webhook]
		h.Members = append(h.Members, state)
		return nil
	})
	if err != nil {
		return err
	}
	queues, err := s.queues(ctx, recipients)
	for r, q := range queues {
		h, _ := r.Webhook()
		at[h].Endpoint = q.EndpointRow
	}
	return err
}

// RemoveWebhook implements facts.WebhookStore.
func (st *Store) RemoveWebhook(
	ctx context.Context, term uint64, w facts.WorkspaceKey, id string,
) (found bool, err error) {
	err = st.inTx(ctx, "remove webhook", func(t *tx) (bool, error) {
		if err := t.fenced(ctx, w, term); err != nil {
			return false, err
		}
		var key facts.WebhookKey
		args := []any{number(w), []byte(id)}
		err := t.each(ctx, selectHookByID, 0, args, func(r *record) error {
			key, found = readHook(r).Key, true
			return nil
		})
		if err != nil || !found {
			return false, err
		}
		for _, st := range [...]*statement{removeHook, removeStatesOf} {
			if _, err := t.exec(ctx, st, 0, number(key)); err != nil {
				return false, err
			}
		}
		return true, t.forget(ctx, key.Recipient())
	})
	return found, err
}

// Webhooks implements facts.WebhookStore.
func (st *Store) Webhooks(
	ctx context.Context, w facts.WorkspaceKey, after facts.WebhookKey, limit int,
) (out []facts.WebhookRow, err error) {
	err = st.inView(ctx, "list webhooks", func(s *session) error {
		first, last := int64(after), int64(1)<<62
		if w != 0 {
			first, last = max(first, int64(w)<<32), int64(w+1)<<32
		}
		args := []any{first, last, bounded(limit)}
		err := s.each(ctx, selectHooks, 0, args, func(r *record) error {
			out = append(out, readHook(r))
			return nil
		})
		if err != nil {
			return err
		}
		return s.fillHooks(ctx, out)
	})
	return out, err
}

// SettleWebhooks implements facts.WebhookStore.
func (st *Store) SettleWebhooks(
	ctx context.Context, s facts.WebhookSettlement,
) (settled facts.EffectsSettled, err error) {
	err = st.inTx(ctx, "settle webhooks", func(t *tx) (bool, error) {
		stored, err := t.watched(ctx, s)
		if err != nil {
			return false, err
		}
		var states []facts.WebhookState
		changed := map[watch]struct{}{}
		for _, state := range s.States {
			key := watch{state.Webhook, state.Member}
			old, watched := stored[key]
			old.MemberID = state.MemberID
			if watched && old != state {
				states = append(states, state)
				changed[key] = struct{}{}
			}
		}
		var news []facts.WakeRow
		for _, f := range s.Firings {
			if _, ok := changed[watch{f.Webhook, f.Member}]; ok {
				news = append(news, facts.WakeRow{
					Recipient: f.Webhook.Recipient(), Kind: f.Kind, Event: uint64(f.LSN),
					Actor: f.Member, Amount: f.Amount, CreatedAt: s.Now,
				})
			}
		}
		if err := execRows(ctx, t.session, updateHookStates, states, bindHookState); err != nil {
			return false, err
		}
		return len(states) > 0, t.queue(ctx, news, s.Now, s.QueueLimit, &settled)
	})
	if err != nil {
		return facts.EffectsSettled{}, err
	}
	return settled, nil
}

// watched returns what is stored of a settlement's members whom their webhooks still watch, in
// workspaces that are still ours.
func (t *tx) watched(
	ctx context.Context, s facts.WebhookSettlement,
) (map[watch]facts.WebhookState, error) {
	var spaces []facts.WorkspaceKey
	var keys []watch
	for _, state := range s.States {
		spaces = append(spaces, state.Webhook.Recipient().Workspace())
		keys = append(keys, watch{state.Webhook, state.Member})
	}
	owners, err := t.ours(ctx, s.Terms, spaces)
	if err != nil {
		return nil, err
	}
	out := make(map[watch]facts.WebhookState, len(keys))
	err = eachKey(ctx, t.session, selectWatched, keys, bindWatch, func(r *record) error {
		state := readHookState(r)
		if _, ok := owners[state.Webhook.Recipient().Workspace()]; ok {
			out[watch{state.Webhook, state.Member}] = state
		}
		return nil
	})
	return out, err
}
