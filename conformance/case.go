package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Case is one thing that has to hold of a server.
type Case struct {
	Head
	Steps []Step `json:"steps"`
}

// Step is a request and what its answer has to be.
type Step struct {
	Request Request `json:"request"`
	Expect  Expect  `json:"expect"`
	// Keep gives names to parts of the answer, each by its path; later steps write {name}.
	Keep map[string]string `json:"keep,omitempty"`
}

// Request is what is sent. Names in braces stand for what was kept, {new} names for ids that the
// case has for itself: one id for each such name.
type Request struct {
	// As is who sends it, in cases of the hub: a member of the case's workspace, RoleService or
	// RoleAdmin. Empty is the member whom the server was given a token of.
	As     string          `json:"as,omitempty"`
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body,omitempty"`
}

// Who sends the requests of hub cases that no member sends.
const (
	RoleService = "<service>"
	RoleAdmin   = "<admin>"
)

// Expect is a status and a part of the body: what it names has to be there and equal, what it does
// not name is not looked at.
type Expect struct {
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body,omitempty"`
}

// Suite is a file of cases.
type Suite = file[Case]

// Load returns the cases of the session interface, which one member's token can play, in the order
// of their names.
func Load() ([]Suite, error) { return load(sessionFiles, "cases", (*Case).check, (*Case).head) }

// LoadHub returns the cases of the hub interface, which take tokens of several members and of a
// service.
func LoadHub() ([]Suite, error) { return load(hubFiles, "cases/hub", (*Case).check, (*Case).head) }

// Parse reads a file of cases. Fields that nobody knows are refused: a misspelt expectation would
// hold always.
func Parse(r io.Reader) (Suite, error) { return parse(r, (*Case).check) }

func (c *Case) head() *Head { return &c.Head }

func (c *Case) check() error {
	if err := c.Head.check(len(c.Steps)); err != nil {
		return err
	}
	for i, s := range c.Steps {
		if s.Request.Method == "" || !strings.HasPrefix(s.Request.Path, "/") || s.Expect.Status == 0 {
			return fmt.Errorf("case %s, step %d: method, path and status are needed", c.ID, i+1)
		}
	}
	return nil
}
