package readstate_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// A transcript is a text file of cases that were worked out by hand. "== name" begins a case in
// an empty world, # a comment. The other lines are
//
//	post s1 A @B              an operation as model.ParseOp reads it, which changes something
//	=read s1 B 3 v=0          an operation that is accepted and changes nothing
//	!future read s1 B 9 v=0   one that is refused: invalid, notfound, future, conflict, ...
//	? B s1 unread=1 e=3       what B's row in s1 says; see view and rowWords, and pairWords for A.at=2
//	? B messages=1 has=true   B's badge: messages, conversations, attention, has
//
// After every operation the machine is also held against the oracle, so each number in a file
// is confirmed three times.
//
// covers: RT-116, RT-117, RT-118, RT-139, RT-157, RT-232, RT-237, RT-239
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
		base := filepath.Base(file)
		for _, c := range cases(t, base, string(text)) {
			t.Run(strings.TrimSuffix(base, ".txt")+"/"+c.name, c.run)
		}
	}
}

// TestOracleTranscripts plays the oracle's own cases on the machine. Their questions are for the
// oracle; here the two are compared after every operation. Who the recipients of a task are is
// given to the algebra, so that tasks which find them by themselves are left out.
func TestOracleTranscripts(t *testing.T) {
	files, err := filepath.Glob("../internal/model/testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts of the oracle: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases(t, filepath.Base(file), string(text)) {
			if slices.ContainsFunc(c.lines, func(s string) bool { return strings.HasSuffix(s, " planned") }) {
				continue
			}
			w, world := newMachine(), model.New()
			for i, line := range c.lines {
				if line == "" || strings.HasPrefix(line, "?") {
					continue
				}
				if err := w.perform(world, line); err != nil {
					t.Fatalf("%s:%d: %s\n%v", c.file, c.first+i, line, err)
				}
			}
		}
	}
}

type transcript struct {
	name  string
	file  string
	first int // number of the first line in the file
	lines []string
}

func cases(t *testing.T, file, text string) []*transcript {
	var all []*transcript
	names := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "== "); ok {
			if names[name] {
				t.Fatalf("%s:%d: case %q twice", file, i+1, name)
			}
			names[name] = true
			all = append(all, &transcript{name: name, file: file, first: i + 2})
			continue
		}
		if len(all) > 0 {
			c := all[len(all)-1]
			c.lines = append(c.lines, line)
		} else if line != "" {
			t.Fatalf("%s:%d: a line before the first case", file, i+1)
		}
	}
	return all
}

func (c *transcript) run(t *testing.T) {
	w, world := newMachine(), model.New()
	asked := false
	for i, line := range c.lines {
		if line == "" {
			continue
		}
		var err error
		if question, ok := strings.CutPrefix(line, "?"); ok {
			asked = true
			err = w.ask(strings.Fields(question))
		} else {
			err = w.perform(world, line)
		}
		if err != nil {
			t.Fatalf("%s:%d: %s\n%v", c.file, c.first+i, line, err)
		}
	}
	if !asked {
		t.Fatalf("%s: case %q asks nothing", c.file, c.name)
	}
}

var refusals = map[string]error{
	"invalid": model.ErrInvalid, "notfound": model.ErrNotFound, "future": model.ErrFuture,
	"conflict": model.ErrConflict, "mismatch": model.ErrMismatch, "replaced": model.ErrReplaced,
}

// perform applies the operation of a line to the oracle and the machine and compares them.
func (w *machine) perform(world *model.World, line string) error {
	var refused error
	still := false
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		word, op, _ := strings.Cut(rest, " ")
		if refused = refusals[word]; refused == nil {
			return fmt.Errorf("no refusal %q", word)
		}
		line = op
	} else if rest, ok := strings.CutPrefix(line, "="); ok {
		still, line = true, rest
	}
	op, err := model.ParseOp(line)
	if err != nil {
		return err
	}
	out, verdict := world.Apply(op)
	switch {
	case !errors.Is(verdict, refused):
		return fmt.Errorf("%s, not %s", said(verdict), said(refused))
	case refused == nil && verdict != nil:
		return verdict
	case still && out.Changed:
		return errors.New("changed something")
	case refused == nil && !still && !out.Changed && op.Kind != model.OpAdvanceClock:
		return errors.New("changed nothing")
	}
	if err := w.apply(op, out, verdict); err != nil {
		return err
	}
	return w.compare(world)
}

