//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// When the disk is full, what was acknowledged stays, what is not is refused as unavailable, and
// the process lives and still answers. A limit on the size of files stands for the disk.
func TestFullDisk(t *testing.T) {
	db, _ := database(t)
	secret := secretFile(t, testSecret)
	const limit = 3 << 20
	p := startProgram(t, []string{fmt.Sprint(fileSize, "=", limit)}, db, "--jwt-secret-file", secret)
	service, alice := prepare(t, p.url, secret)
	acknowledged := 0
	for i := 0; ; i++ {
		code, body := post(t, p.url, service, fmt.Sprint("m", i), strings.Repeat("x", 60_000))
		if code == 503 && strings.Contains(body, `"unavailable"`) {
			break
		}
		if code != 201 || i*60_000 > 2*limit {
			t.Fatalf("message %d: %d %s", i, code, body)
		}
		acknowledged++
	}
	if acknowledged == 0 {
		t.Fatal("nothing was acknowledged")
	}
	if n := unreadOf(t, p.url, alice); n != fmt.Sprint(acknowledged) {
		t.Errorf("on the full disk: unread %s of %d acknowledged", n, acknowledged)
	}
	line := p.log.find("operation failed")
	if line == nil || !strings.Contains(fmt.Sprint(line["error"]), "file size limit") {
		t.Errorf("the log does not say it: %v", p.log.all)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d acknowledged, exit code %d", acknowledged, p.wait(t))
	s := serve(t, db, "--jwt-secret-file", secret)
	if n := unreadOf(t, s.url, alice); n != fmt.Sprint(acknowledged) {
		t.Errorf("after a restart: unread %s of %d acknowledged", n, acknowledged)
	}
	// The refused message may be sent again: it did not happen.
	if code, body := post(t, s.url, service, fmt.Sprint("m", acknowledged), strings.Repeat("x", 60_000)); code != 201 {
		t.Errorf("again: %d %s", code, body)
	}
}

// A replay that runs out of disk says so in one line, and goes on once there is room.
func TestReplayOnAFullDisk(t *testing.T) {
	db, _ := database(t)
	trace := filepath.Join(t.TempDir(), "trace.csv")
	run(t, "trace", "--messages", "6000", "-o", trace).done(t)
	roomy, _ := database(t)
	want := run(t, "replay", trace, roomy).done(t).out
	code, stderr := runLimited(t, 500_000, "replay", trace, db)
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	last := lines[len(lines)-1]
	if code != exitFailed || !strings.HasPrefix(last, "tidemark: ") || !strings.Contains(last, "file size limit") {
		t.Errorf("code %d: %q", code, last)
	}
	for _, line := range lines[:len(lines)-1] {
		if !strings.HasPrefix(line, "loading") {
			t.Errorf("more than one line: %q", line)
		}
	}
	// What was loaded is a beginning of the trace, so that the rest ends at the same counts.
	got := run(t, "replay", trace, db).done(t).out
	if totals(got) != totals(want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// totals leaves out how long it took.
func totals(out string) string {
	_, rest, _ := strings.Cut(out, "\n")
	return rest
}
