package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/internal/settings"
)

// samples reads the metrics of a server by name, those with labels added up.
func samples(t *testing.T, s *served) map[string]float64 {
	t.Helper()
	code, text := ask(t, "GET", s.admin+"/metrics", "", "")
	if code != 200 {
		t.Fatalf("metrics: %d", code)
	}
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		series, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if i := strings.LastIndex(line, "} "); i >= 0 {
			series, value = line[:i+1], strings.TrimSpace(line[i+2:])
		}
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		name, _, _ := strings.Cut(series, "{")
		all[name] += n
	}
	return all
}

// inForce compares what the parts of a server say of their limits with what was set. Settings of
// snapshot mode have no part here.
func inForce(t *testing.T, s *served, want func(settings.Setting) string) {
	t.Helper()
	all := samples(t, s)
	for _, x := range settings.All() {
		if x.OfSnapshotMode() {
			continue
		}
		v, err := settings.Load(func(name string) (string, bool) { return want(x), name == x.Name })
		if err != nil {
			t.Fatal(err)
		}
		n := x.Number(&v)
		if x.Kind == settings.Duration {
			n /= 1e9
		}
		if got, ok := all[x.Limit]; !ok || got != n {
			t.Errorf("%s=%s, but %s is %v", x.Name, want(x), x.Limit, got)
		}
	}
}

// Without a file and without a variable a server starts, with the documented defaults.
//
// covers: RT-440
func TestServeStartsWithTheDefaults(t *testing.T) {
	db, _ := database(t)
	s := serve(t, db, "--jwt-secret-file", secretFile(t, testSecret))
	inForce(t, s, func(x settings.Setting) string { return x.Default() })
	if line := s.log.find("setting"); line != nil {
		t.Errorf("the log speaks of %v", line)
	}
}

// Every setting reaches the part that it is of, whether the command line, the environment or the
// file has it.
//
// covers: RT-442
func TestSettingsReachTheServer(t *testing.T) {
	other := map[string]string{}
	file := map[string]string{}
	args := []string{"--jwt-secret-file", secretFile(t, testSecret)}
	for i, x := range settings.All() {
		least, most := x.Bounds()
		other[x.Name] = least
		if least == x.Default() {
			other[x.Name] = most
		}
		switch i % 3 {
		case 0:
			args = append(args, "--"+x.Flag()+"="+other[x.Name])
		case 1:
			t.Setenv(x.Name, other[x.Name])
		case 2:
			file[x.Flag()] = other[x.Name]
		}
	}
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "c.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	db, _ := database(t)
	s := serve(t, append(args, db, "--config", path)...)
	inForce(t, s, func(x settings.Setting) string { return other[x.Name] })
	for _, msg := range []string{"setting", "this setting is of snapshot mode"} {
		if s.log.await(msg) == nil {
			t.Errorf("the log does not say %q", msg)
		}
	}
}

// runAlone runs a command in a process of its own.
func runAlone(t *testing.T, env []string, args ...string) (code int, stderr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	cmd := exec.Command(self, args...)
	cmd.Env = append(append(os.Environ(), asProgram+"=1"), env...)
	cmd.Stderr = &text
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), text.String()
}

// A value that is not understood ends the process at once, with a line that names it.
//
// covers: RT-443, RT-444, RT-445
func TestInvalidSettingsStopTheProcess(t *testing.T) {
	here := t.TempDir()
	t.Chdir(here)
	const family = "TIDEMARK_UNREAD_RUNTIME_"
	for name, texts := range map[string][]string{
		"SNAPSHOT_FLUSH_INTERVAL":   {"0s", "-1s", "30"},
		"SNAPSHOT_FLUSH_BATCH_SIZE": {"0", "-1", "x", "1.5"},
		"HYDRATE_MAX_CONCURRENCY":   {"0", "1.5"},
		"HYDRATE_BATCH_SIZE":        {"-1", "x"},
		"HYDRATE_BATCHSIZE":         {"100"},
	} {
		for _, text := range texts {
			secret := secretVariable + "=" + testSecret
			code, stderr := runAlone(t, []string{secret, family + name + "=" + text}, "serve", "--listen", "127.0.0.1:0")
			if code != exitUsage || !strings.Contains(stderr, "$"+family+name) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s=%s: code %d, %q", name, text, code, stderr)
			}
		}
	}
	if left, _ := os.ReadDir(here); len(left) != 0 {
		t.Errorf("a process that did not start left %v behind", left)
	}
}

