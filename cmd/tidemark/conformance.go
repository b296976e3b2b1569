package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/dustin/go-humanize/english"

	"github.com/tidemark-im/tidemark/conformance"
)

type conformanceCommand struct {
	URL   string `help:"Where the server is." placeholder:"URL" required:""`
	Token string `help:"A member's token; its workspace keeps what cases make." placeholder:"TOKEN" required:""`
	Only  string `help:"Run the cases whose ids match." placeholder:"REGEXP"`
	JSON  bool   `help:"Print the results as JSON."`
}

// errDeviates ends a run in which a case did not hold.
var errDeviates = errors.New("the server does not conform")

func (c *conformanceCommand) run(ctx context.Context, m *Main) error {
	only, err := regexp.Compile(c.Only)
	if err != nil {
		return wrongUsage("--only: %w", err)
	}
	server, err := conformance.NewServer(c.URL, c.Token)
	if err != nil {
		return &usageError{err}
	}
	suites, err := conformance.Load()
	if err != nil {
		return err
	}
	results := []conformance.Result{}
	failed := 0
	for _, s := range suites {
		for i := range s.Cases {
			x := &s.Cases[i]
			if !only.MatchString(x.ID) {
				continue
			}
			r, err := server.Run(ctx, x)
			if err != nil {
				return err
			}
			results = append(results, r)
			if !r.OK() {
				failed++
			}
			if c.JSON {
				continue
			}
			if err := printResult(m, x, r); err != nil {
				return err
			}
		}
	}
	return c.conclude(m, results, failed)
}

func printResult(m *Main, x *conformance.Case, r conformance.Result) error {
	if r.OK() {
		_, err := fmt.Fprintf(m.Stdout, "ok    %s\n", x.ID)
		return err
	}
	_, err := fmt.Fprintf(m.Stdout, "FAIL  %s: %s\n      step %d: %s\n", x.ID, x.About, r.Step, r.Problem)
	return err
}

func (c *conformanceCommand) conclude(m *Main, results []conformance.Result, failed int) error {
	var err error
	switch {
	case len(results) == 0:
		return wrongUsage("--only: no case has such an id")
	case c.JSON:
		err = json.NewEncoder(m.Stdout).Encode(results)
	default:
		_, err = fmt.Fprintf(m.Stdout, "%s, %d failed\n",
			english.Plural(len(results), "case", ""), failed)
	}
	if err == nil && failed > 0 {
		err = fmt.Errorf("%w: %s failed", errDeviates, english.Plural(failed, "case", ""))
	}
	return err
}
