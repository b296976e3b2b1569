package conformance_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tidemark-im/tidemark/conformance"
)

// A server that sends its client elsewhere has failed the case: nobody else is asked, and nobody else
// sees the token.
func TestTokensStayWithTheServer(t *testing.T) {
	asked := 0
	other := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked++
		rw.WriteHeader(http.StatusOK)
	}))
	defer other.Close()
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
		server := httptest.NewServer(http.RedirectHandler(other.URL, status))
		s, err := conformance.NewServer(server.URL, "token")
		if err != nil {
			t.Fatal(err)
		}
		c := conformance.Case{Head: conformance.Head{ID: "x"}, Steps: []conformance.Step{{
			Request: conformance.Request{Method: "GET", Path: "/api/sessions"},
			Expect:  conformance.Expect{Status: http.StatusOK},
		}}}
		r, err := s.Run(t.Context(), &c)
		if err != nil || r.OK() || !strings.Contains(r.Problem, "answered 30") {
			t.Errorf("%d: %+v, %v", status, r, err)
		}
		if s.Client.Timeout == 0 {
			t.Error("a server that says nothing is waited for without an end")
		}
		server.Close()
	}
	if asked != 0 {
		t.Errorf("the other server was asked %d times", asked)
	}
}

type transport func(*http.Request) *http.Response

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// A server that has been asked too much for now is asked again when it says, and not for ever. One that
// does not say when has failed the case.
func TestServersThatAreAskedTooMuch(t *testing.T) {
	for _, c := range []struct {
		refusals int
		after    string
		holds    bool
		asked    int
	}{{3, "2", true, 4}, {1000, "2", false, 11}, {1, "", false, 1}, {1, "never", false, 1}} {
		synctest.Test(t, func(t *testing.T) {
			s, err := conformance.NewServer("http://server.example", "token")
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			s.Client = &http.Client{Transport: transport(func(*http.Request) *http.Response {
				rec := httptest.NewRecorder()
				if asked++; asked <= c.refusals {
					rec.Header().Set("Retry-After", c.after)
					rec.WriteHeader(http.StatusTooManyRequests)
				}
				return rec.Result()
			})}
			r, err := s.Run(t.Context(), &conformance.Case{Head: conformance.Head{ID: "x"}, Steps: []conformance.Step{{
				Request: conformance.Request{Method: "GET", Path: "/api/sessions"},
				Expect:  conformance.Expect{Status: http.StatusOK},
			}}})
			if err != nil || r.OK() != c.holds || asked != c.asked {
				t.Errorf("%+v: asked %d times: %+v, %v", c, asked, r, err)
			}
		})
	}
}
