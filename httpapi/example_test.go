package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/httpapi"
)

// sessions is how the product around the server knows who calls.
type sessions map[string]httpapi.Principal

// Authenticate implements httpapi.Authenticator.
func (s sessions) Authenticate(r *http.Request) (httpapi.Principal, error) {
	p, ok := s[r.Header.Get("Authorization")]
	if !ok {
		return httpapi.Principal{}, httpapi.ErrUnauthenticated
	}
	return p, nil
}

// A product mounts the server beside its own routes, with its own sign-in.
func Example() {
	dir, err := os.MkdirTemp("", "tidemark")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	engine, err := tidemark.Open(context.Background(), tidemark.Options{
		Facts: "sqlite:" + filepath.Join(dir, "facts.db"),
	})
	if err != nil {
		panic(err)
	}
	defer engine.Close()
	api, err := httpapi.New(httpapi.Config{
		Engine: engine, Prefix: "/unread",
		Auth: sessions{"Bearer ops": {Workspace: "acme", Member: "ops", Role: httpapi.RoleAdmin}},
	})
	if err != nil {
		panic(err)
	}
	defer api.Drain(context.Background())
	mux := http.NewServeMux()
	mux.Handle("/unread/", api)

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/unread/healthz", nil))
	fmt.Print(w.Code, " ", w.Body)
	w = httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/unread/api/v1/workspaces/acme/unread", nil))
	fmt.Println(w.Code)
	// Output:
	// 200 {"status":"ok"}
	// 401
}
