package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds nesting, payloads included: no reader should need more stack for our data.
const maxDepth = 64

// Error says what is wrong with a text, and where.
type Error struct {
	Path   string // as in members[3].id; empty for the text as a whole
	Reason string
}

func (e *Error) Error() string {
	if e.Path == "" {
		return e.Reason
	}
	return e.Path + ": " + e.Reason
}

// Decode checks data against the type of *into, then fills it in. The error is an *Error, or
// what a type's own UnmarshalJSON answered. The value is unspecified after an error.
func Decode(data []byte, into any) error {
	t := reflect.TypeOf(into)
	if t == nil || t.Kind() != reflect.Pointer {
		panic("strict: Decode needs a pointer")
	}
	s := scanner{data: data}
	s.space()
	if s.value(shapeOf(t.Elem())) {
		s.space()
		if s.at < len(s.data) {
			s.fail("something stands behind the value")
		}
	}
	if s.err != nil {
		return s.err
	}
	err := json.Unmarshal(data, into)
	var refusal *Error
	if err != nil && !errors.Is(err, ErrUnsafe) && !errors.As(err, &refusal) {
		return &Error{Reason: err.Error()}
	}
	return err
}

// scanner walks over the text once. After a failure it stands still.
type scanner struct {
	data  []byte
	at    int
	depth int
	path  []string
	err   *Error
}

func (s *scanner) fail(format string, args ...any) bool {
	if s.err == nil {
		s.err = &Error{
			Path:   strings.TrimPrefix(strings.Join(s.path, ""), "."),
			Reason: fmt.Sprintf(format, args...),
		}
	}
	return false
}

func (s *scanner) space() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// next returns the byte at the present position, 0 at the end.
func (s *scanner) next() byte {
	if s.at < len(s.data) {
		return s.data[s.at]
	}
	return 0
}

func (s *scanner) value(sh *shape) bool {
	if s.depth++; s.depth > maxDepth {
		return s.fail("nested deeper than %d", maxDepth)
	}
	defer func() { s.depth-- }()
	c := s.next()
	switch {
	case c == 0 && s.at >= len(s.data):
		return s.fail("the text ends too early")
	case c == 'n':
		return s.word("null") && (sh.nullable || s.fail("must not be null"))
	case c == '{':
		return s.expect(sh, object, "an object") && s.object(sh)
	case c == '[':
		return s.expect(sh, list, "a list") && s.list(sh)
	case c == '"':
		return s.expect(sh, text, "a text") && s.text(sh)
	case c == 't':
		return s.expect(sh, boolean, "a truth value") && s.word("true")
	case c == 'f':
		return s.expect(sh, boolean, "a truth value") && s.word("false")
	case c == '-' || c >= '0' && c <= '9':
		return s.expect(sh, integer, "a number") && s.number(sh)
	}
	return s.fail("not JSON: unexpected %q", c)
}

func (s *scanner) expect(sh *shape, k kind, what string) bool {
	if sh.kind == k || sh.kind == anyValue || sh.kind == own {
		return true
	}
	return s.fail("must not be %s", what)
}

func (s *scanner) word(w string) bool {
	if !strings.HasPrefix(string(s.data[s.at:min(s.at+len(w), len(s.data))]), w) {
		return s.fail("not JSON")
	}
	s.at += len(w)
	return true
}

var freeValue = &shape{kind: anyValue, nullable: true}

func (s *scanner) object(sh *shape) bool {
	s.at++ // {
	var seen uint64
	var names map[string]struct{} // of an object without a known shape
	for s.space(); s.next() != '}'; {
		if s.next() != '"' {
			return s.fail("not JSON: a key must be a text")
		}
		name, ok := s.quoted()
		if !ok {
			return false
		}
		inner := freeValue
		var twice bool
		if sh.kind == object {
			f, known := sh.fields[name]
			if !known {
				return s.fail("unknown field %s", strconv.Quote(shorten(name)))
			}
			twice = seen&(1<<f.at) != 0
			seen |= 1 << f.at
			inner = f.shape
		} else {
			if names == nil {
				names = map[string]struct{}{}
			}
			_, twice = names[name]
			names[name] = struct{}{}
		}
		if twice {
			return s.fail("field %s stands twice", strconv.Quote(shorten(name)))
		}
		if s.space(); s.next() != ':' {
			return s.fail("not JSON: a colon is missing")
		}
		s.at++
		s.space()
		s.path = append(s.path, "."+shorten(name))
		if !s.value(inner) {
			return false
		}
		s.path = s.path[:len(s.path)-1]
		if !s.separator('}') {
			return false
		}
	}
	s.at++
	for _, name := range sh.required {
		if seen&(1<<sh.fields[name].at) == 0 {
			return s.fail("field %q is missing", name)
		}
	}
	return true
}

