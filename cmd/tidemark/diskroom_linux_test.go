package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A server whose disk is full goes on by itself once there is room: the guide tells operators so.
func TestFullDiskWithMoreRoom(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=6m"); err != nil {
		t.Skipf("a small disk needs the right to mount one: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	secret := secretFile(t, testSecret)
	s := serve(t, "--facts=sqlite:"+filepath.Join(dir, "facts.db"), "--jwt-secret-file", secret)
	service, alice := prepare(t, s.url, secret)
	payload := strings.Repeat("x", 60_000)
	acknowledged := 0
	for ; acknowledged < 300; acknowledged++ {
		code, body := post(t, s.url, service, fmt.Sprint("m", acknowledged), payload)
		if code == 503 && strings.Contains(body, `"unavailable"`) {
			break
		}
		if code != 201 {
			t.Fatalf("message %d: %d %s", acknowledged, code, body)
		}
	}
	line := s.log.await("operation failed")
	if line == nil || !strings.Contains(fmt.Sprint(line["error"]), "no space left for the database") {
		t.Errorf("the log says %v", line)
	}
	if n := unreadOf(t, s.url, alice); n != fmt.Sprint(acknowledged) {
		t.Errorf("on the full disk: unread %s of %d acknowledged", n, acknowledged)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	if code, body := post(t, s.url, service, fmt.Sprint("m", acknowledged), payload); code != 201 {
		t.Errorf("with more room: %d %s", code, body)
	}
	if n := unreadOf(t, s.url, alice); n != fmt.Sprint(acknowledged+1) {
		t.Errorf("with more room: unread %s of %d", n, acknowledged+1)
	}
	s.end(t) // before the disk goes
}
