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

// The files of each kind are apart, so that a program has only those that it runs.
var (
	//go:embed cases/*.json
	sessionFiles embed.FS
	//go:embed cases/hub
	hubFiles embed.FS
	//go:embed cases/client
	clientFiles embed.FS
	//go:embed cases/network
	networkFiles embed.FS
	//go:embed cases/readstate
	historyFiles embed.FS
)

// Head is what cases of every kind begin with.
type Head struct {
	ID     string   `json:"id"`
	Covers []string `json:"covers"` // ids of the requirements
	About  string   `json:"about"`
}

// file is a file of cases of one kind.
type file[C any] struct {
	Suite string `json:"suite"`
	About string `json:"about"`
	Cases []C    `json:"cases"`
}

// parse reads a file of cases. Fields that nobody knows are refused: a misspelt expectation would
// hold always.
func parse[C any](r io.Reader, check func(*C) error) (file[C], error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	var f file[C]
	if err := d.Decode(&f); err != nil {
		return f, fmt.Errorf("read cases: %w", err)
	}
	if d.More() {
		return f, errors.New("something follows the cases")
	}
	for i := range f.Cases {
		if err := check(&f.Cases[i]); err != nil {
			return f, err
		}
	}
	return f, nil
}

// load reads the files of a directory, in the order of their names.
func load[C any](
	files embed.FS, dir string, check func(*C) error, head func(*C) *Head,
) ([]file[C], error) {
	names, err := files.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("conformance: %w", err)
	}
	seen := map[string]bool{}
	var out []file[C]
	for _, n := range names {
		if n.IsDir() {
			continue
		}
		text, err := files.ReadFile(path.Join(dir, n.Name()))
		if err != nil {
			return nil, fmt.Errorf("conformance: %w", err)
		}
		f, err := parse(bytes.NewReader(text), check)
		if err != nil {
			return nil, fmt.Errorf("conformance: %s: %w", n.Name(), err)
		}
		if f.Suite+".json" != n.Name() {
			return nil, fmt.Errorf("conformance: %s is called %q", n.Name(), f.Suite)
		}
		for i := range f.Cases {
			id := head(&f.Cases[i]).ID
			if seen[id] {
				return nil, fmt.Errorf("conformance: two cases are called %q", id)
			}
			seen[id] = true
		}
		out = append(out, f)
	}
	return out, nil
}

func (h *Head) check(steps int) error {
	switch {
	case h.ID == "" || strings.ToLower(h.ID) != h.ID:
		return fmt.Errorf("a case is called %q", h.ID)
	case h.About == "" || len(h.Covers) == 0 || steps == 0:
		return fmt.Errorf("case %s: about, covers and steps are needed", h.ID)
	}
	return nil
}
