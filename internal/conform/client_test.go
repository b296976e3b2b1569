package conform_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/conformance"
)

func clientCases(t *testing.T) []conformance.ClientCase {
	t.Helper()
	suites, err := conformance.LoadClient()
	if err != nil {
		t.Fatal(err)
	}
	var out []conformance.ClientCase
	for _, s := range suites {
		out = append(out, s.Cases...)
	}
	return out
}

// Every case holds for this repository's client.
//
// covers: SE-132 SE-133 SE-134 SE-135 SE-136 SE-137
func TestTheClientConforms(t *testing.T) {
	for _, c := range clientCases(t) {
		r, err := conformance.RunClient(conformance.NewReadsync, &c)
		if err != nil {
			t.Error(err)
		} else if !r.OK() {
			t.Errorf("%s, step %d: %s", r.Case, r.Step, r.Problem)
		}
	}
}

// twisted is a client that is not what it was asked for.
type twisted struct {
	conformance.Client
	steps  int
	before func(n int, s conformance.ClientStep) *conformance.ClientStep
	after  func(n int, got map[string]any) map[string]any
}

func (c *twisted) Do(s *conformance.ClientStep) (map[string]any, error) {
	c.steps++
	if c.before != nil {
		s = c.before(c.steps, *s)
	}
	got, err := c.Client.Do(s)
	if err == nil && c.after != nil {
		got = c.after(c.steps, got)
	}
	return got, err
}

// Whatever a client case expects, it notices when that is not so.
func TestEveryClientExpectationCanFail(t *testing.T) {
	altered := 0
	for _, c := range clientCases(t) {
		at := 0 // steps that a client has seen after this one
		for i, step := range c.Steps {
			at += max(len(step.Steps), 1)
			if step.Expect == nil {
				continue
			}
			var want any
			if err := json.Unmarshal(step.Expect, &want); err != nil {
				t.Fatal(err)
			}
			for _, path := range leaves("", want) {
				altered++
				r, err := conformance.RunClient(func() conformance.Client {
					return &twisted{
						Client: conformance.NewReadsync(),
						after: func(n int, got map[string]any) map[string]any {
							if n == at {
								return spoiltText(t, got, path)
							}
							return got
						},
					}
				}, &c)
				if err != nil || r.OK() || r.Step != i+1 {
					t.Errorf("%s, step %d: nobody notices another %s: %+v, %v", c.ID, i+1, path, r, err)
				}
			}
		}
	}
	t.Logf("%d alterations, each noticed", altered)
}

// spoiltText is spoilt on a copy with plain numbers.
func spoiltText(t *testing.T, v any, path string) map[string]any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	spoilt(out, strings.Split(path, "."))
	if text, err = json.Marshal(out); err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var again map[string]any
	if err := d.Decode(&again); err != nil {
		t.Fatal(err)
	}
	return again
}

