package conform_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/tidemark-im/tidemark/conformance"
)

var specified = regexp.MustCompile(`(?m)^([A-Z]{2}-[0-9]{3}) \| `)

// Every case of every kind names requirements or scenarios that exist, and no two have one id.
func TestIDs(t *testing.T) {
	known := map[string]bool{}
	pages, err := filepath.Glob("../../docs/requirements/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no requirements: %v", err)
	}
	for _, page := range append(pages, "../../docs/scenarios.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range specified.FindAllStringSubmatch(string(text), -1) {
			known[m[1]] = true
		}
	}
	seen, shown := map[string]bool{}, map[string]bool{}
	check := func(h conformance.Head) {
		if seen[h.ID] {
			t.Errorf("two cases are called %q", h.ID)
		}
		seen[h.ID] = true
		for _, id := range h.Covers {
			if shown[id] = true; !known[id] {
				t.Errorf("%s: there is no %s", h.ID, id)
			}
		}
	}
	for _, c := range append(cases(t), hubCases(t)...) {
		check(c.Head)
	}
	for _, c := range clientCases(t) {
		check(c.Head)
	}
	for _, c := range historyCases(t) {
		check(c.Head)
	}
	for _, c := range networkCases(t) {
		check(c.Head)
	}
	t.Logf("%d cases show %d requirements and scenarios", len(seen), len(shown))
}
