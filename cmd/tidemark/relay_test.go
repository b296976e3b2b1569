package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tidemark-im/tidemark/relay/journal"
	"github.com/tidemark-im/tidemark/relay/nostrx"
	"github.com/tidemark-im/tidemark/relay/relaytest"
)

// relayProgram is the agent in another process.
type relayProgram struct {
	cmd        *exec.Cmd
	url, token string
}

func startRelay(t *testing.T, args ...string) *relayProgram {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &relayProgram{cmd: exec.Command(self, append([]string{"relay", "--listen", "127.0.0.1:0"}, args...)...)}
	p.cmd.Env = append(os.Environ(), asProgram+"=1")
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		switch value = strings.TrimSpace(value); name {
		case "agent":
			p.url = value
		case "token":
			p.token = value
		case "page":
			return p
		}
	}
	t.Fatal("the agent did not start")
	return nil
}

func (p *relayProgram) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func (p *relayProgram) ask(t *testing.T, method, path, body string, want int) string {
	t.Helper()
	code, text := ask(t, method, p.url+path, p.token, body)
	if code != want {
		t.Fatalf("%s %s: %d %s", method, path, code, text)
	}
	return text
}

// An agent that is killed with reads that wait, and again after it has signed them, publishes them in its
// next life, from the same slot and once.
func TestRelayAgentKilled(t *testing.T) {
	self, err := nostrx.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	relay, err := relaytest.Listen(t.Context(), "127.0.0.1:0", relaytest.Options{Self: self, Community: uuid.New()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = relay.Close() })
	e, err := self.Sign(nostrx.Event{Kind: nostrx.KindChat, CreatedAt: time.Now().Unix(), Tags: []nostrx.Tag{{"h", "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := relay.Keep(e); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	// The key's secret is known here alone: the program reads it as a person would store it.
	secret := strings.Repeat("3", 64)
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	viewer, err := nostrx.ParseKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	members := []nostrx.PubKey{viewer.Public()}
	if err := relay.SetChannel(relaytest.Channel{ID: "a", Type: "stream", Members: members}); err != nil {
		t.Fatal(err)
	}
	args := []string{"--relay", relay.URL, "--key-file", file, "--data", filepath.Join(dir, "j.db")}
	state := nostrx.Filter{Kinds: []int{nostrx.KindAppData}, Authors: members}

	relay.Intercept(func(o relaytest.Occasion) relaytest.Fault {
		if o.Point == relaytest.AtEvent {
			return relaytest.Refuse
		}
		return relaytest.None
	})
	first := startRelay(t, args...)
	first.ask(t, "POST", "/v1/unread/refresh", "", 200)
	first.ask(t, "POST", "/v1/unread/mark-channel-read", `{"channelId":"a"}`, 200)
	first.kill() // within the quiet period: nothing was signed

	second := startRelay(t, args...)
	second.ask(t, "POST", "/v1/unread/retry-sync", "", 502) // signed, saved, and refused
	second.kill()
	if got := relay.Stored(state); len(got) != 0 {
		t.Fatalf("the relay refused, and holds %d", len(got))
	}
	relay.Intercept(nil)

	third := startRelay(t, args...)
	third.ask(t, "POST", "/v1/unread/retry-sync", "", 200)
	third.ask(t, "POST", "/v1/unread/refresh", "", 200)
	text := third.ask(t, "GET", "/v1/unread/diagnostics", "", 200)
	if !strings.Contains(text, `"status":"reconciled"`) || !strings.Contains(text, `"revision":1,"accepted":1`) {
		t.Errorf("after the third life: %s", text)
	}
	held := relay.Stored(state)
	seen, err := journal.Decode(viewer, held)
	if err != nil || len(seen) != 1 || int64(seen[0].Blob.State.Frontiers["a"]) < e.CreatedAt {
		t.Errorf("the relay holds %+v, %v", seen, err)
	}
}

func TestRelayRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(strings.Repeat("3", 64)), 0o600); err != nil {
		t.Fatal(err)
	}
	data := "--data=" + filepath.Join(t.TempDir(), "j.db")
	for _, args := range [][]string{
		{}, {"--relay=ws://x"}, {"--relay=ws://x", "--key-file=" + file, data, "--listen=0.0.0.0:0"},
		{"--relay=ws://x", "--key-file=" + file, data, "--listen=x"},
	} {
		if got := run(t, append([]string{"relay"}, args...)...); got.code != exitUsage {
			t.Errorf("%v: %d %s", args, got.code, got.errors)
		}
	}
	if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := run(t, "relay", "--relay=ws://x", "--key-file="+file, data)
	if got.code != exitFailed || strings.Contains(got.errors, "\"secret\"") {
		t.Errorf("a file that is no key: %d %s", got.code, got.errors)
	}
}
