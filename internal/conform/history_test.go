package conform_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/tidemark-im/tidemark/conformance"
	"github.com/tidemark-im/tidemark/internal/conform/histories"
	"github.com/tidemark-im/tidemark/internal/conform/written"
)

func historyCases(t *testing.T) []conformance.HistoryCase {
	t.Helper()
	suites, err := conformance.LoadHistories()
	if err != nil {
		t.Fatal(err)
	}
	var out []conformance.HistoryCase
	for _, s := range suites {
		out = append(out, s.Cases...)
	}
	return out
}

// The histories in the repository are what the oracle says today.
func TestHistoriesAreFresh(t *testing.T) {
	const dir = "../../conformance/cases/readstate"
	suites, err := histories.Make()
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]bool{}
	for _, s := range suites {
		want, err := written.History(s)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, s.Suite+".json")
		made[name] = true
		got, err := os.ReadFile(name)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what is made today; write it by go generate ./internal/conform (%v)", name, err)
		}
	}
	there, err := filepath.Glob(dir + "/*")
	if err != nil || len(there) != len(made) {
		t.Errorf("%d files are there, %d are made: %v", len(there), len(made), err)
	}
}

// Every type of operation happens, and is accepted.
func TestHistoriesCoverEveryOperation(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range historyCases(t) {
		for _, s := range c.Steps {
			if s.Expect.Result == "applied" {
				seen[s.Op.Type] = true
			}
		}
	}
	for _, op := range []string{
		"create", "post", "edit", "delete", "rewind", "trim", "move", "expire", "join", "leave", "show",
		"hide", "read", "readAll", "unread", "level", "follow", "unfollow", "archive", "unarchive", "block",
		"unblock", "activity", "readActivity", "run", "merge", "fork",
	} {
		if !seen[op] {
			t.Errorf("no history has %s", op)
		}
	}
}

// astray is a counter that is wrong at one step.
type astray struct {
	conformance.Counter
	steps, at int
	answer    func(*conformance.HistoryAnswer)
	rows      func([]conformance.Row) []conformance.Row
	badges    func([]conformance.Badge) []conformance.Badge
}

func (a *astray) Apply(
	op *conformance.HistoryOp, expected *conformance.HistoryAnswer,
) (conformance.HistoryAnswer, error) {
	a.steps++
	got, err := a.Counter.Apply(op, expected)
	if a.steps == a.at && a.answer != nil {
		a.answer(&got)
	}
	return got, err
}

func (a *astray) Rows() ([]conformance.Row, error) {
	got, err := a.Counter.Rows()
	if a.steps == a.at && a.rows != nil {
		got = a.rows(got)
	}
	return got, err
}

func (a *astray) Badges() ([]conformance.Badge, error) {
	got, err := a.Counter.Badges()
	if a.steps == a.at && a.badges != nil {
		got = a.badges(got)
	}
	return got, err
}

// remembered is what a counter says, to be said again without counting.
type remembered struct {
	conformance.Counter // nil when it says it again
	answers             []conformance.HistoryAnswer
	rows                [][]conformance.Row
	badges              [][]conformance.Badge
	next                int
}

func (r *remembered) again() *remembered {
	return &remembered{answers: r.answers, rows: r.rows, badges: r.badges}
}

func (r *remembered) Apply(
	op *conformance.HistoryOp, expected *conformance.HistoryAnswer,
) (conformance.HistoryAnswer, error) {
	r.next++
	if r.Counter == nil {
		return r.answers[r.next-1], nil
	}
	got, err := r.Counter.Apply(op, expected)
	r.answers = append(r.answers, got)
	return got, err
}

func (r *remembered) Rows() ([]conformance.Row, error) {
	if r.Counter == nil {
		return slices.Clone(r.rows[r.next-1]), nil
	}
	got, err := r.Counter.Rows()
	r.rows = append(r.rows, got)
	return got, err
}

func (r *remembered) Badges() ([]conformance.Badge, error) {
	if r.Counter == nil {
		return slices.Clone(r.badges[r.next-1]), nil
	}
	got, err := r.Counter.Badges()
	r.badges = append(r.badges, got)
	return got, err
}

