package conformance

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

//go:embed cases/*.json
var files embed.FS

// Case is one thing that has to hold.
type Case struct {
	ID     string   `json:"id"`
	Covers []string `json:"covers"` // ids of the requirements
	About  string   `json:"about"`
	Steps  []Step   `json:"steps"`
}

// Step is a request and what its answer has to be.
type Step struct {
	Request Request `json:"request"`
	Expect  Expect  `json:"expect"`
	// Keep gives names to parts of the answer, each by its path; later steps write {name}.
	Keep map[string]string `json:"keep,omitempty"`
}

// Request is what is sent. Names in braces stand for what was kept, {new} names for ids that the
// case has for itself: one id for each such name.
type Request struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body,omitempty"`
}

// Expect is a status and a part of the body: what it names has to be there and equal, what it does
// not name is not looked at.
type Expect struct {
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body,omitempty"`
}

// Suite is a file of cases.
type Suite struct {
	Suite string `json:"suite"`
	About string `json:"about"`
	Cases []Case `json:"cases"`
}

// Load returns the suites that come with the package, in the order of their names.
func Load() ([]Suite, error) {
	names, err := files.ReadDir("cases")
	if err != nil {
		return nil, fmt.Errorf("conformance: %w", err)
	}
	seen := map[string]bool{}
	out := make([]Suite, 0, len(names))
	for _, n := range names {
		text, err := files.ReadFile(path.Join("cases", n.Name()))
		if err != nil {
			return nil, fmt.Errorf("conformance: %w", err)
		}
		s, err := Parse(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("conformance: %s: %w", n.Name(), err)
		}
		if s.Suite+".json" != n.Name() {
			return nil, fmt.Errorf("conformance: %s is called %q", n.Name(), s.Suite)
		}
		for _, c := range s.Cases {
			if seen[c.ID] {
				return nil, fmt.Errorf("conformance: two cases are called %q", c.ID)
			}
			seen[c.ID] = true
		}
		out = append(out, s)
	}
	return out, nil
}

// Parse reads a file of cases. Fields that nobody knows are refused: a misspelt expectation would
// hold always.
func Parse(r io.Reader) (Suite, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	var s Suite
	if err := d.Decode(&s); err != nil {
		return s, fmt.Errorf("read cases: %w", err)
	}
	if d.More() {
		return s, errors.New("something follows the cases")
	}
	for i := range s.Cases {
		if err := s.Cases[i].check(); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (c *Case) check() error {
	switch {
	case c.ID == "" || strings.ToLower(c.ID) != c.ID:
		return fmt.Errorf("a case is called %q", c.ID)
	case c.About == "" || len(c.Covers) == 0 || len(c.Steps) == 0:
		return fmt.Errorf("case %s: about, covers and steps are needed", c.ID)
	}
	for i, s := range c.Steps {
		if s.Request.Method == "" || !strings.HasPrefix(s.Request.Path, "/") || s.Expect.Status == 0 {
			return fmt.Errorf("case %s, step %d: method, path and status are needed", c.ID, i+1)
		}
	}
	return nil
}
