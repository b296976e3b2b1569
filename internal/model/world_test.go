package model

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func apply(t *testing.T, w *World, line string) Outcome {
	t.Helper()
	op, err := ParseOp(line)
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.Apply(op)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOutcomes(t *testing.T) {
	w := New()
	for _, line := range []string{
		"create s1 channel", "join s1 A", "join s1 B", "post s1 A @B", "post s1 A unreadable",
		"create s2 thread s1 root=1", "create s3 channel",
	} {
		apply(t, w, line)
	}
	for _, c := range []struct {
		line string
		want Outcome
	}{
		{"post s2 A broadcast", Outcome{Changed: true, Seq: 1, Revision: 1, CopySeq: 3, CopyRevision: 2}},
		{"post s2 A baseline", Outcome{Changed: true, Seq: 2}},
		{"activity s1 A", Outcome{Changed: true, Activity: 1}},
		{"read s1 B 0 v=0", Outcome{}},
		{"move s1 2,3 s3 count", Outcome{Changed: true, Seq: 2, Revision: 1}},
	} {
		got := apply(t, w, c.line)
		if !reflect.DeepEqual(got, c.want) { //nolint:govet // no error is in any of these outcomes
			t.Errorf("%s: got %+v, want %+v", c.line, got, c.want)
		}
	}
	out := apply(t, w, "readall B s1:9:0 s1:1:0 s7:1:0 s1:1:0")
	want := []error{ErrFuture, nil, ErrNotFound, nil}
	for i, item := range out.Items {
		if !errors.Is(item.Err, want[i]) || item.Changed != (i == 1) {
			t.Errorf("item %d: %+v, want %v", i, item, want[i])
		}
	}
}

func TestRefusalNamesTheOperation(t *testing.T) {
	_, err := New().Apply(Op{Kind: OpRemove, Scope: 3, Seq: 1})
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), `"remove s3 1"`) {
		t.Errorf("got %v", err)
	}
	for _, op := range []Op{
		{},
		{Kind: numKinds, Scope: 1},
		{Kind: OpPost, Scope: 1},
		{Kind: OpPost, Scope: 1, Member: 1, Mentions: []MemberID{0}},
		{Kind: OpRead, Scope: 1, Member: 1, Revision: -1},
		{Kind: OpRead, Scope: 1, Member: 1, Version: NoVersion - 1},
		{Kind: OpSetLevel, Scope: 1, Member: 1, Level: None + 1},
		{Kind: OpSetLevel, Scope: 1, Member: 1, Until: -1},
		{Kind: OpJoin, Scope: 1}, {Kind: OpJoin, Scope: 1, Member: 1, From: -1},
		{Kind: OpTrim, Scope: 1, Seq: -1}, {Kind: OpExpire, Advance: -1},
		{Kind: OpBlock, Other: 1}, {Kind: OpBlock, Member: 1},
		{Kind: OpActivity, Scope: 1}, {Kind: OpCreate, Scope: 0, Type: Channel},
		{Kind: OpTask, Scope: 1, Member: 1}, {Kind: OpCreate, Scope: 2, Type: DM, Planned: true},
		{Kind: OpCreate, Scope: 2}, {Kind: OpCreate, Scope: 2, Type: Session},
	} {
		w := New()
		apply(t, w, "create s1 channel")
		apply(t, w, "join s1 A")
		if _, err := w.Apply(op); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: got %v, want invalid", op, err)
		}
	}
}

// A clone does not move with its original, and knows the same.
func TestClone(t *testing.T) {
	for seed := range uint64(20) {
		mix := FullMix()
		if seed%2 == 1 {
			mix = FactsMix()
		}
		w := play(t, RandomOps(seeded(seed), 60, mix))
		c, reference := w.Clone(), w.Clone()
		if !reflect.DeepEqual(w, c) {
			t.Fatalf("seed %d: the clone differs", seed)
		}
		for _, op := range RandomOps(seeded(seed+100), 60, mix) {
			_, _ = w.Apply(op)
		}
		if !reflect.DeepEqual(c, reference) {
			t.Fatalf("seed %d: the clone moved", seed)
		}
	}
}

func TestAccessorsOfNothing(t *testing.T) {
	w := New()
	if _, ok := w.Scope(1); ok {
		t.Error("a scope in an empty world")
	}
	if _, ok := w.Row(1, 1); ok || w.Entries(1) != nil || w.Values(1, 1) != (Values{}) {
		t.Error("something about nothing")
	}
	if x := w.Explain(1, 1); w.RowMembers(1) != nil || x.Verdicts != nil || w.HasUnread(1) || w.Badge(1) != (Badge{}) {
		t.Errorf("got %+v", x)
	}
}

func TestExplanationText(t *testing.T) {
	w := New()
	for _, line := range []string{
		"create s1 channel", "join s1 A", "join s1 B", "post s1 A @B", "post s1 B", "post s1 A",
		"remove s1 3", "post s1 A",
	} {
		apply(t, w, line)
	}
	text := w.Explain(2, 1).String()
	for _, want := range []string{
		"B in s1: ", "unread=2 attention=1", "counted [1 4] directed [1]",
		"seq 1 rev 1 by A: counts, directed", "seq 2 rev 2 by B: own", "seq 3 rev 3 by A: removed",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
