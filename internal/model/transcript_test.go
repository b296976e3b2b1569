package model

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A transcript is a text file of cases. In a case, a line is an operation as
// [ParseOp] reads it, which must be accepted and change something; "=operation" is
// accepted and must change nothing; "!word operation" must be refused (word: invalid,
// notfound, future, forbidden, conflict, mismatch, replaced). "? B s1 unread=1" checks values,
// "? B messages=1 has=true" a badge, "? A log s1 1=- 2=1x" the revisions of entries
// ("-": none, "x": removed). "== name" starts a new case in an empty world, # a comment.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		runTranscript(t, filepath.Base(file), string(text))
	}
}

func runTranscript(t *testing.T, file, text string) {
	var names []string
	cases := map[string][]string{}
	for i, raw := range strings.Split(text, "\n") {
		raw, _, _ = strings.Cut(raw, "#")
		raw = strings.TrimSpace(raw)
		name, isName := strings.CutPrefix(raw, "== ")
		switch {
		case raw == "":
		case isName:
			if cases[name] != nil {
				t.Fatalf("%s:%d: case %q twice", file, i+1, name)
			}
			names = append(names, name)
			cases[name] = []string{}
		case len(names) == 0:
			t.Fatalf("%s:%d: line before the first case", file, i+1)
		default:
			last := names[len(names)-1]
			cases[last] = append(cases[last], fmt.Sprintf("%s:%d: %s", file, i+1, raw))
		}
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(file, ".txt")+"/"+name, func(t *testing.T) {
			w := New()
			for _, line := range cases[name] {
				at, what, _ := strings.Cut(line, ": ")
				if err := runLine(w, what); err != nil {
					t.Fatalf("%s: %s\n%v", at, what, err)
				}
			}
		})
	}
}

var refusals = map[string]error{
	"invalid": ErrInvalid, "notfound": ErrNotFound, "future": ErrFuture,
	"conflict": ErrConflict, "mismatch": ErrMismatch, "replaced": ErrReplaced,
	"forbidden": ErrForbidden,
}

func runLine(w *World, text string) error {
	if question, ok := strings.CutPrefix(text, "?"); ok {
		return check(w, strings.Fields(question))
	}
	var want error
	still := false
	if rest, ok := strings.CutPrefix(text, "!"); ok {
		word, op, _ := strings.Cut(rest, " ")
		if want = refusals[word]; want == nil {
			return fmt.Errorf("unknown refusal %q", word)
		}
		text = op
	} else if rest, ok := strings.CutPrefix(text, "="); ok {
		still, text = true, rest
	}
	op, err := ParseOp(text)
	if err != nil {
		return err
	}
	out, err := w.Apply(op)
	switch {
	case !errors.Is(err, want):
		return fmt.Errorf("got error %v, want %v", err, want) //nolint:errorlint // each may be nil
	case want == nil && err != nil:
		return err
	case still && out.Changed:
		return errors.New("changed something")
	case want == nil && !still && !out.Changed && op.Kind != OpAdvanceClock:
		return errors.New("changed nothing")
	}
	return nil
}

// check compares the words of a question with those that the world would print.
func check(w *World, words []string) error {
	m, err := parseMember(words[0])
	if err != nil {
		return err
	}
	wants := words[1:]
	var have []string
	show := ""
	if wants[0] == "log" {
		have, wants = logWords(w, wants[1]), wants[2:]
		if len(have) != len(wants) {
			return fmt.Errorf("%d entries: %v", len(have), have)
		}
	} else if s, err := parseScope(wants[0]); err == nil {
		wants = wants[1:]
		x := w.Explain(m, s)
		have = append(strings.Fields(x.Values.String()), "revs="+revs(x.Counted),
			"named="+revs(x.Directed), "effective="+digits(x.Row.Effective),
			fmt.Sprintf("epoch=%d", x.Row.Epoch), "follow="+x.Row.Follow.String())
		show = x.String()
	} else {
		b := w.Badge(m)
		have = strings.Fields(fmt.Sprintf("messages=%d conversations=%d attention=%d has=%t",
			b.Messages, b.Conversations, b.Attention, w.HasUnread(m)))
	}
	for _, want := range wants {
		if !slices.Contains(have, want) {
			return fmt.Errorf("no %s in %v\n%s", want, have, show)
		}
	}
	return nil
}

func logWords(w *World, scope string) []string {
	s, _ := parseScope(scope)
	var words []string
	for _, e := range w.Entries(s) {
		word := digits(e.Seq) + "=-"
		if e.Revision > 0 {
			word = digits(e.Seq) + "=" + digits(e.Revision)
		}
		if !e.Live {
			word += "x"
		}
		words = append(words, word)
	}
	return words
}

func revs(list []Revision) string {
	words := make([]string, len(list))
	for i, r := range list {
		words[i] = digits(r)
	}
	return strings.Join(words, ",")
}
