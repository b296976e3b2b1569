package histories

import (
	"errors"
	"fmt"

	"github.com/tidemark-im/tidemark/conformance"
	"github.com/tidemark-im/tidemark/internal/model"
)

// Types of operations that are called otherwise on the wire than by the oracle.
var types = map[model.Kind]string{
	model.OpRemove: "delete", model.OpReadAll: "readAll", model.OpActivityRead: "readActivity",
}

var kinds = func() map[string]model.Kind {
	out := map[string]model.Kind{}
	for k := model.OpCreate; k <= model.OpFork; k++ {
		out[typeOf(k)] = k
	}
	return out
}()

func typeOf(k model.Kind) string {
	if name := types[k]; name != "" {
		return name
	}
	return k.String()
}

// FromModel returns an operation of the oracle in the words of the cases.
func FromModel(op model.Op) conformance.HistoryOp {
	out := conformance.HistoryOp{Type: typeOf(op.Kind), Service: op.Service}
	scope(&out.Scope, op.Scope)
	if op.Kind == model.OpPost {
		member(&out.Author, op.Member)
		member(&out.NotifyPrincipal, op.Other)
	} else {
		member(&out.Member, op.Member)
		member(&out.Other, op.Other)
	}
	out.Mentions, out.Recipients = members(op.Mentions), members(op.Recipients)
	out.MentionsEveryone, out.Broadcast = op.Everyone, op.Broadcast
	out.Unreadable, out.Baseline, out.CountMoved = op.Unreadable, op.Baseline, op.Count
	out.ExpiresAt, out.FromRevision = int64(op.Expires), int64(op.From)
	out.LowSignal, out.Active, out.Thinking = op.LowSignal, op.Active, op.Thinking
	out.Seconds, out.Until = int64(op.Advance), int64(op.Until)
	scope(&out.To, op.To)
	for _, q := range op.Seqs {
		out.Seqs = append(out.Seqs, int64(q))
	}
	switch op.Kind {
	case model.OpCreate:
		out.Kind, out.RootSeq = op.Type.String(), int64(op.Seq)
		out.Parent, out.To = out.To, ""
		if op.Shared {
			out.History = "shared"
		}
	case model.OpPost:
		out.ObservedRevision = int64(op.Revision)
	case model.OpEdit, model.OpRemove:
		out.Seq = int64(op.Seq)
	case model.OpRewind, model.OpTrim:
		out.ThroughSeq = number(op.Seq)
	case model.OpJoin:
		out.EffectiveFrom, out.FromRevision = int64(op.From), 0
		if op.Revision > 0 {
			out.ReadRevision = number(op.Revision)
		}
	case model.OpRead:
		out.ReadRevision, out.ExpectedVersion = number(op.Revision), version(op.Version)
	case model.OpMarkUnread:
		out.ExpectedVersion = version(op.Version)
	case model.OpSetLevel:
		out.Notification = op.Level.String()
	case model.OpActivityRead:
		out.ActivityReadSeq = number(op.Activity)
	case model.OpReadAll:
		for _, it := range op.Items {
			out.Scopes = append(out.Scopes, conformance.HistoryRead{
				Scope: it.Scope.String(), ReadRevision: int64(it.Revision),
				ExpectedVersion: version(it.Version),
			})
		}
	}
	return out
}

func scope(to *string, id model.ScopeID) {
	if id != 0 {
		*to = id.String()
	}
}

func member(to *string, id model.MemberID) {
	if id != 0 {
		*to = id.String()
	}
}

func members(ids []model.MemberID) []string {
	var out []string
	for _, id := range ids {
		out = append(out, id.String())
	}
	return out
}

func number[N ~int64](n N) *int64 {
	v := int64(n)
	return &v
}

func version(v model.Version) *int64 {
	if v == model.NoVersion {
		return nil
	}
	return number(v)
}

// ToModel is the inverse of FromModel.
func ToModel(in *conformance.HistoryOp) (model.Op, error) {
	kind := kinds[in.Type]
	if kind == 0 {
		return model.Op{}, fmt.Errorf("no operation is called %q", in.Type)
	}
	r := &reader{}
	op := model.Op{
		Kind: kind, Scope: r.scope(in.Scope), To: r.scope(in.To), Service: in.Service,
		Member: r.member(in.Member + in.Author), Other: r.member(in.Other + in.NotifyPrincipal),
		Mentions: r.members(in.Mentions), Recipients: r.members(in.Recipients),
		Everyone: in.MentionsEveryone, Broadcast: in.Broadcast, Unreadable: in.Unreadable,
		Baseline: in.Baseline, Count: in.CountMoved, Expires: model.Seconds(in.ExpiresAt),
		From:      model.Revision(in.FromRevision + in.EffectiveFrom),
		LowSignal: in.LowSignal, Active: in.Active, Thinking: in.Thinking,
		Advance: model.Seconds(in.Seconds), Until: model.Seconds(in.Until),
		Seq:      model.Seq(in.Seq + in.RootSeq + value(in.ThroughSeq)),
		Revision: model.Revision(in.ObservedRevision + value(in.ReadRevision)),
		Activity: model.ActivitySeq(value(in.ActivityReadSeq)),
		Shared:   in.History == "shared",
	}
	for _, q := range in.Seqs {
		op.Seqs = append(op.Seqs, model.Seq(q))
	}
	if kind == model.OpCreate {
		op.To = r.scope(in.Parent)
		op.Type = r.kind(in.Kind)
	}
	if kind == model.OpRead || kind == model.OpMarkUnread {
		op.Version = expected(in.ExpectedVersion)
	}
	if kind == model.OpSetLevel {
		op.Level = r.level(in.Notification)
	}
	for _, it := range in.Scopes {
		op.Items = append(op.Items, model.ReadItem{
			Scope: r.scope(it.Scope), Revision: model.Revision(it.ReadRevision),
			Version: expected(it.ExpectedVersion),
		})
	}
	return op, r.err
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func expected(n *int64) model.Version {
	if n == nil {
		return model.NoVersion
	}
	return model.Version(*n)
}

// reader reads names by the grammar of the oracle's operations, and keeps the first error.
type reader struct{ err error }

func (r *reader) op(line string) model.Op {
	op, err := model.ParseOp(line)
	r.err = errors.Join(r.err, err)
	return op
}

func (r *reader) scope(name string) model.ScopeID {
	if name == "" {
		return 0
	}
	return r.op("archive " + name).Scope
}

func (r *reader) member(name string) model.MemberID {
	if name == "" {
		return 0
	}
	return r.op("leave s1 " + name).Member
}

func (r *reader) members(names []string) []model.MemberID {
	var out []model.MemberID
	for _, name := range names {
		out = append(out, r.member(name))
	}
	return out
}

func (r *reader) level(name string) model.Level { return r.op("level s1 A " + name).Level }

func (r *reader) kind(name string) model.ScopeKind {
	for k := model.Channel; k <= model.Session; k++ {
		if k.String() == name {
			return k
		}
	}
	r.err = errors.Join(r.err, fmt.Errorf("no kind of scope is called %q", name))
	return 0
}
