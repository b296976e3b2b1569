package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/readstate"
)

const maxTTL = 10 * 365 * 24 * time.Hour

type tokenCommand struct {
	secretFlag
	WS   string        `name:"ws" required:"" placeholder:"ID" help:"${about_ws}"`
	Sub  string        `name:"sub" required:"" placeholder:"ID" help:"Member whom the token speaks for."`
	Role string        `default:"member" enum:"member,service,admin" help:"What the token may do: ${enum}."`
	TTL  time.Duration `name:"ttl" default:"1h" help:"How long it is good for."`
}

// Validate implements kong's check.
func (c *tokenCommand) Validate() error {
	return checkRange("ttl", c.TTL, time.Second, maxTTL)
}

func (c *tokenCommand) run(_ context.Context, m *Main) error {
	secrets, err := c.secrets()
	if err != nil {
		return err
	}
	if len(secrets) == 0 {
		return wrongUsage("no secret to sign with: set $%s or --jwt-secret-file", secretVariable)
	}
	role, _ := httpapi.ParseRole(c.Role) // one of the enumeration
	text, err := httpapi.SignToken(secrets[0], httpapi.Claims{
		Workspace: readstate.WorkspaceID(c.WS), Member: readstate.MemberID(c.Sub), Role: role,
		Expires: m.Now().Add(c.TTL),
	})
	if err != nil {
		return &usageError{err}
	}
	_, err = fmt.Fprintln(m.Stdout, text)
	return err
}