// wrongs are clients that somebody might write, each by what it makes of a step. Some case has to
// fail for each of them.
var wrongs = map[string]func(n int, s *conformance.ClientStep){
	"the last statement wins": func(n int, s *conformance.ClientStep) {
		if s.Said != nil && s.Said.ReadState != nil {
			r := *s.Said.ReadState
			r.Version = uint64(n)
			said := *s.Said
			said.ReadState, s.Said = &r, &said
		}
	},
	"a session at work is unread": func(_ int, s *conformance.ClientStep) {
		if s.Said != nil {
			said := *s.Said
			said.Thinking = false
			s.Said = &said
		}
	},
	"a 401 is a refusal": func(_ int, s *conformance.ClientStep) {
		if s.Status == 401 {
			s.Status = 403
		}
	},
	"a refusal is sent again": func(_ int, s *conformance.ClientStep) {
		if s.Status >= 400 {
			s.Answer = nil
		}
	},
	"a proxy refuses": func(_ int, s *conformance.ClientStep) {
		if s.Status >= 400 && strings.HasPrefix(string(s.Answer), `"`) {
			s.Answer = []byte(`{"code":"not_found"}`)
		}
	},
	"an answer settles whatever is first": func(_ int, s *conformance.ClientStep) {
		if s.Do == "answer" {
			s.Op = "o1"
		}
	},
	"a page before is the latest": func(_ int, s *conformance.ClientStep) {
		if s.Page == "before" {
			s.Page = "latest"
		}
	},
	"a page that was cut is whole": func(_ int, s *conformance.ClientStep) {
		s.Answer = []byte(strings.Replace(string(s.Answer), `"hasMore": true`, `"hasMore": false`, 1))
		if len(s.Answer) == 0 {
			s.Answer = nil
		}
	},
	"nothing is ever missed": func(_ int, s *conformance.ClientStep) {
		if s.Do == "interrupted" {
			s.Do, s.As = "see", "nothing"
		}
	},
	"the background reads": func(_ int, s *conformance.ClientStep) { s.Foreground = nil },
	"what is hidden reads": func(_ int, s *conformance.ClientStep) { s.Visible = nil },
	"history reads":        func(_ int, s *conformance.ClientStep) { s.TailInView = nil },
	"a failed load reads":  func(_ int, s *conformance.ClientStep) { s.Loaded = nil },
	"what is not rendered is read": func(_ int, s *conformance.ClientStep) {
		if s.Do == "look" {
			s.Note = ""
		}
	},
	"all are read to what they are now": func(_ int, s *conformance.ClientStep) {
		if s.Do == "markRead" || s.Do == "markUnread" {
			s.Note = ""
		}
	},
	"a disk that is full is a disk": func(_ int, s *conformance.ClientStep) {
		if s.Do == "disk" {
			works := true
			s.Works = &works
		}
	},
	"operations live for ever": func(_ int, s *conformance.ClientStep) {
		if s.Do == "clock" {
			s.At = 0
		}
	},
	"the front of the screen is nothing new": func(_ int, s *conformance.ClientStep) {
		if s.Do == "foreground" {
			s.Do, s.As = "see", "nothing"
		}
	},
	"a session's place is taken by nobody": func(_ int, s *conformance.ClientStep) {
		if s.Do == "replaced" {
			s.By = s.Session
		}
	},
}

// covers: SE-137
func TestWrongClientsFail(t *testing.T) {
	all := clientCases(t)
	for what, wrong := range wrongs {
		noticed := ""
		for i := range all {
			r, err := conformance.RunClient(func() conformance.Client {
				return &twisted{
					Client: conformance.NewReadsync(),
					before: func(n int, s conformance.ClientStep) *conformance.ClientStep {
						wrong(n, &s)
						return &s
					},
				}
			}, &all[i])
			if err != nil || !r.OK() {
				noticed = all[i].ID
				break
			}
		}
		if noticed == "" {
			t.Errorf("no case minds that %s", what)
		}
		t.Logf("%s: %s minds", what, noticed)
	}
}

// A client that forgets what it wrote fails as well.
func TestAForgetfulClientFails(t *testing.T) {
	all := clientCases(t)
	i := slices.IndexFunc(all, func(c conformance.ClientCase) bool {
		return c.ID == "what-was-shown-outlives-the-process"
	})
	r, err := conformance.RunClient(func() conformance.Client { return &forgetful{} }, &all[i])
	if err != nil || r.OK() {
		t.Errorf("nobody notices: %+v, %v", r, err)
	}
}

type forgetful struct{ client conformance.Client }

func (f *forgetful) Do(s *conformance.ClientStep) (map[string]any, error) {
	if f.client == nil || s.Do == "restart" {
		f.client = conformance.NewReadsync()
	}
	return f.client.Do(s)
}

// What makes no sense is an error, and no failed case.
func TestSenselessClientSteps(t *testing.T) {
	for _, s := range []conformance.ClientStep{
		{}, {Do: "dance"}, {Do: "hear", Session: "s"}, {Do: "ask", Session: "s"}, {Do: "look", Note: "n"},
		{Do: "page", Session: "s"}, {Do: "disk"},
	} {
		if _, err := conformance.NewReadsync().Do(&s); err == nil {
			t.Errorf("%+v is done", s)
		}
	}
	c := conformance.ClientCase{Steps: []conformance.ClientStep{{Do: "dance"}}}
	if _, err := conformance.RunClient(conformance.NewReadsync, &c); err == nil {
		t.Error("a senseless case is run")
	}
	odd := errors.New("odd")
	_, err := conformance.RunClient(func() conformance.Client { return broken{odd} }, &c)
	if !errors.Is(err, odd) {
		t.Errorf("got %v", err)
	}
}

type broken struct{ err error }

func (b broken) Do(*conformance.ClientStep) (map[string]any, error) { return nil, b.err }
