package httpapi_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/internal/apicheck"
)

// places fills in the names of documented paths with things that exist.
var places = strings.NewReplacer(
	"{ws}", "W", "{m}", "A", "{other}", "B", "{s}", "c", "{id}", "m1",
)

// settled is a workspace with something of everything, for tests that nothing changes it.
func settled(h *harness) {
	h.world("A", "B")
	h.want(200, "PUT", "V", h.admin(), object{"name": "Other"})
	h.post("c", "A", object{"messageId": "m1", "mentions": []string{"B"}})
	h.post("c", "A", object{"messageId": "m2"})
	h.want(200, "PUT", "W/scopes/c/read-state", h.member("B"),
		object{"type": "read", "readRevision": 1, "expectedVersion": 0})
	h.want(200, "PUT", "W/members/B/settings", h.member("B"), object{"badge": "attention"})
	for _, m := range []string{"A", "B"} {
		h.want(201, "POST", sessionsPath, h.member(m), object{"id": "m1", "title": "of " + m})
		h.want(201, "POST", sessionsPath+"/m1/messages", h.member(m),
			object{"localId": "x", "payload": "an answer"})
	}
}

const sessionsPath = "/api/sessions"

// unchanged runs fn and compares everything visible before and after.
func (h *harness) unchanged(fn func()) {
	h.t.Helper()
	before := h.digest("A", "B")
	fn()
	if after := h.digest("A", "B"); after != before {
		h.t.Errorf("refused requests changed\n%s\ninto\n%s", before, after)
	}
}

func (h *harness) operations(fn func(apicheck.Operation, string)) {
	h.t.Helper()
	seen := 0
	for _, op := range h.check.Operations() {
		if !op.Public {
			seen++
			fn(op, places.Replace(op.Path))
		}
	}
	if seen < 30 {
		h.t.Fatalf("only %d operations are documented", seen)
	}
}

func isStream(op apicheck.Operation) bool {
	return slices.Contains([]string{"events", "socket", "sessionEvents"}, op.ID)
}

// elsewhere are routes whose namespace is the token's, and not in their path.
func elsewhere(op apicheck.Operation) bool { return !strings.Contains(op.Path, "{ws}") }

