package readstate_test

import (
	"errors"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
)

func TestPlanMove(t *testing.T) {
	for _, c := range []struct {
		from, to, head readstate.Revision
		want           readstate.Span
	}{
		{2, 5, 9, readstate.Span{Low: 2, High: 5, Up: true}},
		{5, 2, 9, readstate.Span{Low: 2, High: 5}},
		{2, 9, 9, readstate.Span{Low: 2, High: 9, Up: true, AtHead: true}},
		{9, 9, 9, readstate.Span{Low: 9, High: 9, Up: true}},
		{4, 4, 9, readstate.Span{Low: 4, High: 4, Up: true}},
		{9, 0, 9, readstate.Span{Low: 0, High: 9}},
	} {
		p := readstate.Point{E: c.from}
		got := p.PlanMove(c.to, c.head)
		if got != c.want || got.Empty() != (c.from == c.to) {
			t.Errorf("%d to %d of %d: %+v", c.from, c.to, c.head, got)
		}
	}
}

// TestMoveRefusesBrokenRows hands over more rows than the counters at the point know of.
func TestMoveRefusesBrokenRows(t *testing.T) {
	before := readstate.Point{
		E: 2, AuthorRank: 1, OwnRemoved: 1, OwnEveryone: 1, Direct: 1, Targets: 1,
	}
	up := readstate.Span{Low: 2, High: 5, Up: true}
	for name, c := range map[string]readstate.Crossed{
		"own removed": {OwnRemoved: 2}, "own everyone": {OwnEveryone: 2},
		"direct": {Direct: 2}, "targets": {Targets: 2},
	} {
		p := before
		if err := p.Move(up, c, readstate.Ranks{Author: 2}); !errors.Is(err, readstate.ErrSpan) || p != before {
			t.Errorf("%s: %v, %+v", name, err, p)
		}
		down := readstate.Span{Low: 1, High: 2}
		if err := p.Move(down, c, readstate.Ranks{}); err != nil || p.E != 1 {
			t.Errorf("%s, down: %v, %+v", name, err, p)
		}
	}
	p := before
	all := readstate.Crossed{OwnRemoved: 1, OwnEveryone: 1, Direct: 1, Targets: 1}
	want := readstate.Point{E: 5, AuthorRank: 3, PrincipalRank: 2}
	if err := p.Move(up, all, readstate.Ranks{Author: 3, Principal: 2}); err != nil || p != want {
		t.Errorf("all there is: %v, %+v", err, p)
	}
}

func TestMergeMap(t *testing.T) {
	m := readstate.MergeMap{SourceE: 3, DestinationHead: 10}
	for r, want := range map[readstate.Revision]readstate.Revision{0: 0, 1: 0, 3: 0, 4: 11, 5: 12, 9: 16} {
		got, ok := m.Revision(r)
		if got != want || ok != (want > 0) {
			t.Errorf("revision %d arrives at %d (%t), not %d", r, got, ok, want)
		}
	}
	for x, want := range map[readstate.Revision]readstate.Revision{0: 0, 1: 11, 3: 11, 4: 11, 5: 12, 6: 13} {
		if got := m.From(x); got != want {
			t.Errorf("a mark from %d arrives at %d, not %d", x, got, want)
		}
	}
}

func TestMergeManual(t *testing.T) {
	m := readstate.MergeMap{SourceE: 3, DestinationHead: 10}
	mark := func(from readstate.Revision, version uint64) readstate.Manual {
		return readstate.Manual{Set: true, From: from, Version: version}
	}
	none := func(version uint64) readstate.Manual { return readstate.Manual{Version: version} }
	for _, c := range []struct {
		name                string
		source, destination readstate.Manual
		want                readstate.Manual
	}{
		{"neither", none(0), none(0), none(1)},
		{"neither, versions", none(4), none(2), none(5)},
		{"source", mark(5, 1), none(3), mark(12, 4)},
		{"source without a start", mark(0, 1), none(0), mark(0, 2)},
		{"destination", none(0), mark(7, 1), mark(7, 2)},
		{"destination without a start", none(0), mark(0, 1), mark(0, 2)},
		{"both, destination lower", mark(5, 2), mark(7, 1), mark(7, 3)},
		{"both, equal", mark(5, 2), mark(12, 2), mark(12, 3)},
		{"both, source lower", mark(5, 2), mark(13, 1), mark(12, 3)},
		{"both, source without a start", mark(0, 1), mark(7, 1), mark(7, 2)},
		{"both, destination without a start", mark(5, 1), mark(0, 1), mark(12, 2)},
		{"both without a start", mark(0, 1), mark(0, 2), mark(0, 3)},
	} {
		if got := readstate.MergeManual(c.source, c.destination, m); got != c.want {
			t.Errorf("%s: %+v, not %+v", c.name, got, c.want)
		}
	}
}
