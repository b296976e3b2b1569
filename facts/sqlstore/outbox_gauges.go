package sqlstore

import (
	"context"

	"github.com/tidemark-im/tidemark/facts"
)

const surveyedQueues = `count(CASE WHEN waiting > 0 THEN 1 END), count(url),
    count(CASE WHEN disabled <> 0 THEN 1 END) FROM (
  SELECT e.waiting, e.url, e.disabled FROM wake_endpoints e
  WHERE e.recipient > ? LIMIT ?) f`

// The survey counts rows up to a bound, so that it stays short however much there is.
var (
	surveyFresh = query("outbox: survey fresh rows", 0,
		`SELECT count(*), coalesce(min(created_at), 0) FROM (
  SELECT o.created_at FROM workspaces w CROSS JOIN outbox o
  WHERE o.workspace = w.workspace AND o.event > coalesce(
    (SELECT p.through FROM outbox_progress p WHERE p.workspace = w.workspace), 0) LIMIT ?) f`)
	surveyStates = query("outbox: survey states", 0,
		`SELECT state, count(*), min(created_at) FROM (
  SELECT s.state, s.created_at FROM outbox_state s {index outbox_state_due}
  WHERE s.due_at > 0 LIMIT ?) f GROUP BY state`)
	surveyLetters = query("outbox: survey letters", 0,
		`SELECT count(*) FROM (SELECT d.letter FROM dead_letters d {index dead_letters_by_workspace}
  WHERE d.workspace > 0 LIMIT ?) f`)
	surveyQueues = query("wakes: survey queues", 0,
		`SELECT coalesce(sum(waiting), 0), `+surveyedQueues)
)

// OutboxGauges implements facts.OutboxStore.
func (st *Store) OutboxGauges(
	ctx context.Context, _ int64,
) (g facts.OutboxGauges, err error) {
	older := func(at int64) {
		if at > 0 && (g.OldestAt == 0 || at < g.OldestAt) {
			g.OldestAt = at
		}
	}
	bound := any(int64(facts.GaugeBound))
	err = st.inView(ctx, "outbox gauges", func(s *session) error {
		err := s.each(ctx, surveyFresh, 0, []any{bound}, func(r *record) error {
			g.Fresh = int(r.int())
			older(r.int())
			return nil
		})
		if err != nil {
			return err
		}
		err = s.each(ctx, surveyStates, 0, []any{bound}, func(r *record) error {
			state, n := facts.EffectState(r.uint()), int(r.int())
			older(r.int())
			switch state {
			case facts.EffectLeased:
				g.Leased = n
			case facts.EffectDeferred:
				g.Deferred = n
			case facts.EffectFailed:
				g.Failed = n
			case facts.EffectBehind:
				g.Behind = n
			}
			return nil
		})
		if err != nil {
			return err
		}
		err = s.each(ctx, surveyLetters, 0, []any{bound}, func(r *record) error {
			g.Dead = int(r.int())
			return nil
		})
		if err != nil {
			return err
		}
		return s.each(ctx, surveyQueues, 0, []any{belowAll, bound}, func(r *record) error {
			g.Waiting, g.Queues = int(r.int()), int(r.int())
			g.Endpoints, g.Disabled = int(r.int()), int(r.int())
			return nil
		})
	})
	return g, err
}
