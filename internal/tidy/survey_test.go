package tidy

import (
	"slices"
	"strings"
	"testing"
)

func TestSurvey(t *testing.T) {
	repo, err := Load(tree(files{
		"docs/requirements/a.md": spec + "RT-004 | four | check: d\nRT-005 | five | check: e\n",
		"docs/scenarios.md":      "SC-001 | a | b -> c\nSC-002 | a | b -> c\nSC-003 | a | b -> c\n",
		statusPath: "RT-002 | overruled: because\nRT-003 | refined: so\n" +
			"RT-004..RT-005 | later: a part\nSC-003 | later: another part\n",
		"a/a_test.go":                note("covers: RT-004"),
		"testdata/scenarios/001.txt": "# covers: SC-001\nTitle\n1. One\n    post A m1\n",
		"testdata/scenarios/002.txt": "# covers: SC-002 SC-003\nTitle\n1. One\n    needs: inbox\n    post A m1\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	standings := Survey(repo)
	rt, sc := standings[slices.Index(Families, "RT")], standings[slices.Index(Families, "SC")]
	if rt.Total != 5 || rt.Cited != 1 || rt.Overruled != 1 || rt.Refined != 1 || rt.Later != 1 {
		t.Errorf("wrong figures: %+v", rt)
	}
	if !slices.Equal(rt.Missing, []string{"RT-001"}) || !slices.Equal(rt.Stale, []string{"RT-004"}) {
		t.Errorf("missing %v, stale %v, want RT-001 and RT-004", rt.Missing, rt.Stale)
	}
	if sc.Total != 3 || sc.Cited != 1 || sc.Later != 1 || !slices.Equal(sc.Pending, []string{"SC-002"}) {
		t.Errorf("wrong figures: %+v", sc)
	}
	if Complete(standings) {
		t.Error("complete, although ids are missing")
	}
	if !Complete([]Standing{{Family: "RT", Total: 3, Cited: 1, Overruled: 1, Later: 1}}) {
		t.Error("not complete, although every id is cited or explained")
	}
}

func TestWriteReport(t *testing.T) {
	standings := []Standing{{
		Family: "RT", Total: 9, Cited: 2, Overruled: 1,
		Missing: []string{"RT-001", "RT-002", "RT-003", "RT-005", "RT-006"}, Stale: []string{"RT-009"},
	}}
	var out strings.Builder
	if err := WriteReport(&out, standings); err != nil {
		t.Fatal(err)
	}
	want := `RT cited by no test and not explained:
  RT-001..RT-003 RT-005 RT-006
RT explained as later, yet cited by a test:
  RT-009
family      ids  cited overruled  refined   later  pending  missing
RT            9      2         1        0       0        0        5
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}

func TestReportWraps(t *testing.T) {
	var words []string
	for range 40 {
		words = append(words, "RT-001")
	}
	for line := range strings.SplitSeq(wrapped(words), "\n") {
		if len(line) > 96 || !strings.HasPrefix(line, "  RT") {
			t.Errorf("line of %d columns: %q", len(line), line)
		}
	}
}
