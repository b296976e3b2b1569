package conform_test

import (
	"bytes"
	"fmt"
	"math"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/conformance"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/httpapi"
)

// subject is a server under test, as a member of it sees it.
type subject struct {
	*conformance.Server
	http *httptest.Server
}

func newSubject(t *testing.T) *subject {
	t.Helper()
	engine, err := tidemark.Open(t.Context(), tidemark.Options{
		Facts: "sqlite:" + filepath.Join(t.TempDir(), "facts.db"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.CreateWorkspace(t.Context(), "acme", "Acme"); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Workspace("acme").PutMember(t.Context(), facts.PutMember{ID: "ada"}); err != nil {
		t.Fatal(err)
	}
	secret := bytes.Repeat([]byte("k"), 32)
	auth, err := httpapi.NewJWT(httpapi.JWTConfig{Secrets: [][]byte{secret}})
	if err != nil {
		t.Fatal(err)
	}
	api, err := httpapi.New(httpapi.Config{Engine: engine, Auth: auth, Limits: httpapi.Limits{
		MemberRate: 1e6, MemberBurst: 1e6,
	}})
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"sub": "ada", "ws": "acme", "exp": jwt.NewNumericDate(time.Now().Add(time.Hour)),
	}).SignedString(secret)
	if err != nil {
		t.Fatal(err)
	}
	s := &subject{}
	s.http = httptest.NewServer(api)
	t.Cleanup(func() {
		s.http.Close()
		auth.Close()
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	if s.Server, err = conformance.NewServer(s.http.URL, token); err != nil {
		t.Fatal(err)
	}
	s.Client = s.http.Client()
	return s
}

func cases(t *testing.T) []conformance.Case {
	t.Helper()
	suites, err := conformance.Load()
	if err != nil {
		t.Fatal(err)
	}
	var out []conformance.Case
	for _, s := range suites {
		out = append(out, s.Cases...)
	}
	return out
}

// Every case holds on this server, twice: a case leaves nothing behind that another one meets.
//
// covers: SE-132 SE-133 SE-134 SE-135 SE-136 SE-137
func TestTheServerConforms(t *testing.T) {
	s := newSubject(t)
	for range 2 {
		for _, c := range cases(t) {
			r, err := s.Run(t.Context(), &c)
			if err != nil {
				t.Fatal(err)
			}
			if !r.OK() {
				t.Errorf("%s, step %d: %s", r.Case, r.Step, r.Problem)
			}
		}
	}
}

// Whatever a case expects, it notices when that is not so: each part of each expected answer is
// altered once, and the case must fail there.
func TestEveryExpectationCanFail(t *testing.T) {
	alterAll(t, newSubject(t).Server, cases(t), math.MaxInt)
}

// leaves are the paths of everything that an expectation says.
func leaves(at string, v any) []string {
	var out []string
	add := func(step string, v any) {
		if at != "" {
			step = at + "." + step
		}
		out = append(out, leaves(step, v)...)
	}
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			add(k, inner)
		}
	case []any:
		for i, inner := range v {
			add(strconv.Itoa(i), inner)
		}
		out = append(out, at+".#") // its length
	default:
		out = append(out, at)
	}
	return out
}

// spoilt changes the value at a path into another one.
func spoilt(v any, path []string) any {
	if len(path) == 0 {
		switch v := v.(type) {
		case float64:
			return v + 1
		case bool:
			return !v
		case nil:
			return 1
		default:
			return fmt.Sprint(v, "?")
		}
	}
	switch at := v.(type) {
	case map[string]any:
		at[path[0]] = spoilt(at[path[0]], path[1:])
		return at
	case []any:
		switch {
		case path[0] == "#" && len(at) == 0:
			return append(at, "?")
		case path[0] == "#":
			return at[1:]
		}
		i, _ := strconv.Atoi(path[0])
		at[i] = spoilt(at[i], path[1:])
		return at
	}
	return v
}

// A server that is none, or does not take the token, is an error and no failed case.
func TestNoServer(t *testing.T) {
	all := cases(t)
	for _, address := range []string{"", "nonsense", "ftp://x", "http://"} {
		if _, err := conformance.NewServer(address, "t"); err == nil {
			t.Errorf("%q is an address", address)
		}
	}
	s := newSubject(t)
	wrong := *s.Server
	wrong.Token = "nonsense"
	if _, err := wrong.Run(t.Context(), &all[0]); err == nil {
		t.Error("a token that is not taken is no error")
	}
	s.http.Close()
	if _, err := s.Run(t.Context(), &all[0]); err == nil {
		t.Error("no server is no error")
	}
}
