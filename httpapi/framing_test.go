package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/internal/apicheck"
)

// inboxWrites are the addresses that are held to the framing rules in every server.
var inboxWrites = []string{
	"/api/v1/workspaces/W/members/A/inbox/messages",
	"/api/v1/workspaces/W/members/A/inbox:open",
	"/api/v1/workspaces/W/members/A/inbox/acks",
}

// isFramed tells operations that are held to them, where no configuration names more.
func isFramed(op apicheck.Operation) bool {
	return op.Method == "POST" && (strings.Contains(op.Path, "/inbox/") || strings.HasSuffix(op.Path, "/inbox:open"))
}

// tooLarge is what is said about a body that is.
func tooLarge(op apicheck.Operation) httpapi.Code {
	if isFramed(op) {
		return httpapi.CodeInvalidRequest
	}
	return httpapi.CodeBodyTooLarge
}

const batchPath = "/api/v1/workspaces/W/messages:batch"

// framed is a harness in which batches of messages are held to the rules as well, and the address
// of a server of its API on a listener of its API.
func framed(t *testing.T) (h *harness, address string) {
	t.Helper()
	h = newHarness(t, func(_ *tidemark.Options, c *httpapi.Config) {
		c.Framed = []string{"POST /api/v1/workspaces/{ws}/messages:batch"}
		c.CORSOrigins = []string{"https://app.example"}
		c.Limits.BodyTimeout = time.Second
	})
	settled(h)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	// Refused connections are kept for a moment; the server of the harness waits for them.
	server := &http.Server{Handler: h.api, ReadHeaderTimeout: patience, ConnState: h.http.Config.ConnState}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(h.api.Listener(l)) }()
	t.Cleanup(func() { server.Close(); <-ended })
	return h, l.Addr().String()
}

// exchanged is an answer, and whether the connection ended behind it.
type exchanged struct {
	reply
	problem       httpapi.Problem // zero for a success
	closes, ended bool
}

// exchange sends bytes as they are. The client may end what it sends there.
func exchange(t *testing.T, address, text string, half bool) (e exchanged) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	if half {
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	in := bufio.NewReader(conn)
	r, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	e.status, e.header, e.closes = r.StatusCode, r.Header, r.Close
	if e.body, err = io.ReadAll(r.Body); err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal(e.body, &e.problem) // a success is none
	if e.closes {
		rest, err := io.ReadAll(in)
		e.ended = err == nil && len(rest) == 0
	}
	return e
}

// isInvalid tells that it is the refusal of a request that makes no sense.
func (e exchanged) isInvalid() bool {
	return e.status == 400 && e.problem.Code == httpapi.CodeInvalidRequest && e.problem.Status == 400 &&
		e.problem.Detail != "" && e.header.Get("Content-Type") == "application/problem+json"
}

