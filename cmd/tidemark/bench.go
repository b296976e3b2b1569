package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/tidemark-im/tidemark/internal/bench"
	"github.com/tidemark-im/tidemark/internal/bench/figures"
)

type benchCommand struct {
	Rounds   int               `default:"5" help:"How often each figure is measured, at least 5."`
	Scale    string            `default:"default" enum:"quick,default,full" help:"${about_scale}"`
	Figures  string            `placeholder:"REGEXP" help:"Measure the figures whose names match."`
	Against  map[string]string `mapsep:"," placeholder:"KIND=DSN" help:"${about_against}"`
	JSON     string            `name:"json" placeholder:"FILE" help:"${about_bench_json}"`
	Markdown string            `placeholder:"FILE" help:"${about_bench_markdown}"`
	List     bool              `help:"Print the figures with their bounds, and measure nothing."`
}

// rivals are the systems that figures can be measured against.
var rivals = []string{"postgres", "redis"}

// Validate implements kong's check.
func (c *benchCommand) Validate() error {
	if err := checkRange("rounds", c.Rounds, bench.MinRounds, 1000); err != nil {
		return err
	}
	wanted, err := regexp.Compile(c.Figures)
	if err != nil {
		return fmt.Errorf("--figures: %w", err)
	}
	if !slices.ContainsFunc(figures.Suite().Catalogue, func(d bench.Definition) bool {
		return wanted.MatchString(d.Name)
	}) {
		return fmt.Errorf("--figures: no figure matches %q; see tidemark bench --list", c.Figures)
	}
	for kind, dsn := range c.Against {
		if dsn == "" || !slices.Contains(rivals, kind) {
			return fmt.Errorf("--against: %s=%s, want one of %s and where it is", kind, dsn,
				strings.Join(rivals, ", "))
		}
	}
	return nil
}

func (c *benchCommand) run(ctx context.Context, m *Main) error {
	suite := figures.Suite()
	if c.List {
		return c.list(m.Stdout, suite)
	}
	report, failed := suite.Run(ctx, bench.Config{
		Rounds: c.Rounds, Scale: bench.Scale(c.Scale), Figures: regexp.MustCompile(c.Figures),
		Against: c.Against, Command: c.command(), Program: thisProgram(), Stderr: m.Stderr,
		Now: m.Now,
	})
	if report == nil {
		return failed
	}
	if c.JSON != "" {
		failed = errors.Join(failed, writeTo(standard(c.JSON), m.Stdout, report.JSON))
	}
	if c.Markdown != "" || c.JSON == "" {
		failed = errors.Join(failed, writeTo(standard(c.Markdown), m.Stdout, report.Markdown))
	}
	return failed
}

// standard turns "-" into no file, which is the standard output.
func standard(name string) string {
	if name == "-" {
		return ""
	}
	return name
}

// command is how to make the report again; where the other systems were is left to variables.
func (c *benchCommand) command() string {
	text := fmt.Sprintf("tidemark bench --scale %s --rounds %d", c.Scale, c.Rounds)
	if c.Figures != "" {
		text += fmt.Sprintf(" --figures %q", c.Figures)
	}
	if len(c.Against) == 0 {
		return text
	}
	for _, kind := range rivals {
		if c.Against[kind] != "" {
			text += fmt.Sprintf(" --against %s=$TIDEMARK_TEST_%s", kind, strings.ToUpper(kind))
		}
	}
	return "go run ./scripts/services run -- sh -c '" + text + "'"
}

func (c *benchCommand) list(out io.Writer, suite *bench.Suite) error {
	wanted := regexp.MustCompile(c.Figures)
	for _, d := range suite.Catalogue {
		if !wanted.MatchString(d.Name) {
			continue
		}
		if _, err := fmt.Fprintf(out, "%-30s %-16s %s\n", d.Name, d.Bound, d.Title); err != nil {
			return err
		}
	}
	return nil
}

// thisProgram is the program itself, for figures of a process from its start.
func thisProgram() bench.Program {
	path, err := os.Executable()
	if err != nil {
		return bench.Program{}
	}
	return bench.Program{Path: path}
}
