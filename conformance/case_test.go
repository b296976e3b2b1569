package conformance_test

import (
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/conformance"
)

// Files that say something else than cases are refused with a reason.
func TestBadCases(t *testing.T) {
	head := `"id":"x","about":"x","covers":["SE-001"]`
	everybody := []string{
		``, `[]`, `{"suite":"x","cases":[{}]}`, `{"suite":"x","cases":[]} {}`, `{"suite":"x","expcet":1}`,
		`{"cases":[{` + head + `,"steps":[]}]}`,
		`{"cases":[{"id":"Upper","about":"x","covers":["SE-001"],"steps":[{}]}]}`,
		`{"cases":[{"id":"x","about":"x","covers":[],"steps":[{}]}]}`,
		`{"cases":[{` + head + `,"steps":[{}]}]}`,
		`{"cases":[{` + head + `,"steps":[{"do":"open","expcet":{}}]}]}`,
	}
	for kind, parse := range map[string]func(text string) error{
		"server": func(text string) error {
			_, err := conformance.Parse(strings.NewReader(text))
			return err
		},
		"client": func(text string) error {
			_, err := conformance.ParseClient(strings.NewReader(text))
			return err
		},
		"network": func(text string) error {
			_, err := conformance.ParseNetwork(strings.NewReader(text))
			return err
		},
		"history": func(text string) error {
			_, err := conformance.ParseHistories(strings.NewReader(text))
			return err
		},
	} {
		own := map[string][]string{
			"server": {`[{"request":{"method":"GET","path":"x"},"expect":{"status":200}}]`},
			"client": {
				`[{"do":"open","session":"s"}]`, `[{"do":"anyOrder","expect":{}}]`,
				`[{"do":"open","steps":[{"do":"open"}],"expect":{}}]`,
			},
			"network": {`[{"do":"open"}]`, `[{"do":"answer","expect":{}}]`},
			"history": {`[{"op":{"type":"post"},"expect":{}}]`},
		}[kind]
		texts := everybody
		for _, steps := range own {
			texts = append(texts[:len(texts):len(texts)], `{"cases":[{`+head+`,"steps":`+steps+`}]}`)
		}
		for _, text := range texts {
			if parse(text) == nil {
				t.Errorf("%s: %s is a file of cases", kind, text)
			}
		}
	}
}
