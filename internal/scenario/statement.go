package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// parseStatement reads one line without its indentation. Names that the line declares are added
// to known.
func parseStatement(known *names, line int, text string) (Statement, error) {
	if i := strings.Index(text, " #"); i >= 0 {
		text = strings.TrimSpace(text[:i])
	}
	rest, prepared := text, ""
	if after, ok := strings.CutPrefix(text, "prepare "); ok {
		name, call, found := strings.Cut(after, ":")
		prepared, rest = strings.TrimSpace(name), strings.TrimSpace(call)
		if !found {
			return Statement{}, errors.New(`prepare: expected "prepare NAME: read ..."`)
		}
	}
	s, words, err := splitStatement(rest)
	if err != nil {
		return s, err
	}
	s.Line, s.Text = line, text
	if err := chooseForm(&s, words); err != nil {
		return s, err
	}
	if err := known.check(&s); err != nil {
		return s, fmt.Errorf("%s: %w", s.Verb(), err)
	}
	if prepared == "" {
		return s, nil
	}
	switch s.Verb() {
	case "read", "unread", "read-all", "post", "reply", "edit", "delete":
	default:
		return s, fmt.Errorf("prepare: %s cannot be prepared", s.Verb())
	}
	if s.Answer != nil {
		return s, errors.New(`prepare: nothing is sent yet; write the answer behind "send"`)
	}
	s.slots["prepared"] = []string{prepared}
	return s, known.declare(kindCall, prepared, line)
}

// splitStatement takes fields, mentions and the answer out and leaves the words.
func splitStatement(text string) (s Statement, words []string, err error) {
	tokens := strings.Fields(text)
	for i := 0; i < len(tokens); i++ {
		token := tokens[i]
		switch {
		case token == "->":
			s.Answer, err = parseAnswer(tokens[i+1:])
			return s, words, err
		case strings.HasPrefix(token, "@"):
			for _, name := range strings.Split(token, ",") {
				name = strings.TrimPrefix(name, "@")
				if name != "" {
					s.Mentions = append(s.Mentions, name)
				}
			}
			if token == "@" {
				return s, nil, errors.New(`expected a member right after "@"`)
			}
		case strings.Contains(token, "="):
			key, value, _ := strings.Cut(token, "=")
			if key == "" || value == "" {
				return s, nil, fmt.Errorf("expected key=value without spaces, got %q", token)
			}
			if _, twice := lookup(s.Fields, key); twice {
				return s, nil, fmt.Errorf("%s= is written twice", key)
			}
			s.Fields = append(s.Fields, Field{key, value})
		case token != ":" && strings.HasSuffix(token, ":"):
			words = append(words, strings.TrimSuffix(token, ":"), ":")
		default:
			if word := strings.TrimSuffix(token, ","); word != "" {
				words = append(words, word)
			}
		}
	}
	return s, words, nil
}

func parseAnswer(tokens []string) (*Answer, error) {
	a := &Answer{}
	if len(tokens) == 0 {
		return nil, fmt.Errorf(`expected an answer after "->": %s or key=value`,
			strings.Join(outcomes, ", "))
	}
	if !strings.Contains(tokens[0], "=") {
		a.Outcome = tokens[0]
		tokens = tokens[1:]
		if !slices.Contains(outcomes, a.Outcome) {
			return nil, fmt.Errorf("expected one of %s after \"->\", got %q",
				strings.Join(outcomes, ", "), a.Outcome)
		}
	}
	if a.Outcome == "error" {
		if len(tokens) == 0 {
			return nil, errors.New(`expected an error code such as not_found after "error"`)
		}
		a.Code, tokens = tokens[0], tokens[1:]
	}
	for _, token := range tokens {
		key, value, ok := strings.Cut(token, "=")
		if !ok || value == "" {
			return nil, fmt.Errorf("expected key=value in the answer, got %q", token)
		}
		if err := answerForm.checkField(Field{key, value}); err != nil {
			return nil, fmt.Errorf("answer: %w", err)
		}
		a.Fields = append(a.Fields, Field{key, value})
	}
	return a, nil
}

