package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/internal/bench"
)

// The program measures itself from exec to the first page, and writes both reports.
func TestBench(t *testing.T) {
	t.Setenv(asProgram, "1") // for the processes that the command starts
	dir := t.TempDir()
	text, raw := filepath.Join(dir, "report.md"), filepath.Join(dir, "report.json")
	run(t, "bench", "--scale", "quick", "--figures", "^(start|flush-rows|redis-counts)$",
		"--markdown", text, "--json", raw).done(t)
	file, err := os.ReadFile(raw)
	if err != nil {
		t.Fatal(err)
	}
	var report bench.Report
	if err := json.Unmarshal(file, &report); err != nil {
		t.Fatal(err)
	}
	why := map[string]string{}
	for _, f := range report.Figures {
		why[f.Name] = f.Why
	}
	if len(why) != 3 || why["start"] != "" || why["redis-counts"] != "needs --against redis=DSN" {
		t.Errorf("measured %v", why)
	}
	if file, err = os.ReadFile(text); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"tidemark bench --scale quick", "| `start` |", "| Go | go"} {
		if !strings.Contains(string(file), part) {
			t.Errorf("the report lacks %q", part)
		}
	}
}

func TestBenchList(t *testing.T) {
	out := run(t, "bench", "--list", "--figures", "^dot$").done(t).out
	if strings.Count(out, "\n") != 1 || !strings.Contains(out, "at most 3") {
		t.Errorf("listed %q", out)
	}
}

func TestBenchUsage(t *testing.T) {
	for says, args := range map[string][]string{
		"--rounds is 4":    {"--rounds", "4"},
		"--figures: error": {"--figures", "("},
		"no figure matche": {"--figures", "nothing"},
		"want one of":      {"--against", "oracle=x"},
		"redis=, want one": {"--against", "redis="},
		"--scale":          {"--scale", "huge"},
	} {
		run(t, append([]string{"bench"}, args...)...).fails(t, exitUsage, says)
	}
}