// ask compares the words of a question with those that the machine prints.
func (w *machine) ask(words []string) error {
	m, err := parseMember(words[0])
	if err != nil {
		return err
	}
	wants := words[1:]
	var have []string
	if in, err := parseScope(wants[0]); err == nil {
		wants = wants[1:]
		if have, err = w.rowWords(m, in); err != nil {
			return err
		}
	} else {
		have = w.badgeWords(m)
	}
	for _, want := range wants {
		if !slices.Contains(have, want) {
			return fmt.Errorf("no %s in\n%s", want, strings.Join(have, " "))
		}
	}
	return nil
}

// rowWords prints everything about a row: what is served, its facts, its point and its pairs.
func (w *machine) rowWords(m member, in model.ScopeID) ([]string, error) {
	s := w.scopes[in]
	if s == nil || s.rows[m] == nil {
		return []string{"exists=false"}, nil
	}
	values, shown, err := s.present(m)
	if err != nil {
		return nil, err
	}
	r, terms := s.rows[m], s.terms(m)
	p, a := r.Point, r.Activity
	own, err := terms.Own()
	if err != nil {
		return nil, err
	}
	have := strings.Fields("exists=true " + s.view(m, values, shown).String())
	have = append(have, strings.Fields(fmt.Sprintf(
		"e=%d base=%d floor=%d author=%d principal=%d ownremoved=%d owneveryone=%d direct=%d targets=%d "+
			"authorhead=%d principalhead=%d own=%d removed=%d everyone=%d "+
			"signalhead=%d signalat=%d actorat=%d activitytargets=%d",
		p.E, p.Base(s.floor), s.floor, p.AuthorRank, p.PrincipalRank, p.OwnRemoved, p.OwnEveryone,
		p.Direct, p.Targets, terms.Writer.AuthorHead, terms.Writer.PrincipalHead, own, terms.Removed,
		terms.Everyone, s.signalHead, a.SignalAt, a.ActorAt, a.Targets))...)
	for x, b := range s.pairs[m] {
		have = append(have, pairWords(model.MemberID(x), b)...)
	}
	return append(have, fmt.Sprintf("pairs=%d", len(s.pairs[m]))), nil
}

// pairWords prints what a blocked member contributes, each word with the member's letter.
func pairWords(x model.MemberID, b *readstate.Pair) []string {
	words := strings.Fields(fmt.Sprintf(
		"head=%d at=%d removed=%d overlap=%d direct=%d targets=%d everyone=%d "+
			"acted=%d actedat=%d activitytargets=%d",
		b.AuthorHead, b.AuthorAt, b.Removed, b.Overlap, b.Direct, b.Targets, b.Everyone,
		b.ActorHead, b.ActorAt, b.ActivityTargets))
	for i := range words {
		words[i] = x.String() + "." + words[i]
	}
	return words
}

func (w *machine) badgeWords(m member) []string {
	var b readstate.Badge
	for _, s := range w.scopes {
		if s.rows[m] != nil {
			_, shown, _ := s.present(m) // compared with the oracle already
			b.Add(shown)
		}
	}
	return strings.Fields(fmt.Sprintf("messages=%d conversations=%d attention=%d has=%t",
		b.Messages, b.Conversations, b.Attention, b.Conversations > 0))
}

// parseMember and parseScope read a name through an operation, which has the grammar of names.
func parseMember(word string) (member, error) {
	op, err := model.ParseOp("leave s1 " + word)
	return member(op.Member), err
}

func parseScope(word string) (model.ScopeID, error) {
	op, err := model.ParseOp("archive " + word)
	return op.Scope, err
}