// separator takes a comma, which must be followed by another element, or stands before the end.
func (s *scanner) separator(end byte) bool {
	s.space()
	switch s.next() {
	case end:
		return true
	case ',':
		s.at++
		s.space()
		return s.next() != end || s.fail("not JSON: nothing follows a comma")
	}
	if s.at >= len(s.data) {
		return s.fail("the text ends too early")
	}
	return s.fail("not JSON: a comma is missing")
}

func (s *scanner) list(sh *shape) bool {
	s.at++ // [
	item := freeValue
	if sh.kind == list {
		item = sh.item
	}
	n := 0
	for s.space(); s.next() != ']'; n++ {
		if sh.maxItems > 0 && n == sh.maxItems {
			return s.fail("more than %d elements", sh.maxItems)
		}
		s.path = append(s.path, "["+strconv.Itoa(n)+"]")
		if !s.value(item) {
			return false
		}
		s.path = s.path[:len(s.path)-1]
		if !s.separator(']') {
			return false
		}
	}
	s.at++
	return true
}

func (s *scanner) text(sh *shape) bool {
	v, ok := s.quoted()
	if !ok {
		return false
	}
	if len(sh.enum) > 0 && !slices.Contains(sh.enum, v) {
		return s.fail("must be one of %s", strings.Join(sh.enum, ", "))
	}
	return true
}

// quoted reads a text. Its value is exact unless it holds escapes, which are resolved by
// encoding/json.
func (s *scanner) quoted() (string, bool) {
	start := s.at
	s.at++
	plain := true
	for s.at < len(s.data) {
		c := s.data[s.at]
		switch {
		case c == '"':
			s.at++
			return s.unquote(s.data[start:s.at], plain)
		case c == '\\':
			plain = false
			if !s.escape() {
				return "", false
			}
		case c < 0x20:
			return "", s.fail("not JSON: a control character in a text")
		case c < utf8.RuneSelf:
			s.at++
		default:
			r, size := utf8.DecodeRune(s.data[s.at:])
			if r == utf8.RuneError && size == 1 {
				return "", s.fail("not valid UTF-8")
			}
			s.at += size
		}
	}
	return "", s.fail("the text ends too early")
}

func (s *scanner) unquote(quoted []byte, plain bool) (string, bool) {
	if plain {
		return string(quoted[1 : len(quoted)-1]), true
	}
	var v string
	if err := json.Unmarshal(quoted, &v); err != nil {
		return "", s.fail("not JSON: %v", err)
	}
	return v, true
}

// escape reads one escape. A surrogate must come as a pair.
func (s *scanner) escape() bool {
	s.at++
	switch s.next() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.at++
		return true
	case 'u':
	default:
		return s.fail("not JSON: unknown escape")
	}
	unit, ok := s.unit()
	switch {
	case !ok:
		return false
	case unit >= 0xDC00 && unit <= 0xDFFF:
		return s.fail("an unpaired surrogate")
	case unit < 0xD800 || unit > 0xDBFF:
		return true
	}
	if s.next() != '\\' || s.at+1 >= len(s.data) || s.data[s.at+1] != 'u' {
		return s.fail("an unpaired surrogate")
	}
	s.at++
	low, ok := s.unit()
	if ok && (low < 0xDC00 || low > 0xDFFF) {
		return s.fail("an unpaired surrogate")
	}
	return ok
}

// unit reads u and four hexadecimal digits.
func (s *scanner) unit() (uint64, bool) {
	if s.at+5 > len(s.data) {
		return 0, s.fail("the text ends too early")
	}
	n, err := strconv.ParseUint(string(s.data[s.at+1:s.at+5]), 16, 16)
	if err != nil {
		return 0, s.fail("not JSON: unknown escape")
	}
	s.at += 5
	return n, true
}

func (s *scanner) number(sh *shape) bool {
	start := s.at
	for s.at < len(s.data) && strings.IndexByte("+-.0123456789eE", s.data[s.at]) >= 0 {
		s.at++
	}
	text := s.data[start:s.at]
	if !json.Valid(text) {
		return s.fail("not JSON: not a number")
	}
	if sh.kind != integer {
		return true
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < sh.min || n > 1<<53-1 {
		return s.fail("must be an integer from %d to %d", sh.min, int64(1<<53-1))
	}
	return true
}

// shorten keeps error texts short whatever was sent.
func shorten(name string) string {
	const most = 64
	if len(name) <= most {
		return name
	}
	for i := most; ; i-- {
		if utf8.RuneStart(name[i]) {
			return name[:i] + "…"
		}
	}
}
