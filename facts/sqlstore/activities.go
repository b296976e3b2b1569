package sqlstore

import (
	"context"
	"slices"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

const activityColumns = `a.scope, a.seq, a.id, a.kind, a.high_signal, a.signal_rank, a.actor,
  a.actor_rank, a.recipients, a.activity_ref_type, a.activity_ref_id, a.subject, a.revision,
  a.op_actor, a.op_id, a.op_digest, a.created_at, a.payload`

var (
	selectActivitiesByOp = query("load activities by operation", 2,
		`SELECT `+activityColumns+` FROM {keys} k CROSS JOIN scope_activity_events a
  WHERE a.op_actor = k.k1 AND a.op_id = k.k2`)
	selectActivitiesAfter = query("list activities after", 0,
		`SELECT `+activityColumns+` FROM scope_activity_events a
  WHERE a.scope = ? AND a.seq > ? ORDER BY a.seq LIMIT ?`)
	selectActivitiesBefore = query("list activities before", 0,
		`SELECT `+activityColumns+` FROM scope_activity_events a
  WHERE a.scope = ? AND a.seq < ? ORDER BY a.seq DESC LIMIT ?`)
	selectTimelineAfter = query("list timeline after", 0,
		`SELECT `+activityColumns+` FROM scope_activity_events a {index scope_activity_events_of_task}
  WHERE a.scope = ? AND a.seq > ? AND a.activity_ref_type = 'task_event' ORDER BY a.seq LIMIT ?`)
	selectTimelineBefore = query("list timeline before", 0,
		`SELECT `+activityColumns+` FROM scope_activity_events a {index scope_activity_events_of_task}
  WHERE a.scope = ? AND a.seq < ? AND a.activity_ref_type = 'task_event'
  ORDER BY a.seq DESC LIMIT ?`)
	selectActivityPayloads = query("load activity payloads of an actor", 0,
		`SELECT a.scope, a.seq FROM scope_activity_events a {index scope_activity_events_with_payload}
  WHERE a.actor = ? AND a.payload IS NOT NULL ORDER BY a.scope, a.seq LIMIT ?`)

	// Every part is one seek, but for the deliveries, which are the member's own of the interval.
	selectActivityAt = query("seek activity ranks", 4, `SELECT
  (SELECT a.signal_rank FROM scope_activity_events a
    WHERE a.scope = k.k1 AND a.seq <= k.k4 AND a.signal_rank IS NOT NULL
    ORDER BY a.seq DESC LIMIT 1),
  (SELECT a.actor_rank FROM scope_activity_events a
    WHERE a.scope = k.k1 AND a.actor = k.k2 AND a.seq <= k.k4 AND a.actor_rank IS NOT NULL
    ORDER BY a.seq DESC LIMIT 1),
  (SELECT count(*) FROM activity_targets t WHERE t.scope = k.k1 AND t.member = k.k2
    AND t.activity_seq > k.k3 AND t.activity_seq <= k.k4)
  FROM {keys} k`)
	selectPairedActivity = query("seek paired activity", 0,
		`SELECT a.seq FROM scope_activity_events a {index scope_activity_events_by_revision}
  WHERE a.scope = ? AND a.revision <= ? AND a.revision IS NOT NULL
  ORDER BY a.revision DESC LIMIT 1`)

	insertActivities = insert("insert activities", insertion{
		table: "scope_activity_events",
		columns: list("scope seq id kind high_signal signal_rank actor actor_rank recipients " +
			"activity_ref_type activity_ref_id subject revision op_actor op_id op_digest " +
			"created_at payload"),
	})
	clearActivities = update("clear activities", change{
		table: "scope_activity_events", columns: list("scope seq payload"), keys: 2,
	})
	insertActivityTargets = insert("insert activity targets", insertion{
		table: "activity_targets", columns: list("scope member activity_seq actor"),
	})
)

func readActivity(r *record) (facts.ActivityRow, error) {
	var a facts.ActivityRow
	var err error
	a.Scope, a.Seq = readstate.ScopeKey(r.uint()), readstate.Seq(r.uint())
	a.ID, a.Type = r.string(), r.string()
	a.HighSignal, a.SignalRank = r.bool(), r.uint()
	a.Actor, a.ActorRank = readstate.MemberKey(r.uint()), r.uint()
	if a.Recipients, err = unpackMembers(a.Scope, r.bytes()); err != nil {
		return a, err
	}
	a.RefType, a.RefID = r.string(), r.string()
	a.Subject, a.Revision = readstate.MemberKey(r.uint()), readstate.Revision(r.uint())
	if r.null() {
		r.skip(3)
	} else {
		a.Op = facts.OpKey{
			Workspace: workspaceOf(a.Scope), Actor: readstate.MemberKey(r.uint()), ID: r.string(),
		}
		if a.OpDigest, err = digest(r.bytes()); err != nil {
			return a, err
		}
	}
	a.CreatedAt, a.Payload = r.int(), r.bytes()
	return a, nil
}

func appendActivity(out *[]facts.ActivityRow) func(r *record) error {
	return func(r *record) error {
		row, err := readActivity(r)
		*out = append(*out, row)
		return err
	}
}

func bindActivity(args []any, a *facts.ActivityRow) []any {
	args = append(args, number(a.Scope), number(a.Seq), id(a.ID), a.Type, flag(a.HighSignal),
		positive(a.SignalRank), number(a.Actor), positive(a.ActorRank),
		packMembers(a.Scope, a.Recipients), text(a.RefType), optional(a.RefID),
		positive(a.Subject), positive(a.Revision))
	if a.Op.Actor == 0 {
		args = append(args, nil, nil, nil)
	} else {
		args = append(args, number(a.Op.Actor), id(a.Op.ID), a.OpDigest[:])
	}
	return append(args, number(a.CreatedAt), blob(a.Payload))
}

func bindCleared(args []any, p *facts.ActivityPlace) []any {
	return append(args, number(p.Scope), number(p.Seq), nil)
}

func bindActivityTarget(args []any, t *facts.ActivityTargetRow) []any {
	return append(args, number(t.Scope), number(t.Member), number(t.Seq), number(t.Actor))
}

// ActivitiesByOp implements facts.Tx.
func (s *session) ActivitiesByOp(
	ctx context.Context, keys []facts.OpKey,
) ([]facts.ActivityRow, error) {
	bind := func(args []any, k facts.OpKey) []any { return append(args, number(k.Actor), id(k.ID)) }
	var out []facts.ActivityRow
	err := eachKey(ctx, s, selectActivitiesByOp, keys, bind, appendActivity(&out))
	return out, err
}

// ActivityPayloads implements facts.Tx.
func (s *session) ActivityPayloads(
	ctx context.Context, actor readstate.MemberKey, limit int,
) ([]facts.ActivityPlace, error) {
	var out []facts.ActivityPlace
	args := []any{number(actor), bounded(limit)}
	err := s.each(ctx, selectActivityPayloads, 0, args, func(r *record) error {
		out = append(out, facts.ActivityPlace{
			Scope: readstate.ScopeKey(r.uint()), Seq: readstate.Seq(r.uint()),
		})
		return nil
	})
	return out, err
}

// Activities implements facts.View. It answers ascending, also where the newest are chosen.
func (s *session) Activities(
	ctx context.Context, q facts.ActivityQuery,
) ([]facts.ActivityRow, error) {
	after, before := selectActivitiesAfter, selectActivitiesBefore
	if q.Timeline {
		after, before = selectTimelineAfter, selectTimelineBefore
	}
	var out []facts.ActivityRow
	if q.After > 0 {
		args := []any{number(q.Scope), number(q.After), bounded(q.Limit)}
		err := s.each(ctx, after, 0, args, appendActivity(&out))
		return out, err
	}
	end := q.Before
	if end == 0 {
		end = readstate.MaxCounter + 1
	}
	args := []any{number(q.Scope), number(end), bounded(q.Limit)}
	err := s.each(ctx, before, 0, args, appendActivity(&out))
	slices.Reverse(out)
	return out, err
}

// ActivityAt implements facts.Seeker.
func (s *session) ActivityAt(
	ctx context.Context, key facts.RowKey, low, high readstate.Seq,
) (c readstate.ActivityCrossed, err error) {
	args := []any{number(key.Scope), number(key.Member), number(low), number(high)}
	err = s.each(ctx, selectActivityAt, 1, args, func(r *record) error {
		c = readstate.ActivityCrossed{Signal: r.uint(), Actor: r.uint(), Targets: r.uint()}
		return nil
	})
	return c, err
}

// PairedActivity implements facts.Seeker.
func (s *session) PairedActivity(
	ctx context.Context, scope readstate.ScopeKey, revision readstate.Revision,
) (seq readstate.Seq, err error) {
	args := []any{number(scope), number(revision)}
	err = s.each(ctx, selectPairedActivity, 0, args, func(r *record) error {
		seq = readstate.Seq(r.uint())
		return nil
	})
	return seq, err
}