func TestDoctorLooksAtSettings(t *testing.T) {
	db, _ := database(t)
	if o := run(t, "doctor", db).done(t); !strings.Contains(o.out, "all defaults") {
		t.Errorf("%s", o.out)
	}
	t.Setenv("TIDEMARK_LANE_QUEUE_DEPTH", "17")
	if o := run(t, "doctor", db).done(t); !strings.Contains(o.out, "TIDEMARK_LANE_QUEUE_DEPTH=17") {
		t.Errorf("%s", o.out)
	}
	t.Setenv("TIDEMARK_LANE_QUEUE_DEPTH", "none")
	o := run(t, "doctor", db)
	if o.code != exitFailed || !strings.Contains(o.out, `($TIDEMARK_LANE_QUEUE_DEPTH) is "none"`) {
		t.Errorf("%d\n%s", o.code, o.out)
	}
}

// Each limit stands beside its present use and what counts those beyond it, where they exist.
func TestBudgetsHaveTheirFigures(t *testing.T) {
	db, _ := database(t)
	secret := secretFile(t, testSecret)
	s := serve(t, db, "--jwt-secret-file", secret, "--http-member-burst", "1", "--http-member-rate", "0.01")
	overwhelm(t, s, secret)
	all := samples(t, s)
	snapshots := exportedInSnapshotMode(t)
	for _, x := range settings.All() {
		for _, name := range []string{x.Limit, x.Use, x.Over} {
			if _, ok := all[name]; name != "" && !ok && !snapshots[name] {
				t.Errorf("%s speaks of %s, which does not exist", x.Name, name)
			}
		}
	}
	if all["tidemark_http_over_budget_total"] == 0 {
		t.Error("no refusal was counted")
	}
}

// overwhelm makes a request that a budget refuses, so that its counter is there.
func overwhelm(t *testing.T, s *served, secret string) {
	t.Helper()
	token := sign(t, secret, "--ws", "w", "--sub", "nobody")
	var codes []int
	for range 3 {
		code, _ := ask(t, "GET", s.url+"/api/v1/workspaces/w/unread", token, "")
		codes = append(codes, code)
	}
	if !slices.Contains(codes, 429) {
		t.Fatalf("answers %v", fmt.Sprint(codes))
	}
}

// Names with passwords come from files, one line each; what is set twice, missing or empty is refused
// before anything starts, and no password is in the message.
func TestNamesInFiles(t *testing.T) {
	files := filesOf(t, map[string]string{
		"facts": "sqlite:" + filepath.Join(t.TempDir(), "a.db"), "none": "", "two": "sqlite:a\nhunter2",
		"substrate": "redis://:hunter2@127.0.0.1:1", "wrong": "oracle://u:hunter2@h",
	})
	at := func(name string) string { return filepath.Join(files, name) }
	secret := secretFile(t, testSecret)
	s := serve(t, "--facts-file", at("facts"), "--substrate-file", at("substrate"), "--jwt-secret-file", secret)
	for _, line := range s.log.all {
		if strings.Contains(fmt.Sprint(line), "hunter2") {
			t.Errorf("the log has a password: %v", line)
		}
	}
	s.end(t)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--facts-file", at("facts"), "--facts", "sqlite:b.db"}, "both set"},
		{[]string{"--facts-file", at("nothing")}, "--facts-file"},
		{[]string{"--facts-file", at("none")}, "has to have one line"},
		{[]string{"--facts-file", at("two")}, "has to have one line"},
		{[]string{"--substrate-file", at("substrate"), "--substrate", "redis://h:1"}, "both set"},
		{[]string{"--substrate-file", at("none")}, "has to have one line"},
	} {
		o := run(t, append([]string{"serve", "--jwt-secret-file", secret}, c.args...)...)
		o.fails(t, exitUsage, c.says)
		if strings.Contains(o.errors, "hunter2") {
			t.Errorf("the message has a password: %s", o.errors)
		}
	}
	if o := run(t, "doctor", "--facts-file", at("facts"), "--jwt-secret-file", secret); o.code == exitUsage {
		t.Errorf("doctor: %s", o.errors)
	}
}
