package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/readstate"
)

// benchRows is how many channels the member of the benchmark has joined.
const benchRows = 200

// benchMessages is how many messages each of them has.
const benchMessages = 150

// BenchmarkListUnread asks for all rows of one member: the handler alone, and over a connection.
func BenchmarkListUnread(b *testing.B) {
	api, token := benchServer(b)
	request := func(url string) *http.Request {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodGet,
			fmt.Sprintf("%s/api/v1/workspaces/W/unread?limit=%d", url, benchRows), nil)
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		return r
	}
	b.Run("handler", func(b *testing.B) {
		r := request("")
		w := &discard{header: http.Header{}}
		b.ReportAllocs()
		for b.Loop() {
			clear(w.header)
			api.ServeHTTP(w, r)
		}
		if w.status != http.StatusOK {
			b.Fatalf("status %d", w.status)
		}
		b.ReportMetric(float64(w.bytes)/float64(b.N), "bytes/answer")
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
	})
	b.Run("connection", func(b *testing.B) {
		server := httptest.NewServer(api)
		defer server.Close()
		r := request(server.URL)
		b.ReportAllocs()
		for b.Loop() {
			resp, err := server.Client().Do(r) //nolint:bodyclose // closeAll does
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
				b.Fatal(resp.Status, err)
			}
			closeAll(b, resp.Body)
		}
	})
}

// discard is a connection that takes answers and forgets them.
type discard struct {
	header http.Header
	status int
	bytes  int
}

func (d *discard) Header() http.Header    { return d.header }
func (d *discard) WriteHeader(status int) { d.status = status }

func (d *discard) Write(p []byte) (int, error) {
	d.bytes += len(p)
	return len(p), nil
}

// benchServer is a server over an engine whose member R reads what W writes, and R's token.
func benchServer(b *testing.B) (api *httpapi.Server, token string) {
	b.Helper()
	engine, err := tidemark.Open(b.Context(), tidemark.Options{
		Facts: "sqlite:" + filepath.Join(b.TempDir(), "facts.db"),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { closeAll(b, engine) })
	if _, err := engine.CreateWorkspace(b.Context(), "W", ""); err != nil {
		b.Fatal(err)
	}
	batch := engine.Workspace("W").Batch()
	for c := range benchRows {
		scope := readstate.ScopeID("channel-" + strconv.Itoa(c))
		batch.PutScope(facts.PutScope{ID: scope, Type: readstate.Channel})
		for _, m := range []readstate.MemberID{"R", "W"} {
			batch.PutMembership(facts.PutMembership{Scope: scope, Member: m, CreateMember: true})
		}
		for m := range benchMessages {
			batch.Post(facts.Post{
				Scope: scope, OpID: fmt.Sprint(c, "-", m), Author: "W",
				Payload: []byte(`{"text":"hello"}`), By: facts.Actor{Trusted: true},
			})
		}
		read := readstate.Revision(1 + c*c%benchMessages)
		batch.MarkRead(facts.MarkRead{Scope: scope, Member: "R", Revision: &read, Trusted: true})
	}
	if _, err := batch.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	auth, err := httpapi.NewJWT(httpapi.JWTConfig{Secrets: [][]byte{secret}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(auth.Close)
	api, err = httpapi.New(httpapi.Config{
		Engine: engine, Auth: auth, Limits: httpapi.Limits{MemberRate: 1e6, MemberBurst: 1e6},
	})
	if err != nil {
		b.Fatal(err)
	}
	token, err = httpapi.SignToken(secret, httpapi.Claims{
		Workspace: "W", Member: "R", Expires: time.Now().Add(time.Hour),
	})
	if err != nil {
		b.Fatal(err)
	}
	return api, token
}

func closeAll(b *testing.B, c io.Closer) {
	b.Helper()
	if err := c.Close(); err != nil {
		b.Error(err)
	}
}