// chooseForm finds the first form of the verb that fits, or reports the one that came furthest.
func chooseForm(s *Statement, words []string) error {
	if len(words) == 0 {
		return errors.New("expected an operation, got nothing but fields")
	}
	candidates := formsOf(words[0])
	if len(candidates) == 0 {
		return fmt.Errorf("expected an operation, got %q%s", words[0], suggest(words[0]))
	}
	var best *misfit
	var bestForm *form
	for _, f := range candidates {
		slots, flags, bad := f.match(words[1:])
		if bad == nil {
			s.form, s.slots, s.Flags = f, slots, flags
			return s.checkShape()
		}
		if best == nil || bad.at > best.at {
			best, bestForm = bad, f
		}
	}
	got := "the end of the line"
	if best.at+1 < len(words) {
		got = strconv.Quote(words[best.at+1])
	}
	return fmt.Errorf("%s: expected %s, got %s; the form is: %s",
		words[0], best.want, got, bestForm.pattern)
}

// checkShape checks what the form allows beside its pattern.
func (s *Statement) checkShape() error {
	for _, field := range s.Fields {
		if err := s.form.checkField(field); err != nil {
			return fmt.Errorf("%s: %w", s.Verb(), err)
		}
	}
	if len(s.Mentions) > 0 && !s.form.mentions {
		return fmt.Errorf("%s: mentions nobody, got @%s", s.Verb(), s.Mentions[0])
	}
	if s.Answer != nil && !s.form.answers {
		return fmt.Errorf("%s: has no answer to compare", s.Verb())
	}
	for slot, words := range s.slots {
		expanded, err := expandNames(words)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Verb(), err)
		}
		s.slots[slot] = expanded
	}
	switch {
	case s.Verb() == "unread" && !s.has("from") && !s.has("in"):
		return errors.New(`unread: expected "from MESSAGE" or "in SCOPE"`)
	case s.Verb() == "expect" && len(s.Fields) == 0 && !s.has("absent"):
		return fmt.Errorf("expect: expected at least one of %s", s.form.keyNames())
	case s.Verb() == "random":
		_, err := s.number("number")
		return err
	}
	return s.checkChoices()
}

func (s *Statement) checkChoices() error {
	choices := map[string][]string{
		"level": {"all", "mentions", "none", "inherit"},
		"how":   {"twice", "backwards"},
	}
	for slot, allowed := range choices {
		if word := s.one(slot); word != "" && !slices.Contains(allowed, word) {
			return fmt.Errorf("%s: expected %s, got %q", s.Verb(), describe(slot), word)
		}
	}
	if offset := s.one("offset"); offset != "" {
		if _, err := time.ParseDuration(offset); err != nil {
			return fmt.Errorf("%s: expected %s, got %q", s.Verb(), describe("offset"), offset)
		}
	}
	return nil
}

// number reads a slot that holds a count from 1 to 100,000.
func (s *Statement) number(slot string) (int, error) {
	n, err := strconv.Atoi(s.one(slot))
	if err != nil || n < 1 || n > 100_000 {
		return 0, fmt.Errorf("%s: expected a number from 1 to 100000, got %q",
			s.Verb(), s.one(slot))
	}
	return n, nil
}

var number = regexp.MustCompile(`^[0-9]{1,16}$`)

func (f *form) checkField(field Field) error {
	kind, ok := f.kindOf(field.Key)
	if !ok {
		if len(f.keys) == 0 {
			return fmt.Errorf("takes no fields, got %s=", field.Key)
		}
		return fmt.Errorf("expected one of the fields %s, got %q", f.keyNames(), field.Key)
	}
	value := field.Value
	fits := true
	want := ""
	switch kind {
	case "n":
		fits, want = number.MatchString(value), "a number"
	case "b":
		fits, want = value == "true" || value == "false", "true or false"
	case "v":
		fits, want = value == "none" || number.MatchString(value), `a number or "none"`
	case "m":
		fits = validName.MatchString(value) || number.MatchString(value)
		want = `a message, a number, "head" or "none"`
	}
	if field.Key == "via" {
		fits, want = value == "service", `"service"`
	}
	if !fits {
		return fmt.Errorf("%s=: expected %s, got %q", field.Key, want, value)
	}
	return nil
}

// suggest names a verb that differs by few letters.
func suggest(word string) string {
	best, distance := "", 6
	for _, f := range forms {
		d := 2 * editDistance(word, f.verb)
		if word[0] != f.verb[0] {
			d++ // people rarely mistake the first letter
		}
		if d < distance {
			best, distance = f.verb, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
