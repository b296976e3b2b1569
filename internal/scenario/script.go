package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// Part is a part of the product a statement can depend on beyond the unread hub itself.
// The zero value is the hub.
type Part string

// The parts that a block may name in "needs:".
const (
	Hub    Part = ""
	Client Part = "client" // client SDK or app: offline, dwell, display cap
	Push   Part = "push"   // payloads sent to push services
)

func parseParts() []Part { return []Part{Client, Push} }

// File is one parsed scenario file.
type File struct {
	Path   string   // as given to Parse
	Covers []string // scenario ids, in the order written, at least one
	Title  string
	Blocks []Block // numbered from 1 without gaps
}

// Block is a numbered part of a file, played on a workspace of its own.
type Block struct {
	Number     int
	Title      string
	Line       int
	Needs      Part // Hub when the block must pass
	Statements []Statement
}

// Field is one key=value of a statement.
type Field struct {
	Key, Value string
}

// Answer is what a statement says after "->". Outcome is "" when only fields are expected.
type Answer struct {
	Outcome string // ok, applied, unchanged, conflict, duplicate, error
	Code    string // with error only
	Fields  []Field
}

// Statement is one line of a block, matched against its form.
type Statement struct {
	Line     int
	Text     string // as written, trimmed, without comment
	form     *form
	slots    map[string][]string
	Fields   []Field
	Flags    []string
	Mentions []string // "everyone" included
	Answer   *Answer
}

// Verb is the first word of the line.
func (s *Statement) Verb() string { return s.form.verb }

// Part is the part of the product this statement exercises.
func (s *Statement) Part() Part { return s.form.part }

// one returns the word in a slot, or "" when its optional group was left out.
func (s *Statement) one(slot string) string {
	if words := s.slots[slot]; len(words) > 0 {
		return words[0]
	}
	return ""
}

// has tells whether an optional literal or slot was written.
func (s *Statement) has(word string) bool {
	_, ok := s.slots[word]
	return ok
}

func (s *Statement) field(key string) (string, bool) { return lookup(s.Fields, key) }

func (s *Statement) flag(name string) bool {
	return slices.Contains(s.Flags, name)
}

func lookup(fields []Field, key string) (string, bool) {
	for _, f := range fields {
		if f.Key == key {
			return f.Value, true
		}
	}
	return "", false
}

// SyntaxError says where a file is not in the language and what was expected there.
type SyntaxError struct {
	Path string
	Line int
	Msg  string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Msg)
}

// list splits "a,b" and leaves out empty items; "none" is the empty list.
func list(value string) []string {
	if value == "none" || value == "" {
		return nil
	}
	var out []string
	for _, item := range strings.Split(value, ",") {
		if item != "" {
			out = append(out, item)
		}
	}
	return out
}
