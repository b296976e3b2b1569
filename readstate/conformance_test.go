package readstate_test

import (
	"testing"

	"github.com/tidemark-im/tidemark/conformance"
	made "github.com/tidemark-im/tidemark/internal/conform/histories"
	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// counter plays the histories of conformance cases on the machine. What lies outside the algebra,
// unknown scopes and rows out of reach, is refused where the case says so.
type counter struct{ *machine }

func (c counter) Apply(
	in *conformance.HistoryOp, expected *conformance.HistoryAnswer,
) (answer conformance.HistoryAnswer, err error) {
	op, err := made.ToModel(in)
	if err != nil {
		return answer, err
	}
	verdict := made.Refusal(expected.Code)
	if outside(verdict) {
		return *expected, nil
	}
	if op.Kind == model.OpReadAll {
		return c.readItems(op, expected)
	}
	changed, err := c.dispatch(op, model.Outcome{})
	if err := c.broken; err != nil {
		return answer, err
	}
	answer, err = answered(changed, err)
	if op.Kind == model.OpPost && answer.Result == "applied" {
		s := c.scopes[op.Scope]
		answer.Seq = int64(s.latest)
		answer.ContentRevision = int64(s.retained(s.latest).revision)
	}
	return answer, err
}

// answered is an answer in the words of the cases.
func answered(changed bool, err error) (conformance.HistoryAnswer, error) {
	switch {
	case err == nil:
	case agree(false, err, false, model.ErrFuture) == nil:
		err = model.ErrFuture
	case agree(false, err, false, model.ErrConflict) == nil:
		err = model.ErrConflict
	}
	return made.Answered(changed, err)
}

func (c counter) readItems(
	op model.Op, expected *conformance.HistoryAnswer,
) (answer conformance.HistoryAnswer, err error) {
	changed := false
	for i, it := range op.Items {
		if i < len(expected.Items) && outside(made.Refusal(expected.Items[i].Code)) {
			answer.Items = append(answer.Items, expected.Items[i])
			continue
		}
		did, refused := c.read(model.Op{
			Kind: model.OpRead, Scope: it.Scope, Member: op.Member,
			Revision: it.Revision, Version: it.Version, Service: op.Service,
		})
		one, err := answered(did, refused)
		if err != nil {
			return answer, err
		}
		answer.Items = append(answer.Items, one)
		changed = changed || did
	}
	all, err := answered(changed, c.broken)
	answer.Result = all.Result
	return answer, err
}

func (c counter) Rows() ([]conformance.Row, error) {
	var out []conformance.Row
	for id, s := range c.scopes {
		for m := range s.rows {
			values, shown, err := s.present(m)
			if err != nil {
				return nil, err
			}
			out = append(out, s.told(m, id, values, shown))
		}
	}
	return out, c.broken
}

// told is a row in the words of the cases.
func (s *scope) told(
	m member, id model.ScopeID, values readstate.Values, shown readstate.Presented,
) conformance.Row {
	r := s.rows[m]
	out := conformance.Row{
		RowID:  conformance.RowID{Member: model.MemberID(m).String(), Scope: id.String()},
		Unread: int64(values.Unread), Attention: int64(values.Attention), Activity: int64(values.Activity),
		Counts: shown.Counts, Shown: shown.Shown, ShownUnread: int64(shown.Unread),
		ManualUnread: r.Manual.Set, FromRevision: int64(r.Manual.From), Version: int64(r.Manual.Version),
		ReadRevision: int64(r.Read), ActivityReadSeq: int64(r.Activity.Read),
		ContentRevision: int64(s.head),
	}
	if level := s.standing(m).Level; level != readstate.LevelAll {
		out.Notification = level.String()
	}
	return out
}

func (c counter) Badges() ([]conformance.Badge, error) {
	badges := map[member]*readstate.Badge{}
	for _, s := range c.scopes {
		for m := range s.rows {
			_, shown, err := s.present(m)
			if err != nil {
				return nil, err
			}
			if badges[m] == nil {
				badges[m] = &readstate.Badge{}
			}
			badges[m].Add(shown)
		}
	}
	var out []conformance.Badge
	for m, b := range badges {
		if *b != (readstate.Badge{}) {
			out = append(out, conformance.Badge{
				Member: model.MemberID(m).String(), Messages: int64(b.Messages),
				Conversations: int64(b.Conversations), Attention: int64(b.Attention),
			})
		}
	}
	return out, c.broken
}

// The algebra counts what the histories say, after each of their operations.
//
// covers: RT-116, RT-117, RT-118, RT-138, RT-139, RT-143, RT-232, RT-237, RT-238
func TestConformance(t *testing.T) {
	suites, err := conformance.LoadHistories()
	if err != nil {
		t.Fatal(err)
	}
	for _, suite := range suites {
		for _, c := range suite.Cases {
			r, err := conformance.RunHistory(counter{newMachine()}, &c)
			if err != nil {
				t.Error(err)
			} else if !r.OK() {
				t.Errorf("%s, step %d: %s", r.Case, r.Step, r.Problem)
			}
		}
	}
}
