package conform_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidemark-im/tidemark/conformance"
)

func networkCases(t *testing.T) []conformance.NetworkCase {
	t.Helper()
	suites, err := conformance.LoadNetwork()
	if err != nil {
		t.Fatal(err)
	}
	var out []conformance.NetworkCase
	for _, s := range suites {
		out = append(out, s.Cases...)
	}
	return out
}

// newApp makes a client that asks a transport for everything.
type newApp func(transport http.RoundTripper, store string) conformance.App

// runNetwork plays a case in a bubble: what a client does about a step is done when everything in
// the bubble waits, and time passes only where a case says so.
func runNetwork(
	t *testing.T, c *conformance.NetworkCase, app newApp,
	look func(step int, got map[string]any) map[string]any,
) (r conformance.Result, err error) {
	t.Helper()
	store := filepath.Join(t.TempDir(), "client.db")
	synctest.Test(t, func(t *testing.T) {
		script := &conformance.Script{}
		in := &conformance.Surroundings{
			Script: script, App: app(script, store), Settle: synctest.Wait, Look: look,
			Pass: func(seconds int64) { time.Sleep(time.Duration(seconds) * time.Second) },
		}
		r, err = conformance.RunNetwork(in, c)
		if closing := in.App.Close(); closing != nil {
			t.Error(closing)
		}
	})
	return r, err
}

// Every case holds for this repository's client with a network.
//
// covers: SE-094 SE-095 SE-096 SE-098 SE-099 SE-100 SE-101 SE-102 SE-104 SE-110
func TestTheClientConformsOnANetwork(t *testing.T) {
	for _, c := range networkCases(t) {
		r, err := runNetwork(t, &c, conformance.NewGoApp, nil)
		if err != nil {
			t.Error(err)
		} else if !r.OK() {
			t.Errorf("%s, step %d: %s", r.Case, r.Step, r.Problem)
		}
	}
}

// Each step that expects something notices when a part of that is not so. Every run has a file of
// its own, so that one part of each step is altered, another one at each.
func TestNetworkCasesCanFail(t *testing.T) {
	altered := 0
	for _, c := range networkCases(t) {
		for i, step := range c.Steps {
			if step.Expect == nil {
				continue
			}
			var want any
			if err := json.Unmarshal(step.Expect, &want); err != nil {
				t.Fatal(err)
			}
			paths := leaves("", want)
			if len(paths) == 0 {
				t.Errorf("%s, step %d expects nothing in particular", c.ID, i+1)
				continue
			}
			altered++
			path := paths[altered%len(paths)]
			r, err := runNetwork(t, &c, conformance.NewGoApp,
				func(n int, got map[string]any) map[string]any {
					if n == i+1 {
						return spoiltText(t, got, path)
					}
					return got
				})
			if err != nil || r.OK() || r.Step != i+1 {
				t.Errorf("%s, step %d: nobody notices another %s: %+v, %v", c.ID, i+1, path, r, err)
			}
		}
	}
	t.Logf("%d alterations, each noticed", altered)
}

// onTheWay are clients that hear or say something else than they should.
var onTheWay = map[string]func(next http.RoundTripper, req *http.Request) (*http.Response, error){
	"a 401 is a refusal": func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err == nil && resp.StatusCode == http.StatusUnauthorized {
			resp.StatusCode = http.StatusForbidden
		}
		return resp, err
	},
	"a refusal is a pause": func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err == nil && resp.StatusCode >= 400 {
			resp.StatusCode = http.StatusServiceUnavailable
		}
		return resp, err
	},
	"one revision more is read": func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
		return next.RoundTrip(rewritten(req, func(body map[string]any) {
			if r, ok := body["readRevision"].(float64); ok {
				body["readRevision"] = r + 1
			}
		}))
	},
	"the version is forgotten": func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
		return next.RoundTrip(rewritten(req, func(body map[string]any) { body["expectedVersion"] = 0 }))
	},
	"streams are not listened to": func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
		if strings.HasSuffix(req.URL.Path, "/events") {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}
		return next.RoundTrip(req)
	},
}

// rewritten is a request with another body.
func rewritten(req *http.Request, change func(map[string]any)) *http.Request {
	if req.Body == nil {
		return req
	}
	var body map[string]any
	if json.NewDecoder(req.Body).Decode(&body) != nil {
		return req
	}
	change(body)
	out := req.Clone(req.Context())
	out.Body = io.NopCloser(bytes.NewReader([]byte(object(body))))
	return out
}

func object(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(text)
}

// For each client that somebody might write some case fails.
func TestWrongClientsFailOnANetwork(t *testing.T) {
	wrong := map[string]newApp{
		"files are forgotten": func(transport http.RoundTripper, store string) conformance.App {
			return &amnesiac{transport: transport, store: store}
		},
	}
	for what, f := range onTheWay {
		wrong[what] = func(transport http.RoundTripper, store string) conformance.App {
			return conformance.NewGoApp(roundTrip(func(req *http.Request) (*http.Response, error) {
				return f(transport, req)
			}), store)
		}
	}
	for what, app := range wrong {
		noticed := ""
		for _, c := range networkCases(t) {
			if r, err := runNetwork(t, &c, app, nil); err != nil || !r.OK() {
				noticed = c.ID
				break
			}
		}
		if noticed == "" {
			t.Errorf("no case minds that %s", what)
		}
		t.Logf("%s: %s minds", what, noticed)
	}
}

// amnesiac is an app that begins with a new file each time.
type amnesiac struct {
	conformance.App
	transport http.RoundTripper
	store     string
	opened    int
}

func (a *amnesiac) Do(s *conformance.NetworkStep) (string, error) {
	if s.Do == "open" {
		a.opened++
		a.App = conformance.NewGoApp(a.transport, fmt.Sprint(a.store, a.opened))
	}
	return a.App.Do(s)
}
