//go:build !unix

package servers

import (
	"context"
	"errors"
)

// Kind is a sort of server.
type Kind struct{ Name, Variable string }

// Kinds are the servers that are known: none on this system.
var Kinds []*Kind

// Server is a process that runs.
type Server struct{ DSN string }

// Start fails.
func Start(context.Context, *Kind) (*Server, error) {
	return nil, errors.New("private servers need a Unix system")
}

// Stop does nothing.
func (*Server) Stop() error { return nil }

// Named fails.
func Named(string) (*Kind, error) { return nil, errors.New("private servers need a Unix system") }
