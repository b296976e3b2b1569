package histories

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tidemark-im/tidemark/conformance"
)

// Write returns the text of a file of histories: a step a line, so that changes can be read.
func Write(s conformance.HistorySuite) ([]byte, error) {
	var b bytes.Buffer
	var err error
	one := func(v any) string {
		text := &bytes.Buffer{}
		e := json.NewEncoder(text)
		e.SetEscapeHTML(false)
		if encodeErr := e.Encode(v); encodeErr != nil && err == nil {
			err = fmt.Errorf("write history: %w", encodeErr)
		}
		return string(bytes.TrimSpace(text.Bytes()))
	}
	fmt.Fprintf(&b, "{\n  \"suite\": %s,\n  \"about\": %s,\n  \"cases\": [", one(s.Suite), one(s.About))
	for i, c := range s.Cases {
		separate(&b, i)
		fmt.Fprintf(&b, "\n    {\n      \"id\": %s,\n      \"covers\": %s,\n      \"about\": %s,\n"+
			"      \"steps\": [", one(c.ID), one(c.Covers), one(c.About))
		for j, step := range c.Steps {
			separate(&b, j)
			fmt.Fprintf(&b, "\n        %s", one(step))
		}
		b.WriteString("\n      ]\n    }")
	}
	b.WriteString("\n  ]\n}\n")
	return b.Bytes(), err
}

func separate(b *bytes.Buffer, i int) {
	if i > 0 {
		b.WriteByte(',')
	}
}
