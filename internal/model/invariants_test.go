package model

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
)

// TestInvariants plays random histories and checks after every operation what must
// hold whatever the history.
func TestInvariants(t *testing.T) {
	for seed := range uint64(120) {
		checkHistory(t, RandomOps(seeded(seed), 70, FullMix()))
		checkHistory(t, RandomOps(seeded(seed), 70, FactsMix()))
	}
}

func FuzzInvariants(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(randomBytes(seeded(seed), 40*recordSize))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 120*recordSize {
			t.Skip("long histories only cost time here")
		}
		checkHistory(t, DecodeOps(data))
	})
}

func checkHistory(t *testing.T, ops []Op) {
	t.Helper()
	w := New()
	for i, op := range ops {
		before := w.Clone()
		out, err := w.Apply(op)
		if problem := checkStep(before, w, op, out, err); problem != nil {
			t.Fatalf("after operation %d, %s: %v\n%s", i+1, op, problem, FormatOps(ops[:i+1]))
		}
	}
}

func checkStep(before, after *World, op Op, out Outcome, err error) error {
	if err != nil && !refusedProperly(err) {
		return fmt.Errorf("unclassified refusal %w", err)
	}
	if !out.Changed {
		same := before.Clone()
		same.clock = after.clock
		if err != nil {
			same.clock = before.clock
		}
		// An empty block set is no fact.
		if same, after := normal(same), normal(after); !reflect.DeepEqual(same, after) {
			return errors.New("said that nothing changed, and something did")
		}
	}
	if op.Kind == OpMerge && err == nil {
		m := before.scopes[op.Scope].owner
		sum := before.Values(m, op.Scope).Unread + before.Values(m, op.To).Unread
		if got := after.Values(m, op.To).Unread; got != sum {
			return fmt.Errorf("merged %d unread into %d", sum, got)
		}
	}
	for _, m := range after.MemberIDs() {
		var sum Badge
		for _, id := range after.ScopeIDs() {
			if err := checkValues(before, after, op, m, id); err != nil {
				return fmt.Errorf("%w\n%s", err, after.Explain(m, id))
			}
			if v := after.Values(m, id); v.Shown {
				sum.Messages += v.ShownUnread
				sum.Conversations++
				sum.Attention += v.Attention
			}
		}
		if got := after.Badge(m); got != sum || after.HasUnread(m) != (sum.Conversations > 0) {
			return fmt.Errorf("badge of %s is %+v, its rows give %+v", m, got, sum)
		}
	}
	return nil
}

func normal(w *World) *World {
	c := w.Clone()
	for m, set := range c.blocks {
		if len(set) == 0 {
			delete(c.blocks, m)
		}
	}
	return c
}

func refusedProperly(err error) bool {
	for _, want := range []error{
		ErrInvalid, ErrNotFound, ErrFuture, ErrForbidden, ErrConflict, ErrMismatch, ErrReplaced,
	} {
		if errors.Is(err, want) {
			return true
		}
	}
	return false
}

func checkValues(before, after *World, op Op, m MemberID, id ScopeID) error {
	b, v := before.Values(m, id), after.Values(m, id)
	s := after.scopes[id]
	x := after.Explain(m, id)
	r, existed := before.Row(m, id)
	if err := checkPoint(after, x); err != nil {
		return err
	}
	switch {
	case v.Attention > v.Unread:
		return errors.New("attention above unread")
	case s.kind == DM && v.Attention != v.Unread:
		return errors.New("attention differs from unread in a dm")
	case len(x.Counted) != v.Unread || len(x.Directed) != v.Attention:
		return errors.New("the explanation has other numbers")
	case len(x.Activities) != v.Activity:
		return errors.New("the explanation has other activities")
	case v.Shown && !v.Counted, v.Counted && !v.Present, v.Present && !v.Exists:
		return errors.New("shown, counted, present, exists: out of order")
	case v.ShownUnread > 0 && !v.Shown:
		return errors.New("a number without a dot")
	case v.ManualFrom > 0 && !v.Manual:
		return errors.New("a mark's revision without the mark")
	case v.Read > v.Head:
		return errors.New("read beyond the head")
	case v.Exists && v.Head < b.Head:
		return errors.New("the head fell")
	case !existed || !v.Exists:
		return nil
	case v.Version < b.Version:
		return errors.New("the version fell")
	case op.Kind != OpMerge && v.Version-b.Version != boolInt(marks(v) != marks(b)):
		return errors.New("the version does not follow the mark")
	case v.Read < b.Read && after.scopes[id].rows[m].epoch == r.Epoch && op.Kind != OpJoin:
		return errors.New("the cursor fell")
	case op.Kind == OpRead && v.Unread > b.Unread:
		return errors.New("a read raised unread")
	case op.Kind == OpRemove && v.Unread > b.Unread:
		return errors.New("a removal raised unread")
	case op.Kind == OpEdit && r == mustRow(after, m, id) && v.Unread != b.Unread:
		return errors.New("an edit changed unread")
	}
	return nil
}

// checkPoint holds the verdicts against the one point below which nothing counts.
func checkPoint(w *World, x Explanation) error {
	info, _ := w.Scope(x.Scope)
	base := x.Row.Read
	if x.Row.Manual && x.Row.ManualFrom > 0 {
		base = min(base, x.Row.ManualFrom-1)
	}
	point := max(info.Floor, x.Row.Effective-1, base)
	for _, v := range x.Verdicts {
		below := v.Revision > 0 && v.Revision <= point
		early := v.Reason == Trimmed || v.Reason == BeforeJoin || v.Reason == AlreadyRead
		if below != early && v.Reason != Removed && v.Reason != NotReadable {
			return fmt.Errorf("revision %d is %s at point %d", v.Revision, v.Reason, point)
		}
	}
	return nil
}

func mustRow(w *World, m MemberID, id ScopeID) RowInfo {
	r, _ := w.Row(m, id)
	return r
}

type mark struct {
	on   bool
	from Revision
}

func marks(v Values) mark { return mark{v.Manual, v.ManualFrom} }

func boolInt(b bool) Version {
	if b {
		return 1
	}
	return 0
}
