package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/readstate"
)

// secret signs the tokens of the load. It guards nothing.
var secret = bytes.Repeat([]byte("chaos"), 8)

// wire is the judge's connection to one server process.
type wire struct {
	base string
	http *http.Client
	// cluster: answers that say that nobody answers now are none, and reads ask again.
	cluster bool
}

// errNobody is an answer that says that it is none: the same may be asked again later.
var errNobody = errors.New("nobody answers for the workspace now")

// nobody reports such an answer, or one with an item that has none.
func nobody(status int, body []byte) bool {
	return status == http.StatusServiceUnavailable || status == http.StatusMisdirectedRequest ||
		status == http.StatusOK && (bytes.Contains(body, []byte(`"status":503`)) ||
			bytes.Contains(body, []byte(`"status":421`)))
}

func dial(s *server) *wire {
	return &wire{base: s.base, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}}
}

func (w *wire) close() { w.http.CloseIdleConnections() }

// call sends one request. An error means that nobody knows what became of it.
func (w *wire) call(
	ctx context.Context, token, method, path string, body []byte,
) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, w.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := w.http.Do(r)
	if err != nil {
		return 0, nil, err
	}
	text, err := io.ReadAll(answer.Body)
	if closed := answer.Body.Close(); err == nil {
		err = closed
	}
	if err == nil && w.cluster && nobody(answer.StatusCode, text) {
		err = fmt.Errorf("%w: %d %s", errNobody, answer.StatusCode, clip(text))
	}
	return answer.StatusCode, text, err
}

// get reads a body into out. Anything but 200 fails the test.
func (w *wire) get(t *testing.T, token, path string, out any) {
	t.Helper()
	status, body, err := w.call(t.Context(), token, http.MethodGet, path, nil)
	for until := time.Now().Add(patience); w.cluster && err != nil && time.Now().Before(until); {
		status, body, err = w.call(t.Context(), token, http.MethodGet, path, nil)
	}
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	if status != http.StatusOK {
		t.Fatalf("GET %s: %d %s", path, status, clip(body))
	}
	if err := json.Unmarshal(body, out); err != nil {
		t.Fatalf("GET %s: %q: %v", path, clip(body), err)
	}
}

// token signs a token for a test's length.
func token(t *testing.T, ws, member string, role httpapi.Role) string {
	t.Helper()
	text, err := httpapi.SignToken(secret, httpapi.Claims{
		Workspace: readstate.WorkspaceID(ws), Member: readstate.MemberID(member), Role: role,
		Expires: time.Now().Add(24 * time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// address builds a path below a workspace; segments are escaped, a query may follow.
func address(ws string, segments ...string) string {
	path := "/api/v1/workspaces/" + url.PathEscape(ws)
	for _, s := range segments {
		path += "/" + s
	}
	return path
}

// encode writes a body. What the load makes always encodes.
func encode(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("body %T: %v", v, err))
	}
	return text
}
