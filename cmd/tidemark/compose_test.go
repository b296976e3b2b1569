package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/tidemark-im/tidemark/internal/dbtest"
)

// composed is what the Compose file says of the processes.
type composed struct {
	Services map[string]struct {
		Environment map[string]string
		Secrets     []string
		ReadOnly    bool     `yaml:"read_only"`
		CapDrop     []string `yaml:"cap_drop"`
		Ports       []string
	}
	Secrets map[string]struct{ File string }
}

// The processes of the Compose file run with its environment, on private servers in place of its
// databases: a client of the central process writes, the dot comes by way of the substrate, and what was
// acknowledged is there after its owner was killed.
func TestCompose(t *testing.T) {
	substrate := os.Getenv("TIDEMARK_TEST_REDIS")
	if substrate == "" && os.Getenv("CI") == "true" {
		t.Fatal("$TIDEMARK_TEST_REDIS is not set; scripts/services starts a server")
	}
	if substrate == "" {
		t.Skip("$TIDEMARK_TEST_REDIS is not set; scripts/services starts a server")
	}
	var file composed
	if err := yaml.Unmarshal([]byte(deployFile(t, "compose/compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	facts := dbtest.Kinds[0].New(t).Facts
	files := filesOf(t, map[string]string{"facts": facts, "substrate": substrate, "jwt": testSecret})
	found(t, facts, filepath.Join(files, "jwt"))

	addresses := map[string]string{} // host:port of the file to one of this machine
	for name := range file.Services {
		addresses[name+":8480"] = freeAddress(t)
	}
	processes := map[string]*process{}
	for name, s := range file.Services {
		if s.Environment["TIDEMARK_PROFILE"] == "" {
			continue
		}
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) {
			t.Errorf("%s may do more than it needs", name)
		}
		p := process{args: []string{"serve"}, dir: t.TempDir()}
		for variable, value := range s.Environment {
			if secret, ok := strings.CutPrefix(value, "/run/secrets/"); ok {
				if !slices.Contains(s.Secrets, secret) || file.Secrets[secret].File == "" {
					t.Errorf("%s has no secret %s", name, secret)
				}
				value = filepath.Join(files, secret)
			}
			for from, to := range addresses {
				value = strings.ReplaceAll(value, "//"+from, "//"+to)
			}
			if variable == "TIDEMARK_LISTEN" {
				if value != "0.0.0.0:8480" {
					t.Errorf("%s listens on %s", name, value)
				}
				value = addresses[name+":8480"]
			}
			p.env = append(p.env, variable+"="+value)
		}
		processes[name] = startProcess(t, p)
	}
	if len(processes) != 3 || processes["central"] == nil {
		t.Fatalf("it has %d processes", len(processes))
	}
	killOwner(t, processes, sign(t, filepath.Join(files, "jwt"), "--role", "admin", "--ws", "*", "--sub", "root"))
}

// found makes the tables and a workspace, before others share the database.
func found(t *testing.T, facts, secret string) {
	t.Helper()
	s := serve(t, "--facts="+facts, "--jwt-secret-file", secret)
	admin := sign(t, secret, "--role", "admin", "--ws", "*", "--sub", "root")
	for _, path := range []string{"", "/scopes/s", "/scopes/s/members/ann?create=members", "/scopes/s/members/bob?create=members"} {
		body := "{}"
		switch path {
		case "":
			body = `{"name":"W"}`
		case "/scopes/s":
			body = `{"type":"channel"}`
		}
		if status, text := ask(t, "PUT", s.url+"/api/v1/workspaces/w"+path, admin, body); status != 200 && status != 201 {
			t.Fatalf("%s: %d %s", path, status, text)
		}
	}
	s.end(t)
}

// killOwner posts by way of the central process, kills who owns the workspace, and posts again.
func killOwner(t *testing.T, processes map[string]*process, admin string) {
	t.Helper()
	central := processes["central"].url
	owners := func() (names []string) {
		for name, p := range processes {
			if name == "central" || p.cmd.ProcessState != nil {
				continue
			}
			if status, text := ask(t, "GET", p.url+"/api/v1/workspaces/w/unread?member=bob", admin, ""); status == 200 &&
				strings.Contains(text, `"state":"ready"`) {
				names = append(names, name)
			}
		}
		return names
	}
	post := func(id string) {
		eventually(t, func() bool {
			status, _ := ask(t, "POST", central+"/api/v1/workspaces/w/scopes/s/messages", admin,
				`{"opId":"`+id+`","author":"ann"}`)
			return status == 200 || status == 201
		})
	}
	counts := func(n int) {
		eventually(t, func() bool {
			_, text := ask(t, "GET", central+"/api/v1/workspaces/w/unread?member=bob", admin, "")
			return strings.Contains(text, fmt.Sprintf(`"badge":{"messages":%d,`, n))
		})
		eventually(t, func() bool {
			_, text := ask(t, "GET", central+"/api/v1/workspaces?member=bob", admin, "")
			return strings.Contains(text, `"hasUnread":true,"state":"ready"`)
		})
	}
	post("1")
	counts(1)
	first := owners()
	if len(first) != 1 {
		t.Fatalf("owned by %v", first)
	}
	processes[first[0]].kill()
	post("2")
	counts(2)
	if second := owners(); len(second) != 1 || second[0] == first[0] {
		t.Errorf("owned by %v after %v", second, first)
	}
	for name, p := range processes {
		if name != first[0] {
			p.end(t)
		}
	}
}

// eventually waits for what other processes do.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(2 * time.Minute)
	defer end.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatal("it did not happen")
		}
	}
}
