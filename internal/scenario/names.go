package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// nameKind says what a name of a block stands for.
type nameKind string

const (
	kindMember  nameKind = "member"
	kindDevice  nameKind = "device"
	kindScope   nameKind = "scope"
	kindMessage nameKind = "message"
	kindCall    nameKind = "prepared call"
)

// names are the names of one block. One name means one thing.
type names struct {
	known   map[string]declared
	pending map[string]int // messages used before they are posted, and the line of the use
	order   []string
}

type declared struct {
	kind nameKind
	line int
}

func newNames() *names {
	return &names{known: map[string]declared{}, pending: map[string]int{}}
}

// unresolved returns the first message that was used and never posted.
func (n *names) unresolved() (string, int) {
	for _, name := range n.order {
		if line, ok := n.pending[name]; ok {
			return name, line
		}
	}
	return "", 0
}

func (n *names) declare(kind nameKind, name string, line int) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("expected a name of letters, digits, - and _ for a %s, got %q",
			kind, name)
	}
	if reserved[name] {
		return fmt.Errorf("%q is a word of the language and cannot name a %s", name, kind)
	}
	if old, ok := n.known[name]; ok {
		return fmt.Errorf("%s is already a %s (line %d)", name, old.kind, old.line)
	}
	n.known[name] = declared{kind, line}
	delete(n.pending, name)
	return nil
}

func (n *names) require(name string, line int, kinds ...nameKind) error {
	got, ok := n.known[name]
	for _, kind := range kinds {
		if ok && got.kind == kind {
			return nil
		}
	}
	usable := validName.MatchString(name) && !reserved[name]
	if !ok && usable && slices.Contains(kinds, kindMessage) {
		if _, seen := n.pending[name]; !seen {
			n.pending[name] = line
			n.order = append(n.order, name)
		}
		return nil
	}
	want := make([]string, len(kinds))
	for i, kind := range kinds {
		want[i] = string(kind)
	}
	if ok {
		return fmt.Errorf("expected a %s, but %s is a %s (line %d)",
			strings.Join(want, " or "), name, got.kind, got.line)
	}
	return fmt.Errorf("expected a %s, but %q is not declared above",
		strings.Join(want, " or "), name)
}

// check declares and requires the names of a statement in the order the pattern has them.
func (n *names) check(s *Statement) error {
	if err := n.checkSlots(s, s.form.elements); err != nil {
		return err
	}
	for _, mention := range s.Mentions {
		if mention == "everyone" {
			continue
		}
		if err := n.require(mention, s.Line, kindMember); err != nil {
			return err
		}
	}
	if err := n.checkFields(s.form, s.Fields, s.Line); err != nil {
		return err
	}
	if s.Answer == nil {
		return nil
	}
	return n.checkFields(&answerForm, s.Answer.Fields, s.Line)
}

var answerForm = compileForms([]form{{pattern: "answer", fields: answerFields}})[0]

func (n *names) checkSlots(s *Statement, elements []element) error {
	for _, e := range elements {
		if e.optional != nil {
			if err := n.checkSlots(s, e.optional); err != nil {
				return err
			}
			continue
		}
		for _, word := range s.slots[e.slot] {
			if err := n.checkSlot(e.slot, word, s.Line); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n *names) checkSlot(slot, word string, line int) error {
	switch slot {
	case "new-member":
		return n.declare(kindMember, word, line)
	case "new-scope":
		return n.declare(kindScope, word, line)
	case "new-message":
		return n.declare(kindMessage, word, line)
	case "new-device":
		return n.declare(kindDevice, word, line)
	case "new-call":
		return n.declare(kindCall, word, line)
	case "joined", "joiner":
		if _, ok := n.known[word]; !ok {
			return n.declare(kindMember, word, line)
		}
		return n.require(word, line, kindMember)
	case "member", "followers":
		return n.require(word, line, kindMember)
	case "actor":
		return n.require(word, line, kindMember, kindDevice)
	case "device":
		return n.require(word, line, kindDevice)
	case "scope":
		return n.require(word, line, kindScope)
	case "message":
		return n.require(word, line, kindMessage)
	case "call":
		return n.require(word, line, kindCall)
	case "mark":
		if word == "head" || number.MatchString(word) {
			return nil
		}
		return n.require(word, line, kindMessage)
	}
	return nil
}

func (n *names) checkFields(f *form, fields []Field, line int) error {
	for _, field := range fields {
		kind, _ := f.kindOf(field.Key)
		var want nameKind
		values := list(field.Value)
		switch kind {
		case "m":
			want = kindMessage
			if field.Value == "head" || number.MatchString(field.Value) {
				continue
			}
		case "M":
			want = kindMessage
			var err error
			if values, err = expandNames(values); err != nil {
				return fmt.Errorf("%s=: %w", field.Key, err)
			}
		case "P":
			want = kindMember
		case "S":
			want = kindScope
		default:
			continue
		}
		for _, value := range values {
			if err := n.require(value, line, want); err != nil {
				return fmt.Errorf("%s=: %w", field.Key, err)
			}
		}
	}
	return nil
}