// wrongField changes a field of a struct into another value.
func wrongField(of any, field int) {
	switch f := reflect.ValueOf(of).Elem().Field(field); f.Kind() {
	case reflect.Int64:
		f.SetInt(f.Int() + 1)
	case reflect.Bool:
		f.SetBool(!f.Bool())
	case reflect.String:
		f.SetString(f.String() + "?")
	case reflect.Slice:
		f.Set(reflect.MakeSlice(f.Type(), f.Len()+1, f.Len()+1))
	case reflect.Struct:
		wrongField(f.Addr().Interface(), 0)
	}
}

// wrongAnswers are ways in which a step can be wrong; n chooses among them.
func wrongAnswers(n int, s *conformance.HistoryStep) []*astray {
	var out []*astray
	for field := range reflect.TypeFor[conformance.HistoryAnswer]().NumField() {
		out = append(out, &astray{answer: func(a *conformance.HistoryAnswer) { wrongField(a, field) }})
	}
	for i, r := range s.Expect.Rows {
		// Rows are compared as a whole: over all steps each field has its turn.
		of := reflect.TypeFor[conformance.Row]().NumField()
		for _, field := range []int{n % of, (n + i + 5) % of} {
			out = append(out, &astray{rows: func(rows []conformance.Row) []conformance.Row {
				for i := range rows {
					if rows[i].RowID == r.RowID {
						wrongField(&rows[i], field)
					}
				}
				return rows
			}})
		}
	}
	for _, gone := range s.Expect.Gone {
		out = append(out, &astray{rows: func(rows []conformance.Row) []conformance.Row {
			return append(rows, conformance.Row{RowID: gone})
		}})
	}
	for _, b := range s.Expect.Badges {
		out = append(out, &astray{badges: func(all []conformance.Badge) []conformance.Badge {
			for i := range all {
				if all[i].Member == b.Member {
					all[i].Messages++
					return all
				}
			}
			return append(all, conformance.Badge{Member: b.Member, Messages: 1})
		}})
	}
	return out
}

// Whatever a history says, it notices when that is not so. Histories by chance are long, and what
// compares them is the same: they are altered in a few places.
func TestEveryHistoryCanFail(t *testing.T) {
	altered := 0
	for n, c := range historyCases(t) {
		truth := &remembered{Counter: histories.NewOracle()}
		if r, err := conformance.RunHistory(truth, &c); err != nil || !r.OK() {
			t.Fatalf("%s: %+v, %v", c.ID, r, err)
		}
		step := 1
		if len(c.Steps) > 30 {
			step = 17 + n%5
		}
		for i := 0; i < len(c.Steps); i += step {
			for _, wrong := range wrongAnswers(altered, &c.Steps[i]) {
				altered++
				wrong.Counter, wrong.at = truth.again(), i+1
				if r, err := conformance.RunHistory(wrong, &c); err != nil || r.OK() || r.Step != i+1 {
					t.Errorf("%s, step %d: nobody notices: %+v, %v", c.ID, i+1, r, err)
				}
			}
		}
	}
	t.Logf("%d alterations, each noticed", altered)
}

// What a step does not name is compared, too.
func TestRowsThatChangeUnnamedFail(t *testing.T) {
	c := historyCases(t)[0]
	last := len(c.Steps)
	wrong := &astray{
		Counter: histories.NewOracle(), at: last,
		rows: func(rows []conformance.Row) []conformance.Row { return rows[1:] },
	}
	if r, err := conformance.RunHistory(wrong, &c); err != nil || r.OK() || r.Step != last {
		t.Errorf("a row goes unnoticed: %+v, %v", r, err)
	}
}

// The oracle itself plays the files, read back.
func TestTheOracleConforms(t *testing.T) {
	for _, c := range historyCases(t) {
		if r, err := conformance.RunHistory(histories.NewOracle(), &c); err != nil || !r.OK() {
			t.Errorf("%s: %+v, %v", c.ID, r, err)
		}
	}
}
