package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

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

// A product that serves on a port of its own does so on the server's listener, which sees how long
// requests say they are before net/http has read them.
func ExampleServer_Listener() {
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
	api, err := httpapi.New(httpapi.Config{Engine: engine, Auth: sessions{}})
	if err != nil {
		panic(err)
	}
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := &http.Server{Handler: api, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error)
	go func() { ended <- server.Serve(api.Listener(port)) }()

	// A body whose length nobody knows beforehand goes out in chunks.
	resp, err := http.Post("http://"+port.Addr().String()+"/api/v1/workspaces/acme/members/ada/inbox:open",
		"application/json", io.MultiReader(strings.NewReader("{}")))
	if err != nil {
		panic(err)
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode)
	http.DefaultClient.CloseIdleConnections()
	if err := server.Shutdown(context.Background()); err != nil {
		panic(err)
	}
	<-ended
	// Output: 400
}
