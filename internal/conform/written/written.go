package written

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tidemark-im/tidemark/conformance"
)

// History is the text of a file of histories.
func History(s conformance.HistorySuite) ([]byte, error) {
	w := begin(s.Suite, s.About)
	for i, c := range s.Cases {
		w.head(i, c.Head)
		for j, step := range c.Steps {
			w.step(j, step)
		}
		w.b.WriteString("\n      ]\n    }")
	}
	return w.end()
}

// Server is the text of a file of server cases.
func Server(s conformance.Suite) ([]byte, error) {
	w := begin(s.Suite, s.About)
	for i, c := range s.Cases {
		w.head(i, c.Head)
		for j, step := range c.Steps {
			w.step(j, step)
		}
		w.b.WriteString("\n      ]\n    }")
	}
	return w.end()
}

type writer struct {
	b   bytes.Buffer
	err error // the first
}

func begin(suite, about string) *writer {
	w := &writer{}
	fmt.Fprintf(&w.b, "{\n  \"suite\": %s,\n  \"about\": %s,\n  \"cases\": [", w.one(suite), w.one(about))
	return w
}

func (w *writer) head(i int, h conformance.Head) {
	w.separate(i)
	fmt.Fprintf(&w.b, "\n    {\n      \"id\": %s,\n      \"covers\": %s,\n      \"about\": %s,\n"+
		"      \"steps\": [", w.one(h.ID), w.one(h.Covers), w.one(h.About))
}

func (w *writer) step(i int, step any) {
	w.separate(i)
	fmt.Fprintf(&w.b, "\n        %s", w.one(step))
}

func (w *writer) separate(i int) {
	if i > 0 {
		w.b.WriteByte(',')
	}
}

// one is a value on one line, with < and > as they are.
func (w *writer) one(v any) string {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil && w.err == nil {
		w.err = fmt.Errorf("write a case: %w", err)
	}
	return string(bytes.TrimSpace(text.Bytes()))
}

func (w *writer) end() ([]byte, error) {
	w.b.WriteString("\n  ]\n}\n")
	return w.b.Bytes(), w.err
}
