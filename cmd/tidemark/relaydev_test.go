package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// The relay to develop against serves its members, and fails when it is told to.
func TestRelayDev(t *testing.T) {
	key, err := nostrx.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(strings.Repeat("7", 64)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	out := &addressIn{found: make(chan string, 1), pattern: regexp.MustCompile(`ws://\S+`)}
	done := make(chan int, 1)
	m := Main{Stdout: out, Stderr: out, Now: time.Now}
	go func() {
		done <- m.Run(ctx, []string{"relay-dev", "--listen", "127.0.0.1:0", "--member", string(key.Public()),
			"--channel", "general", "--channel", "us=dm", "--key-file", file, "--fault", "refuse-time"})
	}()
	defer func() {
		stop()
		if code := <-done; code != exitDone {
			t.Errorf("exit code %d", code)
		}
	}()
	var url string
	select {
	case url = <-out.found:
	case code := <-done:
		t.Fatalf("it ended with %d", code)
	case <-time.After(20 * time.Second):
		t.Fatal("it says no address")
	}
	c, err := nostrx.Open(t.Context(), nostrx.Options{URL: url, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := c.Query(t.Context(), nostrx.Filter{Kinds: []int{39000}})
	if err != nil || len(got) != 2 {
		t.Fatalf("%d channels, %v", len(got), err)
	}
	e, err := key.Sign(nostrx.Event{Kind: nostrx.KindChat, CreatedAt: time.Now().Unix(),
		Tags: []nostrx.Tag{{"h", "general"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Publish(t.Context(), e); err != nil || got.Accepted {
		t.Errorf("in spite of the fault: %+v, %v", got, err)
	}
}

func TestRelayDevRefuses(t *testing.T) {
	member := "--member=" + strings.Repeat("a", 64)
	for _, args := range [][]string{
		{}, {"--member=x"}, {member, "--fault=x"}, {member, "--community=x"}, {member, "--channel=x=y"},
		{member, "--channel=="},
	} {
		args = append([]string{"relay-dev", "--listen=127.0.0.1:0"}, args...)
		if got := run(t, args...); got.code != exitUsage {
			t.Errorf("%v: %d %s", args, got.code, got.errors)
		}
	}
}

// addressIn looks for a text in what is written.
type addressIn struct {
	seen    strings.Builder
	pattern *regexp.Regexp
	found   chan string
}

func (l *addressIn) Write(p []byte) (int, error) {
	fmt.Fprint(&l.seen, string(p))
	if text := l.pattern.FindString(l.seen.String()); text != "" {
		select {
		case l.found <- text:
		default:
		}
	}
	return len(p), nil
}
