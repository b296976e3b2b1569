package conformance_test

import (
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/conformance"
)

// Files that say something else than cases are refused with a reason.
func TestBadCases(t *testing.T) {
	for _, text := range []string{
		``, `[]`, `{"suite":"x","cases":[{}]}`, `{"suite":"x","cases":[]} {}`,
		`{"suite":"x","expcet":1}`,
		`{"cases":[{"id":"Upper","about":"x","covers":["SE-001"],"steps":[{}]}]}`,
		`{"cases":[{"id":"x","about":"x","covers":[],"steps":[{}]}]}`,
		`{"cases":[{"id":"x","about":"x","covers":["SE-001"],"steps":[{"request":{"method":"GET","path":"x"},"expect":{"status":200}}]}]}`,
	} {
		if s, err := conformance.Parse(strings.NewReader(text)); err == nil {
			t.Errorf("%s: %+v", text, s)
		}
	}
}
