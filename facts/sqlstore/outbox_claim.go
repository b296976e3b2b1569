package sqlstore

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

const outboxColumns = `o.workspace, o.event, o.version, o.kind, o.scope, o.seq, o.id, o.actor,
  o.humans, o.agents, o.created_at`

var (
	selectFreshSpaces = query("outbox: find fresh rows", 0,
		`SELECT w.workspace FROM workspaces w
  WHERE EXISTS (SELECT 1 FROM outbox o WHERE o.workspace = w.workspace AND o.event > coalesce(
    (SELECT p.through FROM outbox_progress p WHERE p.workspace = w.workspace), 0))
  ORDER BY w.workspace`)
	selectFreshRows = query("outbox: load fresh rows", 0,
		`SELECT `+outboxColumns+` FROM outbox o WHERE o.workspace = ? AND o.event > coalesce(
    (SELECT p.through FROM outbox_progress p WHERE p.workspace = ?), 0)
  ORDER BY o.event LIMIT ?`)
	selectDueEffects = query("outbox: find due rows", 0,
		`SELECT s.workspace, s.event FROM outbox_state s WHERE s.due_at <= ?
  ORDER BY s.due_at, s.workspace, s.event LIMIT ? OFFSET ?`)
	selectNextEffect = query("outbox: find the next due row", 0,
		`SELECT min(s.due_at) FROM outbox_state s WHERE s.due_at > ?`)
	selectEffects = query("outbox: load rows", 2,
		`SELECT `+outboxColumns+`, s.failures, s.deferrals FROM {keys} k
  CROSS JOIN outbox_state s CROSS JOIN outbox o
  WHERE s.workspace = k.k1 AND s.event = k.k2 AND o.workspace = s.workspace
    AND o.event = s.event`)
	// Rows that somebody else is at work on for the first time are in no list of waits.
	selectTaken = query("outbox: load leased rows", 0,
		`SELECT `+outboxColumns+` FROM outbox_state s {index outbox_state_leased}
  CROSS JOIN outbox o
  WHERE s.workspace = ? AND s.state = 1 AND s.lease <> ? AND o.workspace = s.workspace
    AND o.event = s.event`)
	// The first row that an agent waits for and that is not of the present claim.
	selectHolders = query("outbox: find holders", 1,
		`WITH agents AS (SELECT k.k1 AS member FROM {keys} k WHERE k.k1 IS NOT NULL)
  SELECT a.member, (SELECT w.event FROM outbox_waits w
    WHERE w.member = a.member AND NOT EXISTS (SELECT 1 FROM outbox_state s
      WHERE s.workspace = a.member >> 32 AND s.event = w.event AND s.lease = ?)
    ORDER BY w.event LIMIT 1)
  FROM agents a`)

	upsertProgress = insert("outbox: write progress", insertion{
		table: "outbox_progress", columns: list("workspace through"), keys: 1,
		update: list("through"),
	})
	upsertEffects = insert("outbox: write states", insertion{
		table: "outbox_state",
		columns: list("workspace event state due_at lease term owner failures deferrals error " +
			"created_at settled_at"),
		keys:   2,
		update: list("state due_at lease term owner failures deferrals error settled_at"),
	})
	removeEffects = remove("outbox: remove states", "outbox_state", "workspace", "event")
	insertWaits   = insert("outbox: write waits", insertion{
		table: "outbox_waits", columns: list("member event"), keys: 2, ignore: true,
	})
	removeWaits = remove("outbox: remove waits", "outbox_waits", "member", "event")
)

// effectKey names a row of outbox.
type effectKey struct {
	workspace facts.WorkspaceKey
	event     facts.EventKey
}

func keyOf(r *facts.OutboxRow) effectKey { return effectKey{r.Workspace, r.Key} }

func bindEffectKey(args []any, k effectKey) []any {
	return append(args, number(k.workspace), number(k.event))
}

// effectRow is one row of outbox_state.
type effectRow struct {
	effectKey
	state     facts.EffectState
	dueAt     int64
	lease     uint64
	term      uint64
	owner     string
	failures  int
	deferrals int
	err       string
	createdAt int64
	settledAt int64
}

func bindEffect(args []any, e *effectRow) []any {
	return append(args, number(e.workspace), number(e.event), number(e.state), positive(e.dueAt),
		number(e.lease), number(e.term), e.owner, int64(e.failures), int64(e.deferrals), e.err,
		e.createdAt, positive(e.settledAt))
}