func TestNobodyGetsIn(t *testing.T) {
	h := newHarness(t)
	settled(h)
	hour := jwt.NewNumericDate(time.Now().Add(time.Hour))
	good := func() jwt.MapClaims { return jwt.MapClaims{"sub": "A", "ws": "W", "role": "admin", "exp": hour} }
	with := func(key string, value any) jwt.MapClaims {
		c := good()
		if c[key] = value; value == nil {
			delete(c, key)
		}
		return c
	}
	sign := func(method jwt.SigningMethod, key any, c jwt.MapClaims) string {
		token, err := jwt.NewWithClaims(method, c).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	pair, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&pair.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	valid := h.token("W", "A", httpapi.RoleAdmin)
	parts := strings.Split(valid, ".")
	swapped := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`))
	tokens := map[string]string{
		"none at all":        "",
		"not a token":        "nonsense",
		"no signature":       parts[0] + "." + parts[1] + ".",
		"algorithm none":     sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, good()),
		"none, kept the sum": swapped + "." + parts[1] + "." + parts[2],
		"HS512":              sign(jwt.SigningMethodHS512, secret, good()),
		"HS384":              sign(jwt.SigningMethodHS384, secret, good()),
		"RS256":              sign(jwt.SigningMethodRS256, pair, good()),
		"public key as HMAC": sign(jwt.SigningMethodHS256, public, good()),
		"another secret":     sign(jwt.SigningMethodHS256, []byte("not the secret of this server, no"), good()),
		"no expiry":          sign(jwt.SigningMethodHS256, secret, with("exp", nil)),
		"not yet":            sign(jwt.SigningMethodHS256, secret, with("nbf", hour)),
		"no member":          sign(jwt.SigningMethodHS256, secret, with("sub", nil)),
		"no workspace":       sign(jwt.SigningMethodHS256, secret, with("ws", nil)),
		"a bad member":       sign(jwt.SigningMethodHS256, secret, with("sub", "..")),
		"an unknown role":    sign(jwt.SigningMethodHS256, secret, with("role", "root")),
		"all as a service": sign(jwt.SigningMethodHS256, secret,
			jwt.MapClaims{"sub": "A", "ws": "*", "role": "service", "exp": hour}),
		"much too long": valid + strings.Repeat("A", 9<<10),
	}
	expired := h.tokenUntil("W", "A", httpapi.RoleAdmin, time.Now().Add(-time.Second))
	h.unchanged(func() {
		h.operations(func(op apicheck.Operation, path string) {
			for what, token := range tokens {
				r := h.call(op.Method, path, token, object{})
				var p httpapi.Problem
				if err := json.Unmarshal(r.body, &p); err != nil || p.Code != httpapi.CodeUnauthenticated {
					t.Errorf("%s with %s: got %d %.300s", op.ID, what, r.status, r.body)
				}
			}
			h.refused(httpapi.CodeTokenExpired, op.Method, path, expired, object{})
		})
	})
	req := h.request("GET", "W/unread", "", nil)
	req.Header.Set("Authorization", "Basic "+valid)
	h.refusedBy(httpapi.CodeUnauthenticated, req)
	h.want(200, "GET", "W/unread", sign(jwt.SigningMethodHS256, oldSecret, with("role", "member")), nil)
}

func TestWorkspacesAreWalls(t *testing.T) {
	h := newHarness(t)
	settled(h)
	h.unchanged(func() {
		h.operations(func(op apicheck.Operation, path string) {
			if elsewhere(op) {
				return // TestSessionsAreWalls
			}
			for _, role := range []httpapi.Role{httpapi.RoleMember, httpapi.RoleService, httpapi.RoleAdmin} {
				h.refused(httpapi.CodeNotFound, op.Method, path, h.token("V", "A", role), object{})
			}
			// The same answer as for a workspace that does not exist.
			h.refused(httpapi.CodeNotFound, op.Method, strings.Replace(path, "/W", "/nowhere", 1),
				h.token("V", "A", httpapi.RoleAdmin), object{})
		})
	})
	// A token of a workspace that does not exist sees nothing.
	for _, path := range []string{"ghost/unread", "ghost/scopes", "ghost/scopes/c/messages", "ghost/events", "/api/v1/workspaces"} {
		h.refused(httpapi.CodeNotFound, "GET", path, h.token("ghost", "A", httpapi.RoleMember), nil)
	}
	list := h.want(200, "GET", "/api/v1/workspaces", h.token("V", "A", httpapi.RoleAdmin), nil)
	list.is(t, "V", "workspaces", 0, "id")
	list.is(t, nil, "workspaces", 1)
}

func TestMalformedRequests(t *testing.T) {
	h := newHarness(t)
	settled(h)
	long := strings.Repeat("x", 129)
	h.unchanged(func() {
		h.operations(func(op apicheck.Operation, path string) {
			token := h.admin()
			if elsewhere(op) {
				token = h.token("W", "A", httpapi.RoleAdmin)
			}
			h.refused(httpapi.CodeMethodNotAllowed, "TRACE", path, token, nil)
			h.refused(httpapi.CodeInvalidRequest, op.Method, path+"?surprise=1", token, object{})
			h.refused(httpapi.CodeInvalidRequest, op.Method, path+"?member=A&member=B", token, object{})
			h.refused(httpapi.CodeInvalidRequest, op.Method, path+"?member=%zz", token, object{})
			for _, bad := range []string{"%2E%2E", "*", long, "%FF", "a%00b", "%E2%82"} {
				for _, segment := range []string{"{m}", "{s}", "{other}", "{id}"} {
					if strings.Contains(op.Path, segment) {
						at := places.Replace(strings.Replace(op.Path, segment, bad, 1))
						h.refused(httpapi.CodeInvalidRequest, op.Method, at, token, object{})
					}
				}
			}
			if !isStream(op) {
				h.malformedBodies(op, path, token)
			}
		})
	})
}

func (h *harness) malformedBodies(op apicheck.Operation, path, token string) {
	h.t.Helper()
	for _, body := range []string{
		`{`, `{"x"`, `nonsense`, `null`, `[]`, `1`, `"text"`, `{"surprise":1}`, `{} {}`, `{}]`,
		"{\"\xff\":1}", `{"\ud800":1}`, "\xef\xbb\xbf{}", "{\"a\":1,\"a\":1}",
	} {
		h.refused(httpapi.CodeInvalidRequest, op.Method, path, token, body)
	}
	if op.Body {
		h.refused(httpapi.CodeInvalidRequest, op.Method, path, token, nil)
		optional := []string{"putMembership", "putSettings", "postSession", "patchSession"}
		if !slices.Contains(optional, op.ID) { // all of theirs is
			h.refused(httpapi.CodeInvalidRequest, op.Method, path, token, `{}`)
		}
	}
	for _, kind := range []string{"", "text/plain", "application/json; charset=latin1", "application/jsonx", ";"} {
		req := h.request(op.Method, path, token, `{}`)
		req.Header.Set("Content-Type", kind)
		h.refusedBy(httpapi.CodeUnsupportedMediaType, req)
	}
	req := h.request(op.Method, path, token, `{}`)
	req.Header.Set("Content-Encoding", "gzip")
	h.refusedBy(httpapi.CodeUnsupportedMediaType, req)

	limit := httpapi.MaxBody
	if strings.HasSuffix(op.Path, ":batch") || op.ID == "importSession" {
		limit = httpapi.MaxBatchBody
	}
	huge := append([]byte(`{"payload":"`), bytes.Repeat([]byte("x"), limit)...)
	h.refused(tooLarge(op), op.Method, path, token, huge)
	chunked := h.request(op.Method, path, token, nil)
	chunked.Header.Set("Content-Type", "application/json")
	chunked.Body, chunked.ContentLength = io.NopCloser(bytes.NewReader(huge)), -1
	h.refusedBy(tooLarge(op), chunked)
}

// raw sends bytes as they are and returns the answer.
func (h *harness) raw(text string, halfClose bool) (status int, answer []byte) {
	h.t.Helper()
	conn, err := net.Dial("tcp", h.http.Listener.Addr().String())
	if err != nil {
		h.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		h.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		h.t.Fatal(err)
	}
	if halfClose {
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			h.t.Fatal(err)
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.StatusCode, body
}

func TestLengthsThatLie(t *testing.T) {
	h := newHarness(t)
	settled(h)
	head := func(length string) string {
		return "PUT /api/v1/workspaces/W/members/A HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " +
			h.service() + "\r\nContent-Type: application/json\r\nContent-Length: " + length + "\r\n\r\n"
	}
	h.unchanged(func() {
		for _, c := range []struct {
			length, body string
			code         httpapi.Code
		}{
			{"1099511627776", "", httpapi.CodeBodyTooLarge},
			{"40", `{"kind":"agent"`, httpapi.CodeInvalidRequest},
		} {
			status, body := h.raw(head(c.length)+c.body, c.body != "")
			var p httpapi.Problem
			if err := json.Unmarshal(body, &p); err != nil || p.Code != c.code || p.Status != status {
				t.Errorf("length %s: got %d %s, want %s", c.length, status, body, c.code)
			}
		}
		for _, length := range []string{"-1", "five", "5\r\nContent-Length: 6"} {
			if status, _ := h.raw(head(length), false); status != http.StatusBadRequest {
				t.Errorf("length %q: got %d", length, status)
			}
		}
	})
}

func TestReplayedOperationsWithAnotherBody(t *testing.T) {
	h := newHarness(t)
	settled(h)
	h.channel("d", "A")
	h.channel("e", "A")
	service := h.service()
	first := []struct {
		method, path string
		one, other   object
	}{
		{"POST", "W/scopes/c/messages", object{"opId": "p", "author": "A"}, object{"opId": "p", "author": "A", "silent": true}},
		{"PATCH", "W/scopes/c/messages/m2", object{"opId": "e", "payload": 1}, object{"opId": "e", "payload": 2}},
		{"DELETE", "W/scopes/c/messages/m1", object{"opId": "d"}, nil},
		{"POST", "W/scopes/c/messages:move", object{"opId": "m", "messages": []string{"m2"}, "to": "d"}, object{"opId": "m", "messages": []string{"m2"}, "to": "e"}},
		{"POST", "W/scopes/c/rewind", object{"opId": "r", "throughSeq": 2}, object{"opId": "r", "throughSeq": 1}},
		{"POST", "W/scopes/c/trim", object{"opId": "t", "throughSeq": 1}, object{"opId": "t", "throughSeq": 0}},
	}
	for _, c := range first {
		r := h.call(c.method, c.path, service, c.one)
		if r.status != 200 && r.status != 201 {
			t.Fatalf("%s %s: %d %s", c.method, c.path, r.status, r.body)
		}
	}
	h.unchanged(func() {
		for _, c := range first {
			h.want(200, c.method, c.path, service, c.one).is(t, true, "duplicate")
			if c.other != nil {
				h.refused(httpapi.CodeOperationMismatch, c.method, c.path, service, c.other)
			}
		}
		// The id of a removal says which message it removed.
		h.refused(httpapi.CodeOperationMismatch, "DELETE", "W/scopes/c/messages/m2", service, object{"opId": "d"})
	})
}

func TestValuesOutOfRange(t *testing.T) {
	h := newHarness(t)
	settled(h)
	b, service := h.member("B"), h.service()
	h.unchanged(func() {
		for _, n := range []string{"-1", "9007199254740992", "99999999999999999999999"} {
			for _, c := range []struct{ method, path, token, body string }{
				{"PUT", "W/scopes/c/read-state", b, `{"type":"read","expectedVersion":0,"readRevision":%s}`},
				{"PUT", "W/scopes/c/read-state", b, `{"type":"read","expectedVersion":%s,"readRevision":2}`},
				{"PUT", "W/scopes/c/read-state", b, `{"type":"read","expectedVersion":0,"activityReadSeq":%s}`},
				{"PUT", "W/scopes/c/read-state", b, `{"type":"unread","expectedVersion":0,"fromRevision":%s}`},
				{"POST", "W/read-all", b, `{"scopes":[{"scope":"c","expectedVersion":0,"readRevision":%s}]}`},
				{"POST", "W/scopes/c/messages", b, `{"opId":"x","advanceCursor":{"observedRevision":%s}}`},
				{"POST", "W/scopes/c/rewind", service, `{"opId":"x","throughSeq":%s}`},
				{"PUT", "W/scopes/c/members/B", service, `{"readRevision":%s}`},
			} {
				h.refused(httpapi.CodeRevisionInFuture, c.method, c.path, c.token, fmt.Sprintf(c.body, n))
			}
		}
		for _, n := range []string{"1.5", "1e2", `"1"`, "true", "{}"} {
			h.refused(httpapi.CodeInvalidRequest, "PUT", "W/scopes/c/read-state", b,
				fmt.Sprintf(`{"type":"read","expectedVersion":0,"readRevision":%s}`, n))
		}
		for _, query := range []string{"limit=0", "limit=501", "limit=x", "limit=-1", "limit="} {
			h.refused(httpapi.CodeInvalidRequest, "GET", "W/unread?"+query, b, nil)
		}
		many := make([]object, 1001)
		for i := range many {
			many[i] = object{"id": fmt.Sprint("x", i), "kind": "human"}
		}
		h.refused(httpapi.CodeInvalidRequest, "POST", "W/members:batch", service, object{"members": many})
		names := make([]string, 1001)
		for i := range names {
			names[i] = "A"
		}
		h.refused(httpapi.CodeInvalidRequest, "POST", "W/scopes/c/messages", b, object{"opId": "x", "mentions": names})
		messages := make([]object, 6)
		for i := range messages {
			messages[i] = object{"scope": "c", "opId": fmt.Sprint("n", i), "author": "A", "mentions": names[:1000]}
		}
		h.refused(httpapi.CodeInvalidRequest, "POST", "W/messages:batch", service, object{"messages": messages})
		h.refused(httpapi.CodeInvalidRequest, "POST", "W/scopes/c/messages", b,
			object{"opId": "x", "payload": strings.Repeat("x", 64<<10)})
		h.refused(httpapi.CodeInvalidRequest, "POST", "W/scopes/c/messages", b,
			object{"opId": "x", "expiresAt": "yesterday"})
		h.refused(httpapi.CodeInvalidRequest, "PUT", "W/scopes/s", service, object{"type": "session"})
		h.refused(httpapi.CodeInvalidRequest, "POST", "W/unread:query", service, object{"members": names[:201]})
		h.refused(httpapi.CodeInvalidRequest, "POST", "W/unread:query", service,
			object{"members": names[:6], "scopes": names[:1000]})
	})
}
