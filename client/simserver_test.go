package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/live"
	"github.com/tidemark-im/tidemark/readstate"
)

// simServer is a real server without a socket: the handler over an engine over a file. It can be
// ended, and started again over the same file. The file is written without waiting for the disk:
// the server's process ends in these histories, and never the machine.
type simServer struct {
	fail   func(format string, args ...any) // does not return
	path   string
	engine *tidemark.Engine
	auth   *httpapi.JWT
	api    *httpapi.Server // nil while it is down
}

func newSimServer(t *testing.T, dir string) *simServer {
	t.Helper()
	s := &simServer{fail: t.Fatalf, path: filepath.Join(dir, "facts.db")}
	s.start()
	s.want(200, "PUT", "/api/v1/workspaces/W", s.token("*", "root", httpapi.RoleAdmin),
		object{"name": "Workspace"})
	return s
}

func (s *simServer) start() {
	ctx := context.Background()
	store, err := sqlstore.OpenSQLite(ctx, s.path, sqlstore.Options{Unsafe: true})
	if err != nil {
		s.fail("%v", err)
	}
	// Sweeping finds nothing here, and time passes quickly.
	s.engine, err = tidemark.OpenStore(ctx, store, tidemark.Options{SweepEvery: 24 * time.Hour})
	if err != nil {
		s.fail("%v", err)
	}
	if s.auth, err = httpapi.NewJWT(httpapi.JWTConfig{Secrets: [][]byte{secret}}); err != nil {
		s.fail("%v", err)
	}
	s.api, err = httpapi.New(httpapi.Config{
		Engine: s.engine, Auth: s.auth, Live: live.Options{Heartbeat: time.Minute},
		Limits: httpapi.Limits{MemberRate: 1e6, MemberBurst: 1e6, ServiceRate: 1e6, ServiceBurst: 1e6},
	})
	if err != nil {
		s.fail("%v", err)
	}
}

// stop ends the server; whoever holds a stream of it has to let go of it first.
func (s *simServer) stop() {
	if err := s.api.Drain(context.Background()); err != nil {
		s.fail("%v", err)
	}
	if err := s.engine.Close(); err != nil {
		s.fail("%v", err)
	}
	s.auth.Close()
	s.api = nil
}

func (s *simServer) token(workspace, member string, role httpapi.Role) string {
	token, err := httpapi.SignToken(secret, httpapi.Claims{
		Workspace: readstate.WorkspaceID(workspace), Member: readstate.MemberID(member), Role: role,
		Expires: time.Now().Add(24 * time.Hour),
	})
	if err != nil {
		s.fail("%v", err)
	}
	return token
}

// do is a request of the history itself, that no network is between.
func (s *simServer) do(method, path, token string, body any) (int, []byte) {
	text, err := json.Marshal(body)
	if err != nil {
		s.fail("%v", err)
	}
	req := httptest.NewRequest(method, path, bytes.NewReader(text))
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	if body == nil {
		req = httptest.NewRequest(method, path, http.NoBody)
		req.Header.Set("Authorization", "Bearer "+token)
	}
	rec := httptest.NewRecorder()
	s.api.ServeHTTP(rec, req)
	return rec.Code, rec.Body.Bytes()
}

func (s *simServer) want(status int, method, path, token string, body any) []byte {
	got, text := s.do(method, path, token, body)
	if got != status {
		s.fail("%s %s: %d %s, want %d", method, path, got, text, status)
	}
	return text
}

// list asks for a list of something, and reads it into out.
func (s *simServer) list(path, token string, out any) {
	if err := json.Unmarshal(s.want(200, "GET", path, token, nil), out); err != nil {
		s.fail("%v", err)
	}
}

// remove deletes a message of a session, which only a program beside the server can do.
func (s *simServer) remove(owner, session, message, op string) error {
	_, err := s.engine.Workspace("W").Remove(context.Background(), facts.Remove{
		Scope: facts.SessionScope(readstate.MemberID(owner), session), Message: message, OpID: op,
		By: facts.Actor{Member: readstate.MemberID(owner), Trusted: true},
	})
	if err != nil {
		return fmt.Errorf("remove %s from %s: %w", message, session, err)
	}
	return nil
}

// session is what the server has of a session; false when there is none of that id any more.
func (s *simServer) session(owner, id string) (x facts.Session, there bool) {
	x, err := s.engine.Workspace("W").Session(context.Background(), readstate.MemberID(owner), id)
	return x, err == nil
}
