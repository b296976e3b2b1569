package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/internal/dbtest"
)

// Every command that takes facts takes those of a server, or says why not.
func TestFactsOnServers(t *testing.T) {
	for _, k := range dbtest.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			db := k.New(t).Facts
			where := "--facts=" + db
			secret := secretFile(t, testSecret)
			run(t, "migrate", where, "--check").fails(t, exitFailed, "has schema 0, this program needs")
			if o := run(t, "doctor", where, "--jwt-secret-file", secret).done(t); !strings.Contains(o.out, "empty; serve makes the tables") {
				t.Errorf("%s", o.out)
			}
			if o := run(t, "migrate", where).done(t); !strings.Contains(o.out, "from schema 0 to ") {
				t.Errorf("%q", o.out)
			}
			for _, args := range [][]string{{"migrate", where, "--check"}, {"migrate", where}} {
				if o := run(t, args...).done(t); !strings.Contains(o.out, "nothing to do") {
					t.Errorf("%v: %q", args, o.out)
				}
			}
			run(t, "migrate", where, "--back-to", "2").fails(t, exitFailed, "is on a server")
			run(t, "backup", where, filepath.Join(t.TempDir(), "b")).fails(t, exitFailed, "is on a server")
			serveOnServer(t, where, secret)
			o := run(t, "doctor", where, "--jwt-secret-file", secret).done(t)
			if !strings.Contains(o.out, "ms there and back") || !strings.Contains(o.out, "schema ") {
				t.Errorf("%s", o.out)
			}
			if strings.Contains(o.out, "tidemark:tidemark@") {
				t.Errorf("the password is shown:\n%s", o.out)
			}
		})
	}
}

// serveOnServer serves twice: what was acknowledged the first time is there the second time.
func serveOnServer(t *testing.T, where, secret string) {
	t.Helper()
	admin := sign(t, secret, "--role", "admin", "--ws", "*", "--sub", "root")
	const path = "/api/v1/workspaces/w"
	s := serve(t, where, "--jwt-secret-file", secret)
	if status, text := ask(t, http.MethodPut, s.url+path, admin, `{"name":"W"}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	if code := s.end(t); code != exitDone {
		t.Errorf("ended with %d", code)
	}
	s = serve(t, where, "--jwt-secret-file", secret)
	status, text := ask(t, http.MethodGet, s.url+"/api/v1/workspaces", admin, "")
	if status != http.StatusOK || !strings.Contains(text, `"id":"w"`) {
		t.Errorf("%d %s", status, text)
	}
	if code := s.end(t); code != exitDone {
		t.Errorf("ended with %d", code)
	}
}

// A server that cannot be reached is one clear line without the password.
func TestFactsOnNoServer(t *testing.T) {
	secret := secretFile(t, testSecret)
	for _, name := range []string{
		"postgres://somebody:hunter2@127.0.0.1:1/d", "mysql://somebody:hunter2@127.0.0.1:1/d",
	} {
		for _, args := range [][]string{
			{"serve", "--facts", name, "--jwt-secret-file", secret, "--listen", "127.0.0.1:0", "--admin-listen", "off"},
			{"migrate", "--facts", name}, {"migrate", "--check", "--facts", name},
		} {
			o := run(t, args...)
			o.fails(t, exitFailed, "facts store unavailable")
			if strings.Contains(o.errors+o.out, "hunter2") || strings.Count(o.errors, "\n") != 1 {
				t.Errorf("%v:\n%s%s", args, o.out, o.errors)
			}
		}
		if o := run(t, "doctor", "--facts", name); !strings.Contains(o.out, "FAIL  database") || strings.Contains(o.out, "hunter2") {
			t.Errorf("doctor: %s", o.out)
		}
	}
}
