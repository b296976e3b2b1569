package conformance_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