// wait is one row of outbox_waits.
type wait struct {
	member readstate.MemberKey
	event  facts.EventKey
}

func bindWait(args []any, w *wait) []any { return append(args, number(w.member), number(w.event)) }

// waitsOf are the waits of a row's agents.
func waitsOf(waits []wait, row *facts.OutboxRow) []wait {
	for _, m := range row.Agents {
		waits = append(waits, wait{m, row.Key})
	}
	return waits
}

func readOutbox(r *record) (row facts.OutboxRow, err error) {
	row = facts.OutboxRow{
		Workspace: facts.WorkspaceKey(r.uint()), Key: facts.EventKey(r.uint()),
		Version: uint8(r.uint()), Kind: facts.EffectKind(r.uint()),
		Scope: readstate.ScopeKey(r.uint()), Seq: readstate.Seq(r.uint()), ID: r.string(),
		Actor: readstate.MemberKey(r.uint()),
	}
	if row.Humans, err = packed(r, row.Scope); err != nil {
		return row, err
	}
	if row.Agents, err = packed(r, row.Scope); err != nil {
		return row, err
	}
	row.CreatedAt = r.int()
	return row, nil
}

// FreshEffects implements facts.EffectStore.
func (st *Store) FreshEffects(ctx context.Context) (out []facts.WorkspaceKey, err error) {
	err = st.inView(ctx, "fresh outbox rows", func(s *session) error {
		return s.each(ctx, selectFreshSpaces, 0, nil, func(r *record) error {
			out = append(out, facts.WorkspaceKey(r.uint()))
			return nil
		})
	})
	return out, err
}

// ClaimEffects implements facts.EffectStore.
func (st *Store) ClaimEffects(
	ctx context.Context, c facts.EffectClaim,
) (batch facts.EffectBatch, err error) {
	err = st.inTx(ctx, "claim outbox rows", func(t *tx) (bool, error) {
		cl := &effectClaim{tx: t, EffectClaim: c}
		if err := cl.run(ctx); err != nil {
			return false, err
		}
		batch = cl.batch
		return cl.changed, nil
	})
	if err != nil {
		return facts.EffectBatch{}, err
	}
	return batch, nil
}

// effectClaim is one claim under way.
type effectClaim struct {
	*tx
	facts.EffectClaim
	batch      facts.EffectBatch
	owners     map[facts.WorkspaceKey]owner
	recipients int
	changed    bool
	states     []effectRow
	waits      []wait
}

func (c *effectClaim) run(ctx context.Context) error {
	if err := c.due(ctx); err != nil {
		return err
	}
	if err := c.fresh(ctx); err != nil {
		return err
	}
	err := c.each(ctx, selectNextEffect, 0, []any{c.Now}, func(r *record) error {
		c.batch.NextDue = r.int()
		return nil
	})
	if err != nil || len(c.batch.Effects) == 0 {
		return err
	}
	slices.SortFunc(c.batch.Effects, func(a, b facts.Effect) int {
		return cmp.Or(cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Key, b.Key))
	})
	// All are leased first: then whoever is looked for among the waits is somebody else's.
	for i := range c.batch.Effects {
		e := &c.batch.Effects[i]
		c.states = append(c.states, c.row(e, facts.EffectLeased, c.Lease.Until))
	}
	if err := execRows(ctx, c.session, upsertEffects, c.states, bindEffect); err != nil {
		return err
	}
	c.changed = true
	return c.hold(ctx)
}

func (c *effectClaim) row(e *facts.Effect, state facts.EffectState, due int64) effectRow {
	row := effectRow{
		effectKey: keyOf(&e.OutboxRow), state: state, dueAt: due, failures: e.Failures,
		deferrals: e.Deferrals, createdAt: e.CreatedAt, term: c.owners[e.Workspace].term,
	}
	if state == facts.EffectLeased {
		row.lease, row.owner = c.Lease.Token, c.Lease.Owner
	}
	return row
}

// room says how many more rows the batch takes.
func (c *effectClaim) room() int {
	if c.recipients >= c.Recipients {
		return 0
	}
	return c.Rows - len(c.batch.Effects)
}

