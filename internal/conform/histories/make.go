package histories

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"

	_ "embed" // the named histories

	"github.com/tidemark-im/tidemark/conformance"
	"github.com/tidemark-im/tidemark/internal/model"
)

//go:embed named.txt
var named string

// Make returns the suites that are written to conformance/cases/readstate.
func Make() ([]conformance.HistorySuite, error) {
	out, err := parseNamed(named)
	if err != nil {
		return nil, err
	}
	for _, g := range []struct {
		name, about string
		mix         model.Mix
		covers      []string
	}{
		{
			"random-hubs", "Histories of channels, threads and direct conversations by chance.",
			model.HubMix(), []string{"RT-116", "RT-117", "RT-118", "RT-138", "RT-139"},
		},
		{
			"random-workspaces", "Histories that have tasks, sessions and activities as well.",
			model.FullMix(), []string{"RT-116", "RT-117", "RT-118", "RT-138", "RT-139"},
		},
	} {
		suite, err := random(g.name, g.about, g.mix, g.covers)
		if err != nil {
			return nil, err
		}
		out = append(out, suite)
	}
	return out, nil
}

const (
	randomCases = 14 // of each mix
	randomSteps = 30
)

// random draws histories from seeds.
func random(
	name, about string, mix model.Mix, covers []string,
) (conformance.HistorySuite, error) {
	suite := conformance.HistorySuite{Suite: name, About: about}
	for seed := range uint64(randomCases) {
		rng := rand.New(rand.NewPCG(seed, uint64(len(name))))
		c, err := play(model.RandomOps(rng, randomSteps, mix))
		if err != nil {
			return suite, fmt.Errorf("%s, seed %d: %w", name, seed, err)
		}
		c.Head = conformance.Head{
			ID: fmt.Sprintf("%s-%02d", name, seed+1), Covers: covers,
			About: fmt.Sprintf("What was drawn from seed %d.", seed),
		}
		suite.Cases = append(suite.Cases, c)
	}
	return suite, nil
}

// play lets the oracle say what each operation does.
func play(ops []model.Op) (conformance.HistoryCase, error) {
	var c conformance.HistoryCase
	o := NewOracle()
	rows, badges := map[conformance.RowID]conformance.Row{}, map[string]conformance.Badge{}
	for _, op := range ops {
		s := conformance.HistoryStep{Op: FromModel(op)}
		back, err := ToModel(&s.Op)
		if err != nil || back.String() != op.String() {
			return c, fmt.Errorf("%s: comes back as %s, %w", op, back, err)
		}
		if s.Expect.HistoryAnswer, err = o.Apply(&s.Op, nil); err != nil {
			return c, fmt.Errorf("%s: %w", op, err)
		}
		if err := changes(o, &s.Expect, rows, badges); err != nil {
			return c, fmt.Errorf("%s: %w", op, err)
		}
		c.Steps = append(c.Steps, s)
	}
	return c, nil
}

// changes notes what is another than before.
func changes(
	o *Oracle, to *conformance.HistoryExpect,
	rows map[conformance.RowID]conformance.Row, badges map[string]conformance.Badge,
) error {
	now, err := o.Rows()
	if err != nil {
		return err
	}
	there := map[conformance.RowID]bool{}
	for _, r := range now {
		there[r.RowID] = true
		if before, known := rows[r.RowID]; !known || before != r {
			to.Rows = append(to.Rows, r)
			rows[r.RowID] = r
		}
	}
	var folds []conformance.Badge
	for _, m := range o.World.MemberIDs() {
		b := o.World.Badge(m)
		folds = append(folds, conformance.Badge{
			Member: m.String(), Messages: int64(b.Messages),
			Conversations: int64(b.Conversations), Attention: int64(b.Attention),
		})
		for _, s := range o.World.ScopeIDs() {
			id := conformance.RowID{Member: m.String(), Scope: s.String()}
			if _, known := rows[id]; known && !there[id] {
				to.Gone = append(to.Gone, id)
				delete(rows, id)
			}
		}
	}
	for _, b := range folds {
		before, known := badges[b.Member]
		if !known {
			before = conformance.Badge{Member: b.Member}
		}
		if before != b {
			to.Badges = append(to.Badges, b)
			badges[b.Member] = b
		}
	}
	return nil
}

var heading = regexp.MustCompile(`^== ([a-z][a-z0-9-]*) \[([A-Z0-9, -]+)\] (.+)$`)

// parseNamed reads the histories that have names. "= name: about" begins a file, "== id [covers]
// about" a history; # begins a comment, and every other line is an operation of the oracle.
func parseNamed(text string) ([]conformance.HistorySuite, error) {
	var out []conformance.HistorySuite
	var ops []model.Op
	finish := func() error {
		if len(ops) == 0 {
			return nil
		}
		suite := &out[len(out)-1]
		c := &suite.Cases[len(suite.Cases)-1]
		played, err := play(ops)
		c.Steps, ops = played.Steps, nil
		return err
	}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		var err error
		switch m := heading.FindStringSubmatch(line); {
		case line == "":
		case m != nil && len(out) > 0:
			err = finish()
			suite := &out[len(out)-1]
			suite.Cases = append(suite.Cases, conformance.HistoryCase{Head: conformance.Head{
				ID: m[1], Covers: strings.Split(m[2], ", "), About: m[3],
			}})
		case strings.HasPrefix(line, "= "):
			err = finish()
			name, about, _ := strings.Cut(line[2:], ": ")
			out = append(out, conformance.HistorySuite{Suite: name, About: about})
		case len(out) == 0 || len(out[len(out)-1].Cases) == 0:
			err = fmt.Errorf("%q belongs to no history", line)
		default:
			var op model.Op
			op, err = model.ParseOp(line)
			ops = append(ops, op)
		}
		if err != nil {
			return nil, fmt.Errorf("named.txt:%d: %w", i+1, err)
		}
	}
	return out, finish()
}
