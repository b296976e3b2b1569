package main

import (
	"bufio"
	"context"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The demo prints links that work, and leaves nothing behind.
func TestDemo(t *testing.T) {
	home := t.TempDir()
	t.Setenv("TMPDIR", home)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, w := io.Pipe()
	opened := make(chan string, 1)
	ended := make(chan int, 1)
	go func() {
		m := Main{Stdout: w, Stderr: io.Discard, Now: time.Now, Browse: func(_ context.Context, url string) error {
			opened <- url
			return nil
		}}
		ended <- m.Run(ctx, []string{"demo", "--listen", "127.0.0.1:0", "--every", "10ms", "--open"})
		w.Close()
	}()
	var base string
	var links []*url.URL
	out := bufio.NewScanner(r)
	for out.Scan() && !strings.HasPrefix(out.Text(), "Everything is in") {
		line := strings.TrimSpace(out.Text())
		if text, ok := strings.CutPrefix(line, "Tidemark demo on "); ok {
			base = text
		}
		if u, err := url.Parse(line); err == nil && u.Scheme == "http" {
			links = append(links, u)
		}
	}
	if len(links) != 4 || base == "" {
		t.Fatalf("base %q, links %v", base, links)
	}
	go io.Copy(io.Discard, r)
	if first := <-opened; first != links[0].String() {
		t.Errorf("opened %s", first)
	}
	if code, body := ask(t, "GET", base+"/app/", "", ""); code != 200 || !strings.Contains(body, `id="app"`) {
		t.Errorf("page: %d", code)
	}
	tokens := map[string]int{}
	for _, link := range links {
		v, err := url.ParseQuery(link.EscapedFragment())
		if err != nil {
			t.Fatal(err)
		}
		code, body := ask(t, "GET", base+"/api/v1/workspaces/demo/unread", v.Get("token"), "")
		if code != 200 || !strings.Contains(body, `"hasUnread":true`) {
			t.Errorf("%s: %d %s", link, code, body)
		}
		tokens[v.Get("token")]++
	}
	if len(tokens) != 2 {
		t.Errorf("two people, and one with two devices: %v", tokens)
	}
	for before := ""; ; { // somebody goes on writing
		_, body := ask(t, "GET", base+"/api/v1/workspaces/demo/scopes/general/messages?limit=1", firstKey(tokens), "")
		if before != "" && body != before {
			break
		}
		before = body
	}
	stop()
	if code := <-ended; code != exitDone {
		t.Errorf("code %d", code)
	}
	if left, _ := filepath.Glob(filepath.Join(home, "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func firstKey(m map[string]int) string {
	for key := range m {
		return key
	}
	return ""
}

func TestDemoOnABusyPort(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := serve(t, first(database(t)), "--jwt-secret-file", secretFile(t, testSecret))
	run(t, "demo", "--listen", strings.TrimPrefix(s.url, "http://")).fails(t, exitFailed, "address already in use")
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func first(a, _ string) string { return a }

// The story of the inbox badge is played to its end and leaves nothing behind.
//
// covers: IN-101 IN-104
func TestDemoInbox(t *testing.T) {
	home := t.TempDir()
	t.Setenv("TMPDIR", home)
	o := run(t, "demo", "inbox").done(t)
	for _, want := range []string{
		"15. The source is made unavailable", `"acknowledged_through":3,"count":1,"projected_through":4,"senders":["Dee"]`,
	} {
		if !strings.Contains(o.out, want) {
			t.Errorf("no %s in\n%s", want, o.out)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(home, "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	run(t, "demo", "nothing").fails(t, exitUsage, "inbox")
}
