package histories

import (
	"errors"
	"fmt"

	"github.com/tidemark-im/tidemark/conformance"
	"github.com/tidemark-im/tidemark/internal/model"
)

// Oracle counts by looking at everything there ever was. It implements conformance.Counter.
type Oracle struct{ World *model.World }

// NewOracle returns one that nothing has happened to.
func NewOracle() *Oracle { return &Oracle{model.New()} }

// codes are what refusals are called on the wire, in the order in which they are looked for.
var codes = []struct {
	err  error
	code string
}{
	{model.ErrInvalid, "invalid_request"},
	{model.ErrNotFound, "not_found"},
	{model.ErrFuture, "revision_in_future"},
	{model.ErrConflict, "version_conflict"},
	{model.ErrForbidden, "forbidden"},
	{model.ErrMismatch, "operation_mismatch"},
	{model.ErrReplaced, "scope_replaced"},
}

// Refusal returns the oracle's error for a code, nil for an unknown one.
func Refusal(code string) error {
	for _, c := range codes {
		if c.code == code {
			return c.err
		}
	}
	return nil
}

// Answered returns what an operation came to in the words of the cases.
func Answered(changed bool, err error) (conformance.HistoryAnswer, error) {
	switch {
	case err == nil && changed:
		return conformance.HistoryAnswer{Result: "applied"}, nil
	case err == nil:
		return conformance.HistoryAnswer{Result: "unchanged"}, nil
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return conformance.HistoryAnswer{Result: "refused", Code: c.code}, nil
		}
	}
	return conformance.HistoryAnswer{}, fmt.Errorf("no code for %w", err)
}

// Apply implements conformance.Counter.
func (o *Oracle) Apply(
	in *conformance.HistoryOp, _ *conformance.HistoryAnswer,
) (conformance.HistoryAnswer, error) {
	op, err := ToModel(in)
	if err != nil {
		return conformance.HistoryAnswer{}, err
	}
	out, refused := o.World.Apply(op)
	answer, err := Answered(out.Changed, refused)
	if err != nil {
		return answer, err
	}
	if op.Kind == model.OpPost {
		answer.Seq, answer.ContentRevision = int64(out.Seq), int64(out.Revision)
	}
	for _, it := range out.Items {
		one, err := Answered(it.Changed, it.Err)
		if err != nil {
			return answer, err
		}
		answer.Items = append(answer.Items, one)
	}
	return answer, nil
}

// Rows implements conformance.Counter.
func (o *Oracle) Rows() ([]conformance.Row, error) {
	var out []conformance.Row
	for _, m := range o.World.MemberIDs() {
		for _, s := range o.World.ScopeIDs() {
			if v := o.World.Values(m, s); v.Exists {
				out = append(out, newRow(m, s, v))
			}
		}
	}
	return out, nil
}

func newRow(m model.MemberID, s model.ScopeID, v model.Values) conformance.Row {
	r := conformance.Row{
		RowID:  conformance.RowID{Member: m.String(), Scope: s.String()},
		Unread: int64(v.Unread), Attention: int64(v.Attention), Activity: int64(v.Activity),
		Counts: v.Counted, Shown: v.Shown, ShownUnread: int64(v.ShownUnread),
		ManualUnread: v.Manual, FromRevision: int64(v.ManualFrom), Version: int64(v.Version),
		ReadRevision: int64(v.Read), ActivityReadSeq: int64(v.ActivityRead),
		ContentRevision: int64(v.Head),
	}
	if v.Level != model.All {
		r.Notification = v.Level.String()
	}
	return r
}

// Badges implements conformance.Counter.
func (o *Oracle) Badges() ([]conformance.Badge, error) {
	var out []conformance.Badge
	for _, m := range o.World.MemberIDs() {
		if b := o.World.Badge(m); b != (model.Badge{}) {
			out = append(out, conformance.Badge{
				Member: m.String(), Messages: int64(b.Messages),
				Conversations: int64(b.Conversations), Attention: int64(b.Attention),
			})
		}
	}
	return out, nil
}
