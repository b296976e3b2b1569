package sqlstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

var _ facts.OutboxStore = (*Store)(nil)

// What the outbox's transactions have in common.
var (
	// The term is read, not written: where others may write meanwhile, the row is held.
	selectOwners = query("outbox: load owners", 1,
		`SELECT w.workspace, w.id, w.term FROM {keys} k CROSS JOIN workspaces w
  WHERE w.workspace = k.k1 {lock w}`)

	releaseEffects = query("outbox: release rows", 0,
		`UPDATE outbox_state AS s {index outbox_state_leased} SET due_at = ?, lease = 0
  WHERE s.workspace = ? AND s.state = 1 AND s.term < ?`)
	releaseWakes = query("outbox: release queues", 0,
		`UPDATE wake_endpoints AS e {index wake_endpoints_leased} SET due_at = ?, lease = 0
  WHERE e.recipient > ? AND e.recipient < ? AND e.lease <> 0 AND e.term < ?`)
	selectLeasedEffects = query("outbox: find leased rows", 0,
		`SELECT DISTINCT s.workspace FROM outbox_state s {index outbox_state_leased}
  WHERE s.workspace > 0 AND s.state = 1`)
	selectLeasedQueues = query("outbox: find leased queues", 0,
		`SELECT e.recipient FROM wake_endpoints e {index wake_endpoints_leased}
  WHERE e.recipient > ? AND e.lease <> 0`)
)

// belowAll is a number below every recipient's.
const belowAll = int64(-1) << 62

// owner is a workspace as the outbox's transactions know it.
type owner struct {
	id   readstate.WorkspaceID
	term uint64
}

// ours returns those of the workspaces that the caller still owns.
func (s *session) ours(
	ctx context.Context, terms facts.TermOf, keys []facts.WorkspaceKey,
) (map[facts.WorkspaceKey]owner, error) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	out := make(map[facts.WorkspaceKey]owner, len(keys))
	err := eachKey(ctx, s, selectOwners, keys, bindNumber, func(r *record) error {
		key := facts.WorkspaceKey(r.uint())
		o := owner{id: readstate.WorkspaceID(r.string()), term: r.uint()}
		if term, owned := terms(key); owned && term == o.term {
			out[key] = o
		}
		return nil
	})
	return out, err
}

// fenced refuses what concerns a workspace that somebody else owns.
func (s *session) fenced(ctx context.Context, key facts.WorkspaceKey, term uint64) error {
	one := func(facts.WorkspaceKey) (uint64, bool) { return term, true }
	found, err := s.ours(ctx, one, []facts.WorkspaceKey{key})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("workspace %d: %w", key, facts.ErrNotOwner)
	}
	return err
}

// inTx runs f in a writing transaction of its own. One that has changed nothing costs no commit.
func (st *Store) inTx(
	ctx context.Context, what string, f func(t *tx) (changed bool, err error),
) error {
	t, err := st.begin(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer t.Rollback()
	changed, err := f(t)
	if err == nil && changed {
		err = t.Commit(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// inView runs f in a read transaction of its own.
func (st *Store) inView(ctx context.Context, what string, f func(s *session) error) error {
	v, err := st.View(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	err = f(v.(*view).session)
	if closed := v.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// ReleaseLeases implements facts.OutboxStore.
func (st *Store) ReleaseLeases(
	ctx context.Context, terms facts.TermOf, now int64,
) (released int, err error) {
	err = st.inTx(ctx, "release leases", func(t *tx) (bool, error) {
		var held []facts.WorkspaceKey
		err := t.each(ctx, selectLeasedEffects, 0, nil, func(r *record) error {
			held = append(held, facts.WorkspaceKey(r.uint()))
			return nil
		})
		if err != nil {
			return false, err
		}
		err = t.each(ctx, selectLeasedQueues, 0, []any{belowAll}, func(r *record) error {
			held = append(held, facts.Recipient(r.int()).Workspace())
			return nil
		})
		if err != nil {
			return false, err
		}
		owners, err := t.ours(ctx, terms, held)
		if err != nil {
			return false, err
		}
		for key, o := range owners {
			n, err := t.release(ctx, key, o.term, now)
			if err != nil {
				return false, err
			}
			released += n
		}
		return released > 0, nil
	})
	return released, err
}

// release frees the leases of one workspace that are of earlier terms.
func (t *tx) release(
	ctx context.Context, key facts.WorkspaceKey, term uint64, now int64,
) (int, error) {
	rows, err := t.exec(ctx, releaseEffects, 0, now, number(key), number(term))
	if err != nil {
		return 0, err
	}
	first, last := int64(key)<<32, int64(key+1)<<32
	agents, err := t.exec(ctx, releaseWakes, 0, now, first, last, number(term))
	if err != nil {
		return 0, err
	}
	hooks, err := t.exec(ctx, releaseWakes, 0, now, -last, -first, number(term))
	return int(rows + agents + hooks), err
}

// packed reads a list of members of the scope's workspace that was written by packMembers.
func packed(r *record, scope readstate.ScopeKey) ([]readstate.MemberKey, error) {
	return unpackMembers(scope, r.bytes())
}
