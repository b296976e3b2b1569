package httpapi

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/live/strict"
)

// A struct of parameters has fields with these tags:
//
//	path:"s"             a segment of the path
//	query:"limit"        a parameter of the query, optional
//	id:"scope"           the value is an id of that kind, or a list of such ids
//	enum:"a,b" max:"500" doc:"…"
//
// A field is a string type, an int, a strict.Counter, or a list of a string type: in the address
// its elements stand between commas, and a comma within an element is escaped.

// param is one parameter of a route.
type param struct {
	index    []int
	in, name string
	id, doc  string
	enum     []string
	max      int
	kind     reflect.Type
}

var counterType = reflect.TypeFor[strict.Counter]()

// paramsOf describes the parameters of a struct type, those of embedded structs included.
func paramsOf(t reflect.Type) []param {
	var out []param
	for _, f := range reflect.VisibleFields(t) {
		p := param{
			index: f.Index, id: f.Tag.Get("id"), doc: f.Tag.Get("doc"), kind: f.Type,
		}
		switch {
		case f.Tag.Get("path") != "":
			p.in, p.name = "path", f.Tag.Get("path")
		case f.Tag.Get("query") != "":
			p.in, p.name = "query", f.Tag.Get("query")
		default:
			continue
		}
		if enum := f.Tag.Get("enum"); enum != "" {
			p.enum = strings.Split(enum, ",")
		}
		if text := f.Tag.Get("max"); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				panic(fmt.Sprintf("httpapi: max of %s.%s: %v", t, f.Name, err))
			}
			p.max = n
		}
		out = append(out, p)
	}
	return out
}

// document describes the parameter.
func (p *param) document() *huma.Param {
	s := &huma.Schema{Type: huma.TypeString}
	text := s
	out := &huma.Param{
		Name: p.name, In: p.in, Required: p.in == "path", Schema: s, Description: p.doc,
	}
	zero, highest := 0.0, float64(maxCounter)
	switch {
	case p.kind == counterType:
		s.Type, s.Minimum, s.Maximum = huma.TypeInteger, &zero, &highest
	case p.kind.Kind() == reflect.Int:
		one, most := 1.0, float64(p.max)
		s.Type, s.Minimum, s.Maximum = huma.TypeInteger, &one, &most
	case p.kind.Kind() == reflect.Slice:
		text = &huma.Schema{Type: huma.TypeString}
		s.Type, s.Items = huma.TypeArray, text
		if p.max > 0 {
			s.MaxItems = &p.max
		}
		explode := false
		out.Explode = &explode
	}
	if p.id != "" {
		one, most := 1, facts.MaxIDBytes
		text.MinLength, text.MaxLength = &one, &most
	}
	for _, word := range p.enum {
		text.Enum = append(text.Enum, word)
	}
	return out
}

const maxCounter = 1<<53 - 1

// decodeParams fills in a struct. Unknown and repeated parameters are refused: a filter that is
// misspelled must not answer with everything.
func decodeParams(
	params []param, path map[string]string, rawQuery string, into reflect.Value,
) error {
	query, err := splitQuery(rawQuery)
	if err != nil {
		return err
	}
	for i := range params {
		p := &params[i]
		raw, found := path[p.name], p.in == "path"
		if !found {
			raw, found = query[p.name]
			delete(query, p.name)
		}
		if !found {
			continue
		}
		if err := p.set(raw, into.FieldByIndex(p.index)); err != nil {
			return err
		}
	}
	for name := range query {
		return refuse(CodeInvalidRequest, "unknown parameter %q", shorten(name))
	}
	return nil
}

// splitQuery keeps values escaped, since a list is split before its elements are decoded.
func splitQuery(raw string) (map[string]string, error) {
	query := map[string]string{}
	if len(raw) > maxQueryText {
		return nil, refuse(CodeInvalidRequest, "the query is longer than %d bytes", maxQueryText)
	}
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(key)
		if err != nil {
			return nil, refuse(CodeInvalidRequest, "a parameter's name is not escaped correctly")
		}
		if _, twice := query[name]; twice {
			return nil, refuse(CodeInvalidRequest, "parameter %q stands twice", shorten(name))
		}
		query[name] = value
	}
	return query, nil
}

// set decodes one value. Path segments are decoded already.
func (p *param) set(raw string, into reflect.Value) error {
	if p.kind.Kind() == reflect.Slice {
		return p.setList(raw, into)
	}
	text, err := p.text(raw)
	if err != nil {
		return err
	}
	switch {
	case p.kind == counterType:
		var c strict.Counter
		if err := c.UnmarshalJSON([]byte(text)); err != nil {
			return fmt.Errorf("parameter %s: %w", p.name, err)
		}
		into.SetUint(uint64(c))
	case p.kind.Kind() == reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > p.max {
			return refuse(CodeInvalidRequest, "parameter %s: an integer from 1 to %d is needed",
				p.name, p.max)
		}
		into.SetInt(int64(n))
	default:
		into.SetString(text)
	}
	return nil
}

func (p *param) setList(raw string, into reflect.Value) error {
	if raw == "" {
		return refuse(CodeInvalidRequest, "parameter %s is empty", p.name)
	}
	elements := strings.Split(raw, ",")
	if p.max > 0 && len(elements) > p.max {
		return refuse(CodeInvalidRequest, "parameter %s has more than %d elements", p.name, p.max)
	}
	list := reflect.MakeSlice(p.kind, len(elements), len(elements))
	for i, element := range elements {
		text, err := p.text(element)
		if err != nil {
			return err
		}
		list.Index(i).SetString(text)
	}
	into.Set(list)
	return nil
}

// text decodes one text and checks it.
func (p *param) text(raw string) (string, error) {
	text := raw
	if p.in == "query" {
		var err error
		if text, err = url.QueryUnescape(raw); err != nil {
			return "", refuse(CodeInvalidRequest, "parameter %s is not escaped correctly", p.name)
		}
	}
	switch {
	case p.id != "":
		if err := facts.CheckID(p.id, text); err != nil {
			return "", err
		}
	case !utf8.ValidString(text):
		return "", refuse(CodeInvalidRequest, "parameter %s is not valid UTF-8", p.name)
	}
	if len(p.enum) > 0 && !slices.Contains(p.enum, text) {
		return "", refuse(CodeInvalidRequest, "parameter %s must be one of %s", p.name,
			strings.Join(p.enum, ", "))
	}
	return text, nil
}

func shorten(text string) string {
	const most = 64
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
