package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The cases hold against a server that runs, and each is reported by its id.
//
// covers: SE-131
func TestConformance(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte(testSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, "--facts", "sqlite:"+filepath.Join(dir, "facts.db"), "--jwt-secret-file", secret)
	token := func(args ...string) string {
		out := run(t, append([]string{"token", "--jwt-secret-file", secret}, args...)...).done(t)
		return strings.TrimSpace(out.out)
	}
	admin := token("--ws", "*", "--sub", "root", "--role", "admin")
	put(t, s.url+"/api/v1/workspaces/acme", admin, `{"name":"Acme"}`)
	put(t, s.url+"/api/v1/workspaces/acme/members/ada", admin, `{"kind":"human"}`)
	ada := token("--ws", "acme", "--sub", "ada")
	flags := []string{"conformance", "--url", s.url, "--token", ada}

	all := run(t, flags...).done(t)
	if !strings.Contains(all.out, "ok    read-to-the-head\n") || !strings.Contains(all.out, ", 0 failed\n") {
		t.Errorf("it says %s", all.out)
	}
	if !strings.Contains(all.out, "cases of the hub not run") || strings.Contains(all.out, "sc-001-1") {
		t.Errorf("without the secret it says %s", all.out)
	}
	hub := run(t, append(flags, "--jwt-secret-file", secret)...).done(t)
	if !strings.Contains(hub.out, "ok    sc-001-1\n") || !strings.Contains(hub.out, ", 0 failed\n") ||
		strings.Contains(hub.out, "not run") {
		t.Errorf("it says %s", hub.out)
	}
	var results []struct{ Case, Problem string }
	few := run(t, append(flags, "--json", "--only", "^receipt")...).done(t)
	if err := json.Unmarshal([]byte(few.out), &results); err != nil || len(results) != 2 {
		t.Errorf("%s: %v", few.out, err)
	}
	run(t, append(flags, "--only", "^no-such-case$")...).fails(t, exitUsage, "no case has such an id")
	run(t, append(flags, "--only", "(")...).fails(t, exitUsage, "--only")
	run(t, "conformance", "--url", "nonsense", "--token", ada).fails(t, exitUsage, "no address of a server")
	run(t, "conformance", "--url", s.url, "--token", "x").fails(t, exitFailed, "does not take the token")

	// A member whom nobody has made has no sessions: every case fails, by its id.
	ghost := run(t, "conformance", "--url", s.url, "--only", "^receipt-of-the-latest-page$",
		"--token", token("--ws", "acme", "--sub", "ghost"))
	ghost.fails(t, exitFailed, "1 case failed")
	if !strings.HasPrefix(ghost.out, "FAIL  receipt-of-the-latest-page: ") ||
		!strings.Contains(ghost.out, "step 1: POST /api/sessions answered 404") {
		t.Errorf("it says %s", ghost.out)
	}
}

func put(t *testing.T, url, token, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		t.Fatalf("%s: %s", url, resp.Status)
	}
}