// add puts a row into the batch; false when it is full.
func (c *effectClaim) add(e facts.Effect) bool {
	n := len(e.Humans) + len(e.Agents)
	if len(c.batch.Effects) > 0 && c.recipients+n > c.Recipients {
		return false
	}
	c.recipients += n
	c.batch.Effects = append(c.batch.Effects, e)
	return true
}

// dueLooks bounds how often a claim looks further when what is due belongs to others.
const dueLooks = 8

// due takes the rows that were put off and whose time has come, and those of leases that ran out.
func (c *effectClaim) due(ctx context.Context) error {
	c.owners = map[facts.WorkspaceKey]owner{}
	for look := range dueLooks {
		var keys []effectKey
		args := []any{c.Now, bounded(c.Rows), bounded(look * c.Rows)}
		err := c.each(ctx, selectDueEffects, 0, args, func(r *record) error {
			keys = append(keys, effectKey{facts.WorkspaceKey(r.uint()), facts.EventKey(r.uint())})
			return nil
		})
		if err != nil || len(keys) == 0 {
			return err
		}
		full := len(keys) == c.Rows
		if keys, err = c.owned(ctx, keys); err != nil {
			return err
		}
		if err := c.load(ctx, keys); err != nil {
			return err
		}
		if !full || len(c.batch.Effects) > 0 {
			return nil
		}
	}
	return nil
}

// owned leaves out the rows of workspaces that are somebody else's.
func (c *effectClaim) owned(ctx context.Context, keys []effectKey) ([]effectKey, error) {
	var spaces []facts.WorkspaceKey
	for _, k := range keys {
		spaces = append(spaces, k.workspace)
	}
	if err := c.own(ctx, spaces); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(keys, func(k effectKey) bool {
		_, ok := c.owners[k.workspace]
		return !ok
	}), nil
}

func (c *effectClaim) own(ctx context.Context, spaces []facts.WorkspaceKey) error {
	found, err := c.ours(ctx, c.Terms, spaces)
	maps.Copy(c.owners, found)
	return err
}

// load adds known rows to the batch. A state whose row is gone has nothing to wait for.
func (c *effectClaim) load(ctx context.Context, keys []effectKey) error {
	gone := make(map[effectKey]struct{}, len(keys))
	for _, k := range keys {
		gone[k] = struct{}{}
	}
	err := eachKey(ctx, c.session, selectEffects, keys, bindEffectKey, func(r *record) error {
		row, err := readOutbox(r)
		if err != nil {
			return err
		}
		delete(gone, keyOf(&row))
		c.add(facts.Effect{
			OutboxRow: row, WorkspaceID: c.owners[row.Workspace].id, Failures: int(r.int()),
			Deferrals: int(r.int()), Waited: true,
		})
		return nil
	})
	if err != nil || len(gone) == 0 {
		return err
	}
	c.changed = true
	bind := func(args []any, k *effectKey) []any { return bindEffectKey(args, *k) }
	return execRows(ctx, c.session, removeEffects, slices.Collect(maps.Keys(gone)), bind)
}

// fresh takes rows that nobody has looked at, some from each workspace.
func (c *effectClaim) fresh(ctx context.Context) error {
	if err := c.own(ctx, c.Fresh); err != nil {
		return err
	}
	type progress struct {
		workspace facts.WorkspaceKey
		through   facts.EventKey
	}
	var moved []progress
	for _, key := range c.Fresh {
		o, owned := c.owners[key]
		if !owned {
			continue
		}
		n := min(c.FreshRows, c.room())
		if n <= 0 {
			c.batch.Left = append(c.batch.Left, key)
			continue
		}
		var rows []facts.OutboxRow
		args := []any{number(key), number(key), bounded(n)}
		err := c.each(ctx, selectFreshRows, 0, args, func(r *record) error {
			row, err := readOutbox(r)
			rows = append(rows, row)
			return err
		})
		if err != nil {
			return err
		}
		taken := 0
		for _, row := range rows {
			if !c.add(facts.Effect{OutboxRow: row, WorkspaceID: o.id}) {
				break
			}
			taken++
		}
		if taken > 0 {
			moved = append(moved, progress{key, rows[taken-1].Key})
		}
		if taken < len(rows) || len(rows) == n {
			c.batch.Left = append(c.batch.Left, key)
		}
	}
	bind := func(args []any, p *progress) []any {
		return append(args, number(p.workspace), number(p.through))
	}
	return execRows(ctx, c.session, upsertProgress, moved, bind)
}
