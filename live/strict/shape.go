package strict

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

type kind uint8

const (
	anyValue kind = iota
	object
	list
	text
	boolean
	integer
	own // the type's own UnmarshalJSON decides
)

// shape is what a value may look like.
type shape struct {
	kind     kind
	nullable bool
	fields   map[string]*field // object
	required []string
	item     *shape   // list
	maxItems int      // list, 0 for no limit
	enum     []string // text
	min      int64    // integer
}

type field struct {
	shape *shape
	at    int // bit in the set of keys seen
}

var (
	shapes        sync.Map // reflect.Type -> *shape
	rawMessage    = reflect.TypeFor[json.RawMessage]()
	unmarshalerOf = reflect.TypeFor[json.Unmarshaler]()
)

func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s := describe(t)
	shapes.Store(t, s)
	return s
}

func describe(t reflect.Type) *shape {
	switch {
	case t == rawMessage:
		return &shape{kind: anyValue, nullable: true}
	case t.Kind() == reflect.Pointer:
		s := *describe(t.Elem())
		s.nullable = true
		return &s
	case reflect.PointerTo(t).Implements(unmarshalerOf):
		return &shape{kind: own}
	}
	switch t.Kind() {
	case reflect.Struct:
		s := &shape{kind: object, fields: map[string]*field{}}
		s.addFields(t)
		return s
	case reflect.Slice:
		return &shape{kind: list, item: describe(t.Elem())}
	case reflect.String:
		return &shape{kind: text}
	case reflect.Bool:
		return &shape{kind: boolean}
	case reflect.Int, reflect.Int64:
		return &shape{kind: integer, min: -1 << 53}
	case reflect.Uint64:
		return &shape{kind: integer}
	}
	panic(fmt.Sprintf("strict: no shape for %s", t))
}

func (s *shape) addFields(t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Tag.Get("json") == "" {
			s.addFields(f.Type)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "" || name == "-" {
			continue
		}
		fs := *describe(f.Type)
		if enum := f.Tag.Get("enum"); enum != "" {
			fs.enum = strings.Split(enum, ",")
		}
		if most := f.Tag.Get("maxItems"); most != "" {
			n, err := strconv.Atoi(most)
			if err != nil {
				panic(fmt.Sprintf("strict: maxItems of %s.%s: %v", t, f.Name, err))
			}
			fs.maxItems = n
		}
		s.fields[name] = &field{shape: &fs, at: len(s.fields)}
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			s.required = append(s.required, name)
		}
	}
	if len(s.fields) > 64 {
		panic(fmt.Sprintf("strict: %s has more than 64 fields", t))
	}
}