// Whatever is wrong with the length of a request is answered with the project's own refusal,
// whoever asks; its connection ends, and nothing has changed.
//
// covers: IN-117 IN-118 IN-119 IN-120 IN-124 IN-125
func TestFramedRoutes(t *testing.T) {
	h, address := framed(t)
	body := func(op string) string {
		return fmt.Sprintf(`{"messages":[{"scope":"c","opId":%q,"author":"A"}]}`, op)
	}
	head := func(path, token, fields string) string {
		return "POST " + path + " HTTP/1.1\r\nHost: x\r\nOrigin: https://app.example\r\nAuthorization: Bearer " + token +
			"\r\nContent-Type: application/json\r\n" + fields + "\r\n\r\n"
	}
	h.unchanged(func() {
		for _, path := range append(inboxWrites, batchPath) {
			for what, fields := range map[string]string{
				"empty transfer encoding": "Content-Length: 2\r\nTransfer-Encoding:",
				"chunked":                 "Transfer-Encoding: chunked",
				"ambiguous length":        "Content-Length: 2\r\nContent-Length: 3",
				"equal lengths":           "Content-Length: 2\r\nContent-Length: 2",
				"a list":                  "Content-Length: 2, 2",
				"huge numeric length":     "Content-Length: 1000000000000000000000",
				"a byte too many":         fmt.Sprint("Content-Length: ", httpapi.MaxBody+1),
				"negative":                "Content-Length: -1",
				"signed":                  "Content-Length: +2",
				"no number":               "Content-Length: two",
				"none":                    "X: y",
				"in a fold":               "X: y\r\n Content-Length: 2",
			} {
				for _, token := range []string{h.service(), "nonsense"} {
					e := exchange(t, address, head(path, token, fields)+body("smuggled"), false)
					if !e.isInvalid() || !e.ended {
						t.Errorf("%s, %s: %d %s, ended %t", path, what, e.status, e.body, e.ended)
					}
					if got := e.header.Get("Access-Control-Allow-Origin"); got != "https://app.example" {
						t.Errorf("%s, %s: pages of %q may read the answer", path, what, got)
					}
				}
			}
			// As it should be: whatever comes of it, it is not the length.
			e := exchange(t, address, head(path, "nonsense", "Content-Length: 2")+"{}", false)
			if e.status != 401 && e.status != 404 {
				t.Errorf("%s: %d %s", path, e.status, e.body)
			}
		}
		for what, text := range map[string]string{
			"unpaired surrogate": `{"messages":[{"scope":"c","opId":"s","author":"A","payload":"\ud800"}]}`,
			"no UTF-8":           "{\"messages\":[{\"scope\":\"c\",\"opId\":\"s\",\"author\":\"A\",\"payload\":\"\xff\"}]}",
			"half":               body("half")[:20],
		} {
			e := exchange(t, address, head(batchPath, h.service(), fmt.Sprint("Content-Length: ", len(text)))+text, false)
			if !e.isInvalid() {
				t.Errorf("%s: %d %s", what, e.status, e.body)
			}
		}
		for _, half := range []bool{true, false} { // the client ends, or is silent
			e := exchange(t, address, head(batchPath, h.service(), "Content-Length: 1000")+body("short"), half)
			if !e.isInvalid() || !e.ended {
				t.Errorf("a short body: %d %s, ended %t", e.status, e.body, e.ended)
			}
		}
	})
	text := body("good")
	e := exchange(t, address, head(batchPath, h.service(), fmt.Sprint("Content-Length: ", len(text)))+text, false)
	if e.status != 200 || e.closes {
		t.Errorf("%d %s, closes %t", e.status, e.body, e.closes)
	}
	h.want(200, "GET", "W/unread", h.member("B"), nil).is(t, 2, "scopes", "c", "unread")
}

// Streams, sockets and everything else go through the same listener.
func TestStreamsOnAFramedListener(t *testing.T) {
	h, address := framed(t)
	h.http.URL = "http://" + address
	b := h.member("B")
	stream, socket := h.sse(b, "", ""), h.ws(b, "")
	stream.snapshot()
	socket.snapshot()
	h.post("c", "A", nil)
	stream.unread("c").data.is(t, 2, "row", "unread")
	socket.unread("c").data.is(t, 2, "row", "unread")
}

// A prefix belongs to the addresses that are held to the rules; without a listener of the server
// they hold as far as a handler can see.
func TestFramedBelowAPrefix(t *testing.T) {
	h := newHarness(t, func(_ *tidemark.Options, c *httpapi.Config) { c.Prefix = "/below" })
	for _, path := range inboxWrites {
		for prefix, status := range map[string]int{"/below": 400, "": 404} {
			got, body := h.raw("POST "+prefix+path+" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false)
			if got != status {
				t.Errorf("%s%s: %d %s", prefix, path, got, body)
			}
		}
	}
}

func TestFramedRoutesAreChecked(t *testing.T) {
	h := newHarness(t)
	auth, err := httpapi.NewJWT(httpapi.JWTConfig{Secrets: [][]byte{secret}})
	if err != nil {
		t.Fatal(err)
	}
	defer auth.Close()
	_, err = httpapi.New(httpapi.Config{Engine: h.engine, Auth: auth, Framed: []string{"messages"}})
	if err == nil || !strings.Contains(err.Error(), `"messages"`) {
		t.Error(err)
	}
}
