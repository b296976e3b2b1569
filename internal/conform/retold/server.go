package retold

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/inbox"
	"github.com/tidemark-im/tidemark/readstate"
)

// Server is this repository's server with an empty store, and tokens for whomever.
type Server struct {
	URL    string
	Client *http.Client

	secret []byte
	engine *tidemark.Engine
	auth   *httpapi.JWT
	api    *httpapi.Server
	http   *httptest.Server
}

// Start starts a server with its store in a directory.
func Start(ctx context.Context, dir string) (*Server, error) {
	s := &Server{secret: []byte("a secret that only this server knows.")}
	var err error
	at := "sqlite:" + filepath.Join(dir, "facts.db")
	if s.engine, err = tidemark.Open(ctx, tidemark.Options{Facts: at}); err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	if s.auth, err = httpapi.NewJWT(httpapi.JWTConfig{Secrets: [][]byte{s.secret}}); err != nil {
		return nil, errors.Join(err, s.engine.Close())
	}
	// The rates are those of people and their apps; a scenario is faster than both.
	limits := httpapi.Limits{MemberRate: 1e6, MemberBurst: 1e6, ServiceRate: 1e6, ServiceBurst: 1e6}
	inboxes, err := s.openInboxes(ctx)
	if err == nil {
		s.api, err = httpapi.New(httpapi.Config{
			Engine: s.engine, Auth: s.auth, Inbox: inboxes, Limits: limits,
		})
	}
	if err != nil {
		s.auth.Close()
		return nil, errors.Join(err, s.engine.Close())
	}
	s.http = httptest.NewServer(s.api)
	s.URL, s.Client = s.http.URL, s.http.Client()
	return s, nil
}

// openInboxes are inboxes without a worker: what nobody has projected is read where it is.
func (s *Server) openInboxes(ctx context.Context) (*inbox.Inbox, error) {
	port, err := s.engine.Inboxes(ctx, func([]facts.InboxChange) {})
	if err != nil {
		return nil, err
	}
	return inbox.New(inbox.Options{Store: port.Store, Terms: port.Terms, Changed: port.Changed})
}

// Close ends the server.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := s.api.Drain(ctx)
	s.http.Close()
	s.auth.Close()
	return errors.Join(err, s.engine.Close())
}

// Token signs for a member of a workspace; the role is member, service or admin.
func (s *Server) Token(workspace, member, role string) (string, error) {
	parsed, ok := httpapi.ParseRole(role)
	if !ok {
		return "", fmt.Errorf("no role %q", role)
	}
	return httpapi.SignToken(s.secret, httpapi.Claims{
		Workspace: readstate.WorkspaceID(workspace), Member: readstate.MemberID(member),
		Role: parsed, Expires: time.Now().Add(time.Hour),
	})
}
