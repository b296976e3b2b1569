package scenario

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/inbox"
	"github.com/tidemark-im/tidemark/internal/apicheck"
	"github.com/tidemark-im/tidemark/readstate"
)

// Every scenario holds on the real server, or fails where it says that it will.
func TestScenarios(t *testing.T) {
	r, err := New(startServer(t))
	if err != nil {
		t.Fatal(err)
	}
	runFiles(t, r, parseAll(t))
}

// product is the server under test, with a database of its own that outlives restarts.
type product struct {
	secret []byte
	facts  string
	engine *tidemark.Engine
	api    *httpapi.Server
	server *http.Server
	served chan error
}

// startServer starts the product and returns how to reach it. It ends with the test.
func startServer(t *testing.T) Options {
	t.Helper()
	p := &product{
		secret: []byte("a secret that only this test knows."),
		facts:  "sqlite:" + filepath.Join(t.TempDir(), "scenarios.db"),
	}
	base, err := p.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check, err := apicheck.New(p.api.Document())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := p.stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return Options{
		BaseURL: base, Token: p.token, HTTP: &http.Client{Transport: transport},
		OnExchange: func(req *http.Request, resp *http.Response, body []byte) {
			if err := check.Exchange(req, resp, body); err != nil {
				t.Errorf("against the document: %v", err)
			}
		},
		OnEvent: func(name string, data []byte) {
			if err := check.Event(name, data); err != nil {
				t.Errorf("against the document: %v", err)
			}
		},
		Restart: func(ctx context.Context) (string, error) {
			transport.CloseIdleConnections()
			if err := p.stop(ctx); err != nil {
				return "", err
			}
			return p.start(t.Context())
		},
	}
}

func (p *product) start(ctx context.Context) (base string, err error) {
	if p.engine, err = tidemark.Open(ctx, tidemark.Options{Facts: p.facts}); err != nil {
		return "", err
	}
	auth, err := httpapi.NewJWT(httpapi.JWTConfig{Secrets: [][]byte{p.secret}})
	if err != nil {
		return "", err
	}
	// The rates are those of people and their apps; a scenario is faster than both.
	limits := httpapi.Limits{MemberRate: 1e6, MemberBurst: 1e6, ServiceRate: 1e6, ServiceBurst: 1e6}
	inboxes, err := p.openInboxes(ctx)
	if err != nil {
		return "", err
	}
	p.api, err = httpapi.New(httpapi.Config{Engine: p.engine, Inbox: inboxes, Auth: auth, Limits: limits})
	if err != nil {
		return "", err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	p.server = &http.Server{Handler: p.api, ReadHeaderTimeout: time.Minute}
	p.served = make(chan error, 1)
	go func(server *http.Server, served chan<- error) {
		served <- server.Serve(listener)
	}(p.server, p.served)
	return "http://" + listener.Addr().String(), nil
}

// openInboxes are inboxes without a worker: what nobody has projected is read where it is.
func (p *product) openInboxes(ctx context.Context) (*inbox.Inbox, error) {
	port, err := p.engine.Inboxes(ctx, func([]facts.InboxChange) {})
	if err != nil {
		return nil, err
	}
	return inbox.New(inbox.Options{Store: port.Store, Terms: port.Terms, Changed: port.Changed})
}

func (p *product) stop(ctx context.Context) error {
	err := errors.Join(p.api.Drain(ctx), p.server.Shutdown(ctx))
	if served := <-p.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return errors.Join(err, p.engine.Close())
}

func (p *product) token(workspace, member, role string) (string, error) {
	parsed, ok := httpapi.ParseRole(role)
	if !ok {
		return "", fmt.Errorf("no role %q", role)
	}
	return httpapi.SignToken(p.secret, httpapi.Claims{
		Workspace: readstate.WorkspaceID(workspace), Member: readstate.MemberID(member),
		Role: parsed, Expires: time.Now().Add(time.Hour),
	})
}
