package walk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/inbox"
	"github.com/tidemark-im/tidemark/readstate"
)

const workspace readstate.WorkspaceID = "acme"

var secret = []byte("credentials of a demonstration..")

// world is the server of a walk, on a database that outlives it.
type world struct {
	dir    string
	engine *tidemark.Engine
	inbox  *inbox.Inbox
	auth   *httpapi.JWT
	http   *http.Server
	ended  chan error
	base   string
	addr   string
	broken atomic.Bool // the worker is interrupted before its commit
}

var errInterrupted = errors.New("interrupted before the commit")

func newWorld(ctx context.Context) (w *world, err error) {
	w = &world{}
	if w.dir, err = os.MkdirTemp("", "tidemark-walk-*"); err != nil {
		return nil, err
	}
	if err := w.start(ctx); err != nil {
		return nil, errors.Join(err, w.remove())
	}
	return w, nil
}

func (w *world) remove() error { return os.RemoveAll(w.dir) }

// start opens the database and serves it.
func (w *world) start(ctx context.Context) (err error) {
	w.engine, err = tidemark.Open(ctx, tidemark.Options{
		Facts: "sqlite:" + filepath.Join(w.dir, "walk.db"),
	})
	if err != nil {
		return err
	}
	port, err := w.engine.Inboxes(ctx, func(changes []facts.InboxChange) {
		for _, c := range changes {
			w.inbox.Poke(c.Member)
		}
	})
	if err != nil {
		return err
	}
	w.inbox, err = inbox.New(inbox.Options{
		Store: port.Store, Terms: port.Terms, Changed: port.Changed,
		OnProject: func(context.Context) error {
			if w.broken.Load() {
				return errInterrupted
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	if w.auth, err = httpapi.NewJWT(httpapi.JWTConfig{Secrets: [][]byte{secret}}); err != nil {
		return err
	}
	server, err := httpapi.New(httpapi.Config{Engine: w.engine, Inbox: w.inbox, Auth: w.auth})
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.addr, w.base = l.Addr().String(), "http://"+l.Addr().String()
	w.http = &http.Server{Handler: server, ReadHeaderTimeout: time.Minute}
	w.ended = make(chan error, 1)
	framed := server.Listener(l)
	go func() { w.ended <- w.http.Serve(framed) }()
	return nil
}

// stop ends the server and closes the database.
func (w *world) stop() error {
	err := w.http.Close()
	if served := <-w.ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	w.auth.Close()
	return errors.Join(err, w.engine.Close())
}

// reopen is a restart.
func (w *world) reopen(ctx context.Context) error {
	if err := w.stop(); err != nil {
		return err
	}
	return w.start(ctx)
}

// seed makes the accounts and three conversations of Ada.
func (w *world) seed(ctx context.Context) error {
	if _, err := w.engine.CreateWorkspace(ctx, workspace, "Acme"); err != nil {
		return err
	}
	ws := w.engine.Workspace(workspace)
	for i, m := range []readstate.MemberID{"Ada", "Bo", "Cy", "Dee"} {
		if _, err := ws.PutMember(ctx, facts.PutMember{ID: m}); err != nil {
			return err
		}
		if i == 0 {
			continue
		}
		s := conversation(m)
		if _, err := ws.PutScope(ctx, facts.PutScope{ID: s, Type: readstate.DM}); err != nil {
			return err
		}
		for _, who := range []readstate.MemberID{"Ada", m} {
			put := facts.PutMembership{Scope: s, Member: who, Trusted: true}
			if _, err := ws.PutMembership(ctx, put); err != nil {
				return err
			}
		}
	}
	return nil
}

func conversation(with readstate.MemberID) readstate.ScopeID {
	return readstate.ScopeID("ada-" + string(with))
}

// answer is what a request was answered with.
type answer struct {
	status int
	body   []byte
}

// as makes a request with the credentials of an account.
func (w *world) as(
	ctx context.Context, who, method, path string, body any,
) (answer, error) {
	token, err := httpapi.SignToken(secret, httpapi.Claims{
		Workspace: workspace, Member: readstate.MemberID(who), Expires: time.Now().Add(time.Hour),
	})
	if err != nil {
		return answer{}, err
	}
	text, err := json.Marshal(body)
	if err != nil {
		return answer{}, err
	}
	url := w.base + "/api/v1/workspaces/" + string(workspace) + path
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return answer{}, err
	}
	if body == nil {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	got, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, bytes.TrimSpace(got)}, errors.Join(err, resp.Body.Close())
}

// raw sends bytes and returns the status of the answer. With half set nothing follows them.
func (w *world) raw(ctx context.Context, text string, half bool) (int, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", w.addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close() //nolint:errcheck // it has served its turn
	if _, err := io.WriteString(conn, text); err != nil {
		return 0, err
	}
	if half {
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			return 0, err
		}
	}
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return 0, err
	}
	var version string
	var status int
	if _, err := fmt.Fscan(conn, &version, &status); err != nil {
		return 0, fmt.Errorf("no answer: %w", err)
	}
	return status, nil
}
