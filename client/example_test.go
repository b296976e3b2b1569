package client_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/client"
	"github.com/tidemark-im/tidemark/httpapi"
)

// A chat shows a list, opens one session, and reads what somebody looks at.
func Example() {
	server, token := serve()
	defer server.stop()

	dir, err := os.MkdirTemp("", "client")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	changed := make(chan struct{}, 1)
	c, err := client.OpenWith(context.Background(), server.http.URL,
		func(context.Context) (string, error) { return token, nil },
		filepath.Join(dir, "client.db"),
		client.Options{OnEvent: func(client.Event) {
			select {
			case changed <- struct{}{}: // take new snapshots, and render them
			default:
			}
		}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	for complete := false; !complete; _, complete = c.Sessions() {
		<-changed
	}
	list, _ := c.Sessions()
	fmt.Println(list[0].Title, "unread:", list[0].Unread)

	window, err := c.OpenWindow(list[0].ID) // reads nothing
	if err != nil {
		log.Fatal(err)
	}
	defer window.Close()
	for !window.Snapshot().Loaded {
		<-changed
	}
	rendered := window.Snapshot()
	fmt.Println(string(rendered.Messages[0].Payload))
	_, err = window.Observe(client.Observation{
		Snapshot: rendered, Visible: true, Foreground: true, Loaded: true, TailInView: true,
	})
	if err != nil {
		log.Fatal(err) // nothing was saved, and nothing is shown as read
	}
	s, err := c.Session(list[0].ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Title, "unread:", s.Unread) // at once; the server hears of it in its own time
	// Output:
	// Work unread: true
	// "An answer"
	// Work unread: false
}

// Somebody who wants to come back to a session marks it, also without a connection.
func ExampleClient_MarkUnread() {
	server, token := serve()
	dir, err := os.MkdirTemp("", "client")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	changed := make(chan struct{}, 1)
	c, err := client.OpenWith(context.Background(), server.http.URL,
		func(context.Context) (string, error) { return token, nil },
		filepath.Join(dir, "client.db"),
		client.Options{OnEvent: func(client.Event) {
			select {
			case changed <- struct{}{}:
			default:
			}
		}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for complete := false; !complete; _, complete = c.Sessions() {
		<-changed
	}
	server.stop()

	list, _ := c.Sessions()
	if _, err := c.MarkUnread(list[0]); err != nil {
		log.Fatal(err)
	}
	list, _ = c.Sessions()
	fmt.Println("marked:", list[0].ManualUnread, "pending:", c.Status().Pending)
	// Output:
	// marked: true pending: 1
}

// Channels are counted by the server, and are marked as sessions are.
func ExampleClient_Scopes() {
	server, token := serve()
	defer server.stop()
	server.send("PUT", "/api/v1/workspaces/acme/members/ben", `{"kind":"human"}`)
	server.send("PUT", "/api/v1/workspaces/acme/scopes/general", `{"type":"channel","name":"General"}`)
	server.send("PUT", "/api/v1/workspaces/acme/scopes/general/members/ada", `{}`)
	server.send("POST", "/api/v1/workspaces/acme/scopes/general/messages",
		`{"opId":"1","author":"ben","mentions":["ada"],"payload":"Lunch?"}`)

	dir, err := os.MkdirTemp("", "client")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	changed := make(chan struct{}, 1)
	c, err := client.OpenWith(context.Background(), server.http.URL,
		func(context.Context) (string, error) { return token, nil },
		filepath.Join(dir, "client.db"),
		client.Options{OnEvent: func(client.Event) {
			select {
			case changed <- struct{}{}:
			default:
			}
		}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	list, complete := c.Scopes()
	for ; !complete; list, complete = c.Scopes() {
		<-changed
	}
	fmt.Println(list[0].Name, list[0].Unread, list[0].Attention)

	if _, err := c.MarkScopeRead(list[0]); err != nil { // what was in the list, and nothing newer
		log.Fatal(err)
	}
	general, err := c.Scope("general")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(general.Name, general.Unread, general.Attention, general.Exact)
	// Output:
	// General 1 1
	// General 0 0 true
}

// served is a server with one session that has one answer.
type served struct {
	engine *tidemark.Engine
	api    *httpapi.Server
	http   *httptest.Server
	dir    string
}

// everybody is a sign-in that believes anything.
type everybody struct{}

// Authenticate implements httpapi.Authenticator.
func (everybody) Authenticate(*http.Request) (httpapi.Principal, error) {
	return httpapi.Principal{Workspace: "acme", Member: "ada", Role: httpapi.RoleAdmin}, nil
}

func serve() (s served, token string) {
	var err error
	if s.dir, err = os.MkdirTemp("", "server"); err != nil {
		log.Fatal(err)
	}
	s.engine, err = tidemark.Open(context.Background(), tidemark.Options{
		Facts: "sqlite:" + filepath.Join(s.dir, "facts.db"),
	})
	if err != nil {
		log.Fatal(err)
	}
	if s.api, err = httpapi.New(httpapi.Config{Engine: s.engine, Auth: everybody{}}); err != nil {
		log.Fatal(err)
	}
	s.http = httptest.NewServer(s.api)
	s.send("PUT", "/api/v1/workspaces/acme", `{"name":"Acme"}`)
	s.send("PUT", "/api/v1/workspaces/acme/members/ada", `{"kind":"human"}`)
	s.send("POST", "/api/sessions", `{"id":"1","title":"Work"}`)
	s.send("POST", "/api/sessions/1/messages", `{"localId":"1","payload":"An answer"}`)
	return s, "any"
}

func (s *served) send(method, path, body string) {
	req, err := http.NewRequest(method, s.http.URL+path, bytes.NewReader([]byte(body)))
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.http.Client().Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		log.Fatal(method, path, resp.Status)
	}
}

func (s *served) stop() {
	_ = s.api.Drain(context.Background())
	s.http.Close()
	_ = s.engine.Close()
	os.RemoveAll(s.dir)
}
