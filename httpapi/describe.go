package httpapi

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed describe.txt
var descriptionText string

// described is what describe.txt says of one type.
type described struct {
	about   string
	fields  map[string]string
	like    []string // types whose fields it has, too
	example string   // JSON, empty for none
}

// parseDescriptions reads describe.txt, whose first lines explain its form.
func parseDescriptions(text string) (map[string]*described, error) {
	types := map[string]*described{}
	var at *described
	for i, line := range strings.Split(text, "\n") {
		name, about, colon := strings.Cut(line, ": ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "  = ") && at != nil:
			at.example = strings.TrimPrefix(line, "  = ")
		case strings.HasPrefix(line, "  ") && at != nil && colon:
			at.fields[strings.TrimSpace(name)] = about
		case line == "*" || colon && line[0] != ' ':
			name, like, _ := strings.Cut(name, " < ")
			at = &described{about: about, fields: map[string]string{}, like: strings.Fields(like)}
			if types[name] != nil {
				return nil, fmt.Errorf("describe.txt:%d: %s stands twice", i+1, name)
			}
			types[name] = at
		default:
			return nil, fmt.Errorf("describe.txt:%d: neither a type nor a field: %s", i+1, line)
		}
	}
	for name, t := range types {
		for _, other := range t.like {
			if types[other] == nil {
				return nil, fmt.Errorf("describe.txt: %s is like %s, which is not there", name, other)
			}
		}
	}
	return types, nil
}

// describeTypes puts the descriptions and examples into the schemas. A description of something
// that does not exist is an error, since it was forgotten there.
func (d *document) describeTypes() error {
	types, err := parseDescriptions(descriptionText)
	if err != nil {
		return err
	}
	schemas := d.api.Components.Schemas.Map()
	for name, t := range types {
		s := schemas[name]
		if name == "*" {
			continue
		}
		if s == nil {
			return fmt.Errorf("describe.txt: there is no type %s", name)
		}
		for field := range t.fields {
			if s.Properties[field] == nil {
				return fmt.Errorf("describe.txt: %s has no field %s", name, field)
			}
		}
		s.Description = t.about
		for field, p := range s.Properties {
			if text := fieldText(types, name, field); text != "" {
				p.Description = text
			}
		}
		if t.example != "" {
			s.Examples = []any{json.RawMessage(t.example)}
		}
	}
	return nil
}

// fieldText finds the description of a field: the type's own, that of a type it is like, or what
// every field of that name means.
func fieldText(types map[string]*described, name, field string) string {
	if text := ownText(types, name, field); text != "" {
		return text
	}
	return types["*"].fields[field]
}

func ownText(types map[string]*described, name, field string) string {
	t := types[name]
	text := t.fields[field]
	for i := 0; text == "" && i < len(t.like); i++ {
		text = ownText(types, t.like[i], field)
	}
	return text
}

// typeName names a type in the document: the answer of a batch after what its elements are.
func typeName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	if of, ok := strings.CutPrefix(name, "Results"); ok {
		return of + "Results"
	}
	return name
}
