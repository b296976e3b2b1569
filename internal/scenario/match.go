package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// misfit says how far a form followed the words and what it wanted next.
type misfit struct {
	at   int // index of the word that did not fit
	want string
}

// match follows the pattern over the words after the verb. Trailing words that are flags of the
// form are taken off first.
func (f *form) match(words []string) (slots map[string][]string, flags []string, bad *misfit) {
	known := strings.Fields(f.flags)
	for len(words) > 0 && slices.Contains(known, words[len(words)-1]) {
		flags = append(flags, words[len(words)-1])
		words = words[:len(words)-1]
	}
	m := matcher{words: words, slots: map[string][]string{}}
	if bad := m.run(f.elements, nil); bad != nil {
		return nil, nil, bad
	}
	if m.at < len(words) {
		m.skipped = append(m.skipped, "the end of the line")
		return nil, nil, &misfit{m.at, strings.Join(m.skipped, " or ")}
	}
	return m.slots, flags, nil
}

type matcher struct {
	words []string
	at    int
	slots map[string][]string

	skipped []string // literals of optional groups that could have begun at the word at
}

// run matches elements; after holds the literals that may follow them.
func (m *matcher) run(elements []element, after []string) *misfit {
	for i, e := range elements {
		next := append(firstLiterals(elements[i+1:]), after...)
		switch {
		case e.optional != nil:
			if !m.begins(e.optional[0]) {
				m.skipped = append(m.skipped, strconv.Quote(e.optional[0].literal))
				continue
			}
			if bad := m.run(e.optional, next); bad != nil {
				return bad
			}
		case e.literal != "":
			if m.at >= len(m.words) || m.words[m.at] != e.literal {
				return &misfit{m.at, fmt.Sprintf("%q", e.literal)}
			}
			m.slots[e.literal] = nil
			m.step()
		case m.at >= len(m.words) || reserved[m.words[m.at]] && !freeSlot(e.slot):
			return &misfit{m.at, describe(e.slot)}
		case e.many:
			m.takeMany(e, next)
		default:
			m.slots[e.slot] = []string{m.words[m.at]}
			m.step()
		}
	}
	return nil
}

func (m *matcher) step() { m.at, m.skipped = m.at+1, nil }

func (m *matcher) begins(e element) bool {
	if m.at >= len(m.words) {
		return false
	}
	return e.slot != "" || m.words[m.at] == e.literal
}

func (m *matcher) takeMany(e element, stop []string) {
	for m.at < len(m.words) && !slices.Contains(stop, m.words[m.at]) {
		m.slots[e.slot] = append(m.slots[e.slot], m.words[m.at])
		m.step()
	}
}

// firstLiterals lists the literals that can come next.
func firstLiterals(elements []element) []string {
	var out []string
	for _, e := range elements {
		if e.optional != nil {
			out = append(out, firstLiterals(e.optional)...)
			continue
		}
		if e.literal != "" {
			out = append(out, e.literal)
		}
		break
	}
	return out
}

// freeSlot tells whether any word may stand there, reserved ones included.
func freeSlot(slot string) bool {
	switch slot {
	case "level", "how", "action", "tag", "type", "mark", "offset":
		return true
	}
	return false
}

func describe(slot string) string {
	switch slot {
	case "new-member", "joined", "followers", "joiner":
		return "the name of a member"
	case "actor":
		return "a member or a device"
	case "mark":
		return `a message, a rank or "head"`
	case "level":
		return "all, mentions, none or inherit"
	case "how":
		return "twice or backwards"
	case "offset":
		return "a time such as +3h or -2s"
	case "call":
		return "the name of something prepared or opened"
	}
	return "a " + strings.ReplaceAll(slot, "-", " ")
}
