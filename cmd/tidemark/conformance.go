package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/tidemark-im/tidemark/conformance"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/readstate"
)

type conformanceCommand struct {
	URL   string `help:"Where the server is." placeholder:"URL" required:""`
	Token string `help:"A member's token; its workspace keeps what cases make." placeholder:"TOKEN" required:""`
	secretFlag
	Only string `help:"Run the cases whose ids match." placeholder:"REGEXP"`
	JSON bool   `help:"Print the results as JSON."`
}

// errDeviates ends a run in which a case did not hold.
var errDeviates = errors.New("the server does not conform")

// conformanceTTL is how long tokens of hub cases are good for; a case takes milliseconds.
const conformanceTTL = time.Hour

func (c *conformanceCommand) run(ctx context.Context, m *Main) error {
	only, err := regexp.Compile(c.Only)
	if err != nil {
		return wrongUsage("--only: %w", err)
	}
	server, err := conformance.NewServer(c.URL, c.Token)
	if err != nil {
		return &usageError{err}
	}
	secrets, err := c.secrets()
	if err != nil {
		return err
	}
	if len(secrets) > 0 {
		server.Tokens = conformanceTokens(m, secrets[0])
	}
	suites, left, err := c.suites(server)
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
	return c.conclude(m, results, failed, left)
}

// suites are those that can be run, and the number of cases left out for want of tokens.
func (c *conformanceCommand) suites(
	server *conformance.Server,
) (suites []conformance.Suite, left int, err error) {
	if suites, err = conformance.Load(); err != nil {
		return nil, 0, err
	}
	hub, err := conformance.LoadHub()
	if err != nil {
		return nil, 0, err
	}
	if server.Tokens != nil {
		return append(suites, hub...), 0, nil
	}
	for _, s := range hub {
		left += len(s.Cases)
	}
	return suites, left, nil
}

// conformanceTokens signs for whoever hub cases need.
func conformanceTokens(m *Main, secret []byte) func(workspace, as string) (string, error) {
	return func(workspace, as string) (string, error) {
		claims := httpapi.Claims{
			Workspace: readstate.WorkspaceID(workspace), Member: readstate.MemberID(as),
			Role: httpapi.RoleMember, Expires: m.Now().Add(conformanceTTL),
		}
		switch as {
		case conformance.RoleAdmin:
			claims.Workspace, claims.Member, claims.Role = "*", "conformance", httpapi.RoleAdmin
		case conformance.RoleService:
			claims.Member, claims.Role = "conformance", httpapi.RoleService
		}
		return httpapi.SignToken(secret, claims)
	}
}

func printResult(m *Main, x *conformance.Case, r conformance.Result) error {
	if r.OK() {
		_, err := fmt.Fprintf(m.Stdout, "ok    %s\n", x.ID)
		return err
	}
	_, err := fmt.Fprintf(m.Stdout, "FAIL  %s: %s\n      step %d: %s\n", x.ID, x.About, r.Step, r.Problem)
	return err
}

func (c *conformanceCommand) conclude(
	m *Main, results []conformance.Result, failed, left int,
) error {
	var err error
	switch {
	case len(results) == 0:
		return wrongUsage("--only: no case has such an id")
	case c.JSON:
		err = json.NewEncoder(m.Stdout).Encode(results)
	default:
		_, err = fmt.Fprintf(m.Stdout, "%s, %d failed\n",
			english.Plural(len(results), "case", ""), failed)
		if err == nil && left > 0 {
			_, err = fmt.Fprintf(m.Stdout, "%s of the hub not run: --jwt-secret-file is not given\n",
				english.Plural(left, "case", ""))
		}
	}
	if err == nil && failed > 0 {
		err = fmt.Errorf("%w: %s failed", errDeviates, english.Plural(failed, "case", ""))
	}
	return err
}
