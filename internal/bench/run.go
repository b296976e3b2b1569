package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime/debug"
	"slices"
	"time"

	"github.com/tidemark-im/tidemark/internal/progress"
)

// MinRounds is how many rounds make a median worth printing.
const MinRounds = 5

// Scale says how much a run takes on.
type Scale string

const (
	Quick   Scale = "quick"   // seconds: shows that everything works
	Default Scale = "default" // minutes
	Full    Scale = "full"    // the sizes that the bounds speak of
)

// Pick returns the value for the scale.
func Pick[T any](s Scale, quick, standard, full T) T {
	switch s {
	case Quick:
		return quick
	case Full:
		return full
	}
	return standard
}

// Config is how a suite is run. Stderr and Now are required.
type Config struct {
	Rounds  int            // at least MinRounds
	Scale   Scale          // empty: Default
	Figures *regexp.Regexp // names to measure; nil for all
	Against map[string]string
	Command string // that made the report
	Program Program
	Stderr  io.Writer
	Now     func() time.Time
}

// Program is the server's own program, for figures of a whole process.
type Program struct {
	Path string   // empty: none
	Env  []string // beside the environment of this process
}

// Group measures some figures of the catalogue.
type Group struct {
	Name string
	// Against names the other system it needs, empty for none.
	Against string
	Fills   []string
	Run     func(ctx context.Context, r *Run) error
}

// Suite is everything that can be measured.
type Suite struct {
	Catalogue []Definition
	Groups    []Group
}

// Run is a group at work.
type Run struct {
	Config
	group   *Group
	figures []*Figure
	report  *Report
}

// Figure returns a figure that the group fills, for adding values to. What is added to one that
// nobody wants is thrown away.
func (r *Run) Figure(name string) *Figure {
	for _, f := range r.figures {
		if f.Name == name {
			return f
		}
	}
	return &Figure{}
}

// Wants reports that a figure is to be measured.
func (r *Run) Wants(name string) bool { return r.Figures == nil || r.Figures.MatchString(name) }

// Bar shows a long piece of work.
func (r *Run) Bar(label, unit string, total int) *progress.Bar {
	return progress.New(r.Stderr, label, unit, int64(total), r.Now)
}

// Each runs the steps once a round, one after the other, from behind in every second round. It
// stops at the first error.
func (r *Run) Each(
	ctx context.Context, steps ...func(ctx context.Context, round int) error,
) error {
	bar := r.Bar(r.group.Name, "rounds", r.Rounds)
	defer bar.End()
	for round := range r.Rounds {
		order := slices.Clone(steps)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, step := range order {
			if err := errors.Join(step(ctx, round), ctx.Err()); err != nil {
				return fmt.Errorf("round %d: %w", round+1, err)
			}
		}
		bar.Set(int64(round + 1))
	}
	return nil
}

// Check records a comparison with the oracle. Wrong is a text for each count that differs.
func (r *Run) Check(name string, compared int, wrong []string) error {
	c := Check{Group: r.group.Name, Name: name, Compared: compared, Wrong: len(wrong)}
	if len(wrong) > 0 {
		c.First = wrong[0]
	}
	r.report.Checks = append(r.report.Checks, c)
	if len(wrong) > 0 {
		return fmt.Errorf("%s: %d of %d counts differ from the oracle's: %s",
			name, len(wrong), compared, wrong[0])
	}
	return nil
}

// Run measures what is wanted. The report is complete even beside an error.
func (s *Suite) Run(ctx context.Context, cfg Config) (*Report, error) {
	if cfg.Rounds < MinRounds {
		return nil, fmt.Errorf("%d rounds, at least %d make a median", cfg.Rounds, MinRounds)
	}
	if cfg.Scale == "" {
		cfg.Scale = Default
	}
	report := &Report{
		Machine: thisMachine(ctx, cfg.Now()), Command: cfg.Command, Rounds: cfg.Rounds,
		Scale: cfg.Scale,
	}
	var figures []*Figure
	for _, d := range s.Catalogue {
		if cfg.Figures == nil || cfg.Figures.MatchString(d.Name) {
			figures = append(figures, &Figure{Definition: d})
		}
	}
	var failed error
	for i := range s.Groups {
		err := runGroup(ctx, cfg, &s.Groups[i], figures, report)
		failed = errors.Join(failed, err)
	}
	for _, f := range figures {
		f.judge(cfg.Rounds)
		report.Figures = append(report.Figures, *f)
	}
	report.Took = cfg.Now().Sub(report.Machine.Date)
	return report, failed
}

func runGroup(
	ctx context.Context, cfg Config, g *Group, figures []*Figure, report *Report,
) error {
	r := &Run{Config: cfg, group: g, report: report}
	for _, f := range figures {
		if slices.Contains(g.Fills, f.Name) {
			r.figures = append(r.figures, f)
		}
	}
	if len(r.figures) == 0 {
		return nil
	}
	if g.Against != "" && cfg.Against[g.Against] == "" {
		for _, f := range r.figures {
			f.Skip("needs --against %s=DSN", g.Against)
		}
		return nil
	}
	_, _ = fmt.Fprintf(cfg.Stderr, "%s: preparing\n", g.Name)
	err := errors.Join(ctx.Err())
	if err == nil {
		err = g.Run(ctx, r)
	}
	debug.FreeOSMemory() // the next group begins without what this one had
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", g.Name, err)
	for _, f := range r.figures {
		f.Skip("%v", err)
	}
	return err
}
