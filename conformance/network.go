package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// NetworkCase is one thing that has to hold of a whole client, with a server that the case scripts.
type NetworkCase struct {
	Head
	Steps []NetworkStep `json:"steps"`
}

// NetworkStep is something that a person or the server does, and how the client is once it has done
// all that it does about it without time passing. Which fields matter depends on Do; README.md has
// the table.
type NetworkStep struct {
	Do string `json:"do"`

	Server  string `json:"server,omitempty"` // its address; the same one where there is none
	Token   string `json:"token,omitempty"`
	Session string `json:"session,omitempty"`
	As      string `json:"as,omitempty"`
	Note    string `json:"note,omitempty"`
	Seconds int64  `json:"seconds,omitempty"`

	Request *WireRequest    `json:"request,omitempty"` // the one that is answered
	Status  int             `json:"status,omitempty"`
	Body    json.RawMessage `json:"body,omitempty"`
	Stream  bool            `json:"stream,omitempty"` // the answer is a stream that stays open
	Lost    bool            `json:"lost,omitempty"`   // the answer never comes
	Unsent  bool            `json:"unsent,omitempty"` // the request never leaves

	Event string          `json:"event,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"`

	Expect json.RawMessage `json:"expect,omitempty"`
}

// WireRequest is a request of the client. Of its query, only where a page begins is told.
type WireRequest struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	After  string          `json:"after,omitempty"`
	Before string          `json:"before,omitempty"`
	Token  string          `json:"token,omitempty"`
	Body   json.RawMessage `json:"body,omitempty"`
}

// NetworkSuite is a file of network cases.
type NetworkSuite = file[NetworkCase]

// LoadNetwork returns the network cases in the order of their names.
func LoadNetwork() ([]NetworkSuite, error) {
	return load(networkFiles, "cases/network", (*NetworkCase).check, (*NetworkCase).head)
}

// ParseNetwork reads a file of network cases.
func ParseNetwork(r io.Reader) (NetworkSuite, error) { return parse(r, (*NetworkCase).check) }

func (c *NetworkCase) head() *Head { return &c.Head }

func (c *NetworkCase) check() error {
	if err := c.Head.check(len(c.Steps)); err != nil {
		return err
	}
	asks := false
	for i := range c.Steps {
		s := &c.Steps[i]
		asks = asks || s.Expect != nil
		if s.Do == "" || (s.Do == "answer") != (s.Request != nil) {
			return fmt.Errorf("case %s, step %d: an answer has a request, nothing else has", c.ID, i+1)
		}
	}
	if !asks {
		return fmt.Errorf("case %s expects nothing", c.ID)
	}
	return nil
}

// App is a whole client under test, that asks a Script for everything.
type App interface {
	// Do performs what is no doing of the server. The word is what came of it: nothing where it
	// worked. An error says that the step makes no sense.
	Do(s *NetworkStep) (word string, err error)
	// State describes what is shown: ready, sessions, pending, lost and windows; see README.md.
	State() (map[string]any, error)
	// Close ends the client. The runner calls it once, at the end.
	Close() error
}

// Surroundings are what a network case happens in.
type Surroundings struct {
	Script *Script
	App    App
	// Settle returns when the client does nothing any more until something happens. Pass lets time
	// pass first.
	Settle func()
	Pass   func(seconds int64)
	// Look sees how the client is after a step, numbered from 1, and returns what is judged in place
	// of that. Nil changes nothing; it is for those who test cases.
	Look func(step int, got map[string]any) map[string]any
}

// RunNetwork plays a case on a new client. A request that a case answers and nobody has made is a
// failure of the client.
func RunNetwork(in *Surroundings, c *NetworkCase) (Result, error) {
	for i := range c.Steps {
		s := &c.Steps[i]
		word, err := in.do(s)
		if err != nil {
			return Result{}, fmt.Errorf("case %s, step %d: %s: %w", c.ID, i+1, s.Do, err)
		}
		in.Settle()
		if s.Expect == nil && word == "" {
			continue
		}
		problem, err := in.judge(i+1, s, word)
		if err != nil {
			return Result{}, fmt.Errorf("case %s, step %d: %s: %w", c.ID, i+1, s.Do, err)
		}
		if problem != "" {
			return Result{Case: c.ID, Step: i + 1, Problem: problem}, nil
		}
	}
	return Result{Case: c.ID}, nil
}

// do lets a step happen. The word is what became of it, empty for what was meant.
func (in *Surroundings) do(s *NetworkStep) (word string, err error) {
	switch s.Do {
	case "answer":
		return in.Script.answer(s), nil
	case "event":
		return in.Script.event(s), nil
	case "break":
		return in.Script.cut(), nil
	case "wait":
		in.Pass(s.Seconds)
		return "", nil
	}
	return in.App.Do(s)
}

// judge compares how the client is with what is expected.
func (in *Surroundings) judge(number int, s *NetworkStep, word string) (string, error) {
	state, err := in.App.State()
	if err != nil {
		return "", err
	}
	state["requests"], state["error"] = in.Script.waiting(), nil
	if word != "" {
		state["error"] = word
	}
	text, err := json.Marshal(state)
	if err != nil {
		return "", fmt.Errorf("describe the client: %w", err)
	}
	got, err := decode(text)
	if err != nil {
		return "", err
	}
	if described, ok := got.(map[string]any); ok && in.Look != nil {
		got = in.Look(number, described)
	}
	var want any = map[string]any{}
	if s.Expect != nil {
		if want, err = decode(s.Expect); err != nil {
			return "", fmt.Errorf("what is expected: %w", err)
		}
	}
	if w, ok := want.(map[string]any); ok && w["error"] == nil {
		w["error"] = nil // nobody expects one
	}
	return differs(s.Do, want, got), nil
}

// byRequest orders requests that came at no particular time.
func byRequest(a, b WireRequest) int {
	return cmp.Or(cmp.Compare(a.Method, b.Method), cmp.Compare(a.Path, b.Path),
		cmp.Compare(a.After, b.After), cmp.Compare(a.Before, b.Before), cmp.Compare(a.Token, b.Token))
}

func sortRequests(list []WireRequest) []WireRequest {
	slices.SortFunc(list, byRequest)
	return list
}
