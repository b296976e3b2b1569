package model

import (
	"reflect"
	"strings"
	"testing"
)

func TestOpTextRoundTrip(t *testing.T) {
	seen := map[Kind]int{}
	for seed := range uint64(200) {
		for _, mix := range []Mix{FullMix(), FactsMix()} {
			for _, op := range RandomOps(seeded(seed), 80, mix) {
				seen[op.Kind]++
				checkRoundTrip(t, op)
			}
		}
	}
	for k := OpCreate; k < numKinds; k++ {
		if seen[k] == 0 {
			t.Errorf("no generated history has %s", k)
		}
	}
	if len(kindNames) != int(numKinds) {
		t.Errorf("%d names for %d kinds", len(kindNames), numKinds)
	}
}

func checkRoundTrip(t *testing.T, op Op) {
	t.Helper()
	back, err := ParseOp(op.String())
	if err != nil {
		t.Fatalf("%+v prints as %q: %v", op, op, err)
	}
	if !reflect.DeepEqual(op, back) {
		t.Fatalf("%q\n  was  %+v\n  came %+v", op, op, back)
	}
}

func TestParseOpRefuses(t *testing.T) {
	for _, text := range []string{
		"", "nothing s1", "post", "post s1", "post s1 AB", "post s1 m26", "post s0 A", "post s01 A",
		"post s1 A @", "post s1 A @B,", "post s1 A to", "post s1 A expires=-1", "post s1 A v=1",
		"post s1 A expires=99999999999999999999", "edit s1 x", "edit s1 1 broadcast",
		"move s1 1, s2", "move s1 1", "create s1 room", "create s1", "create s1 thread",
		"create s1 thread s2 shared", "create s1 session A shared", "create s1 dm root=1",
		"create s1 dm planned", "task s1", "task s1 A assignee=", "task s1 A status=x",
		"task s1 A to=B", "activity s1 A title=1",
		"read s1 A", "read s1 A 01", "read s1 A 1 from=2", "level s1 A loud", "level s1 A",
		"readall A s1", "readall A s1:2:3:4", "readall A x:1", "clock", "clock 1 2", "block A",
		"run s1 loud", "archive s1 service", "?",
	} {
		if op, err := ParseOp(text); err == nil {
			t.Errorf("%q parsed as %+v", text, op)
		} else if !strings.Contains(err.Error(), "parse op") {
			t.Errorf("%q: error without its operation: %v", text, err)
		}
	}
}

func TestParseOpsNamesTheLine(t *testing.T) {
	ops, err := ParseOps("\n# comment\ncreate s1 channel # tail\n\njoin s1 A\n")
	if err != nil || FormatOps(ops) != "create s1 channel\njoin s1 A\n" {
		t.Fatalf("%v %v", ops, err)
	}
	if _, err := ParseOps("create s1 channel\nbad\n"); err == nil ||
		!strings.Contains(err.Error(), "line 2") {
		t.Fatalf("got %v", err)
	}
}

// FuzzOpText checks on arbitrary text that what parses prints as something that
// parses to the same, and on arbitrary bytes that decoded histories do likewise.
func FuzzOpText(f *testing.F) {
	for _, op := range RandomOps(seeded(1), 60, FullMix()) {
		f.Add(op.String(), []byte{})
	}
	f.Add("readall m27 s3:4 s5:6:7 service", randomBytes(seeded(2), 80))
	f.Add("post s1 A to=B,A,B @C,A as=m30 saw=9 expires=1", randomBytes(seeded(3), 80))
	f.Fuzz(func(t *testing.T, text string, data []byte) {
		if op, err := ParseOp(text); err == nil {
			checkRoundTrip(t, op)
			_, _ = New().Apply(op)
		}
		for _, op := range DecodeOps(data) {
			checkRoundTrip(t, op)
		}
	})
}
