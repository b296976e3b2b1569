package clusterdemo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/tidemark-im/tidemark/httpapi"
)

const (
	reader = "ada"
	author = "ben"
	room   = "general"
	// callTimeout bounds a request. A node that is paused answers nothing.
	callTimeout = 2 * time.Second
	maxAnswer   = 1 << 20
)

// api asks the processes as anybody would.
type api struct {
	client  *http.Client
	central string
	admin   string // token
}

func newAPI(central string, secret []byte, expires time.Time) (*api, error) {
	token, err := httpapi.SignToken(secret, httpapi.Claims{
		Workspace: httpapi.AllWorkspaces, Member: "root", Role: httpapi.RoleAdmin, Expires: expires,
	})
	return &api{client: &http.Client{Transport: &http.Transport{}}, central: central, admin: token}, err
}

// statusError is an answer that is none of success.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return fmt.Sprintf("%d %s", e.status, e.text) }

// call makes a request and reads its answer into out, unless that is nil.
func (a *api) call(ctx context.Context, method, address string, body, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+a.admin)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return &statusError{res.StatusCode, string(answer)}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}

func (a *api) alive(ctx context.Context, address string) error {
	return a.call(ctx, http.MethodGet, address+"/healthz", nil, nil)
}

func in(base, space, path string) string {
	return base + "/api/v1/workspaces/" + url.PathEscape(space) + path
}

// seed makes a workspace with a channel of two members.
func (a *api) seed(ctx context.Context, base, space string) error {
	for _, step := range []struct {
		path string
		body any
	}{
		{"", map[string]any{"name": space}},
		{"/scopes/" + room, map[string]any{"type": "channel", "name": "General"}},
		{"/scopes/" + room + "/members/" + reader + "?create=members", map[string]any{}},
		{"/scopes/" + room + "/members/" + author + "?create=members", map[string]any{}},
	} {
		if err := a.call(ctx, http.MethodPut, in(base, space, step.path), step.body, nil); err != nil {
			return err
		}
	}
	return nil
}

// post writes a message; one with the same id is the same message.
func (a *api) post(ctx context.Context, space, id string) error {
	return a.call(ctx, http.MethodPost, in(a.central, space, "/scopes/"+room+"/messages"), map[string]any{
		"opId": id, "author": author, "payload": map[string]any{"text": "message " + id},
	}, nil)
}

// unread asks what Ada has not read; false where nobody can say.
func (a *api) unread(ctx context.Context, base, space string) (n int64, known bool, err error) {
	var answer struct {
		State string
		Badge *struct{ Messages int64 }
	}
	err = a.call(ctx, http.MethodGet, in(base, space, "/unread?limit=1&member="+reader), nil, &answer)
	if err != nil || answer.State != "ready" || answer.Badge == nil {
		return 0, false, err
	}
	return answer.Badge.Messages, true, nil
}

// dots asks for Ada's red dots in the central process, those that are known.
func (a *api) dots(ctx context.Context) (map[string]bool, error) {
	var answer struct {
		Workspaces []struct {
			ID, State string
			HasUnread *bool
		}
	}
	err := a.call(ctx, http.MethodGet, a.central+"/api/v1/workspaces?member="+reader, nil, &answer)
	out := map[string]bool{}
	for _, w := range answer.Workspaces {
		if w.State == "ready" && w.HasUnread != nil {
			out[w.ID] = *w.HasUnread
		}
	}
	return out, err
}
