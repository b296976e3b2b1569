package factstest

import (
	"context"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/internal/model"
)

// session runs what only sessions have.
func (d *Driver) session(ctx context.Context, op model.Op, accepted bool) error {
	info, ok := d.World.Scope(op.Scope)
	if !ok {
		return facts.ErrNotFound
	}
	owner, id := Member(info.Owner), op.Scope.String()
	var err error
	switch op.Kind {
	case model.OpRunState:
		_, err = d.do.PutSession(ctx, facts.PutSession{
			Owner: owner, ID: id, Active: &op.Active, Thinking: &op.Thinking,
		})
	case model.OpMerge:
		_, err = d.do.MergeSession(ctx, facts.MergeSession{
			Owner: owner, From: id, Into: op.To.String(), OpID: d.opID(),
		})
	default:
		_, err = d.do.ForkSession(ctx, facts.ForkSession{
			Owner: owner, From: id, To: op.To.String(), OpID: d.opID(),
		})
	}
	if err != nil || !accepted || op.Kind == model.OpRunState {
		return err
	}
	return d.learn(ctx, op.To)
}

// learn asks for the ids of entries that came as copies.
func (d *Driver) learn(ctx context.Context, s model.ScopeID) error {
	info, _ := d.World.Scope(s)
	live, err := d.do.Newest(ctx, d.Scope(s), int(info.LatestSeq))
	if err != nil {
		return err
	}
	for seq := model.Seq(1); seq <= info.LatestSeq; seq++ {
		if _, known := d.ids[place{s, seq}]; !known {
			d.unnamed[place{s, seq}] = true
		}
	}
	for _, m := range live {
		at := place{s, model.Seq(m.Seq)}
		d.ids[at] = m.ID
		delete(d.unnamed, at)
	}
	return nil
}
