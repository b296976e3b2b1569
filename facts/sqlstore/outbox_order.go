package sqlstore

import (
	"context"
	"maps"
	"slices"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// hold puts rows off whose agents still wait for an earlier one that is not in the batch.
func (c *effectClaim) hold(ctx context.Context) error {
	holders, err := c.holders(ctx)
	if err != nil || len(holders) == 0 {
		return err
	}
	c.states = c.states[:0]
	c.batch.Effects = slices.DeleteFunc(c.batch.Effects, func(e facts.Effect) bool {
		held := slices.ContainsFunc(e.Agents, func(m readstate.MemberKey) bool {
			holder, ok := holders[m]
			return ok && holder < e.Key
		})
		if !held {
			return false
		}
		// Whoever is behind holds up those behind it, also within the batch.
		for _, m := range e.Agents {
			if holder, ok := holders[m]; !ok || e.Key < holder {
				holders[m] = e.Key
			}
		}
		c.states = append(c.states, c.row(&e, facts.EffectBehind, c.Now+c.BehindFor))
		c.waits = waitsOf(c.waits, &e.OutboxRow)
		return true
	})
	if err := execRows(ctx, c.session, upsertEffects, c.states, bindEffect); err != nil {
		return err
	}
	return execRows(ctx, c.session, insertWaits, c.waits, bindWait)
}

// holders returns for the batch's agents the first unfinished row that is not in the batch.
func (c *effectClaim) holders(
	ctx context.Context,
) (map[readstate.MemberKey]facts.EventKey, error) {
	agents := map[readstate.MemberKey]struct{}{}
	spaces := map[facts.WorkspaceKey]struct{}{}
	for i := range c.batch.Effects {
		for _, m := range c.batch.Effects[i].Agents {
			agents[m] = struct{}{}
			spaces[c.batch.Effects[i].Workspace] = struct{}{}
		}
	}
	out := map[readstate.MemberKey]facts.EventKey{}
	note := func(m readstate.MemberKey, event facts.EventKey) {
		if holder, ok := out[m]; !ok || event < holder {
			out[m] = event
		}
	}
	token := number(c.Lease.Token)
	keys := slices.Sorted(maps.Keys(agents))
	err := eachKey(ctx, c.session, selectHolders, keys, bindNumber, func(r *record) error {
		m := readstate.MemberKey(r.uint())
		if !r.null() {
			note(m, facts.EventKey(r.uint()))
		}
		return nil
	}, token)
	if err != nil {
		return nil, err
	}
	for key := range spaces {
		err := c.each(ctx, selectTaken, 0, []any{number(key), token}, func(r *record) error {
			row, err := readOutbox(r)
			for _, m := range row.Agents {
				if _, ok := agents[m]; ok {
					note(m, row.Key)
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
