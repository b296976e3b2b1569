package readstate_test

import (
	"math/rand/v2"

	"github.com/tidemark-im/tidemark/internal/model"
)

// randomOps draws a history for a seed. Every second one is seasoned.
func randomOps(seed, stream uint64, steps int, mix model.Mix) []model.Op {
	rng := rand.New(rand.NewPCG(seed, stream))
	ops := model.RandomOps(rng, steps, mix)
	if seed%2 == 1 {
		return season(rng, ops, len(model.Setup(mix)))
	}
	return ops
}

// season makes a history denser after its first operations: more of it happens in one channel
// and one task, with principals, blocks, activities and partial reads, which plain histories
// spread so thin that they hardly meet. What then makes no sense is refused.
func season(rng *rand.Rand, ops []model.Op, first int) []model.Op {
	once := func(in int) bool { return rng.IntN(in) == 0 }
	anybody := func() model.MemberID { return model.MemberID(rng.IntN(5) + 1) }
	out := append([]model.Op(nil), ops[:first]...)
	for _, op := range ops[first:] {
		switch op.Kind {
		case model.OpPost:
			if once(3) {
				op.Other = anybody()
			}
			if op.Scope <= 3 && once(2) {
				op.Scope = 1
			}
		case model.OpActivity, model.OpActivityRead:
			if len(op.Recipients) == 0 && once(2) {
				op.Scope = 1
			}
		}
		out = append(out, op)
		if op.Kind != model.OpPost {
			continue
		}
		if once(3) {
			out = append(out, activityOp(rng, anybody))
		}
		if once(6) {
			out = append(out, model.Op{Kind: model.OpBlock, Member: anybody(), Other: anybody()})
		}
		if once(6) {
			out = append(out, model.Op{
				Kind: model.OpActivityRead, Scope: model.ScopeID(1 + 7*rng.IntN(2)), Member: anybody(),
				Activity: model.ActivitySeq(rng.IntN(8)), Service: true,
			})
		}
		if once(16) {
			out = append(out, model.Op{Kind: model.OpTrim, Scope: 1, Seq: model.Seq(rng.IntN(9))})
		}
		if once(4) {
			out = append(out, model.Op{
				Kind: model.OpRead, Scope: 1, Member: anybody(), Service: true, Version: model.NoVersion,
				Revision: model.Revision(rng.IntN(12)),
			})
		}
	}
	return out
}

func activityOp(rng *rand.Rand, anybody func() model.MemberID) model.Op {
	op := model.Op{Kind: model.OpActivity, Scope: 1, Member: anybody(), LowSignal: rng.IntN(5) == 0}
	if rng.IntN(2) == 0 {
		op.Scope = 8
		op.Recipients = []model.MemberID{anybody(), anybody()}
	}
	return op
}
