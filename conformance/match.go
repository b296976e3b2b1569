package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Words of expectations that no answer is compared with as they stand.
const (
	anything = "<any>"    // some value is there, and not null
	absent   = "<absent>" // there is no such field
)

// differs says how an answer differs from what is expected of it; empty where it does not. Of
// objects only the fields that are expected are looked at; lists are compared element by element.
func differs(at string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s: an object was expected, not %s", at, text(got))
		}
		keys := make([]string, 0, len(w))
		for k := range w {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			value, there := g[k]
			switch {
			case w[k] == absent && there:
				return fmt.Sprintf("%s.%s is %s and must not be there", at, k, text(value))
			case w[k] == absent:
			case !there:
				return fmt.Sprintf("%s.%s is missing", at, k)
			default:
				if d := differs(at+"."+k, w[k], value); d != "" {
					return d
				}
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s: %d elements were expected, not %s", at, len(w), text(got))
		}
		for i := range w {
			if d := differs(fmt.Sprintf("%s[%d]", at, i), w[i], g[i]); d != "" {
				return d
			}
		}
		return ""
	}
	if want == anything && got != nil {
		return ""
	}
	if text(want) != text(got) {
		return fmt.Sprintf("%s is %s, expected %s", at, text(got), text(want))
	}
	return ""
}

// text is a value as JSON, for comparing and for people.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// decode reads JSON with numbers as they stand.
func decode(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	return v, nil
}

// part follows a path of field names and places in lists, as in messages.0.id.
func part(v any, path string) (any, bool) {
	for step := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[step]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			v = at[i]
		default:
			return nil, false
		}
	}
	return v, true
}
