//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/internal/clusterdemo"
	"github.com/tidemark-im/tidemark/internal/servers"
)

// broken is a cluster's demo, with its buttons.
type broken struct {
	t    *testing.T
	page string
	cmd  *exec.Cmd
}

func startBroken(t *testing.T) *broken {
	t.Helper()
	home := t.TempDir()
	b := &broken{t: t, cmd: exec.Command(os.Args[0], "demo", "cluster", "--listen", "127.0.0.1:0", "--every", "50ms")}
	b.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "HOME=" + home, asProgram + "=1"}
	b.cmd.Stderr = os.Stderr
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	t.Cleanup(func() {
		if !ended {
			_ = b.cmd.Process.Signal(syscall.SIGTERM)
			_ = b.cmd.Wait()
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if b.page == "" && strings.HasPrefix(line, "http://") {
			b.page = line
		}
		if strings.HasPrefix(line, "Everything goes") {
			go io.Copy(io.Discard, out) // ends with the process
			return b
		}
	}
	ended = true
	t.Fatalf("it did not start: %v", b.cmd.Wait())
	return nil
}

func (b *broken) view() (v clusterdemo.View) {
	b.t.Helper()
	_, text := ask(b.t, http.MethodGet, b.page+"/view", "", "")
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		b.t.Fatalf("%v: %s", err, text)
	}
	for _, s := range v.Spaces {
		if s.Wrong > 0 {
			b.t.Fatalf("a wrong count: %s", text)
		}
		if len(s.Owners) > 1 {
			b.t.Logf("two answered within one look: %v", s.Owners) // one after the other
		}
	}
	return v
}

// press presses a button as the page does.
func (b *broken) press(node, action, origin string) int {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.page+"/nodes/"+node+"/"+action, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Origin", origin)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res.StatusCode
}

// until waits for a view, and fails if there is none.
func (b *broken) until(what string, holds func(v clusterdemo.View) bool) clusterdemo.View {
	b.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(2 * time.Minute)
	defer end.Stop()
	for {
		v := b.view()
		if holds(v) {
			return v
		}
		select {
		case <-tick.C:
		case <-end.C:
			b.t.Fatalf("%s: %+v", what, v)
		}
	}
}

// taken says that every workspace is owned, none of them by this node, and has gone on since.
func taken(without string, since clusterdemo.View) func(clusterdemo.View) bool {
	return func(v clusterdemo.View) bool {
		for i, s := range v.Spaces {
			if len(s.Owners) != 1 || s.Owners[0] == without || s.Unread == nil || s.Acked <= since.Spaces[i].Acked ||
				v.Dots && (s.Dot == nil || !*s.Dot) {
				return false
			}
		}
		return len(v.Spaces) > 0
	}
}

// biggest is the running node that owns most.
func biggest(v clusterdemo.View) string {
	name, most := "", -1
	for _, n := range v.Nodes {
		if n.Condition == clusterdemo.Running && n.Owns > most {
			name, most = n.Name, n.Owns
		}
	}
	return name
}

// In the demo of a cluster a node is killed, another one paused until its workspaces are somebody else's,
// and both come back: every workspace is written to again each time, and no count is ever wrong. Nobody
// else's page can press the buttons, and the demo leaves no process behind.
func TestDemoCluster(t *testing.T) {
	kind, err := servers.Named("postgres")
	if err == nil {
		_, err = kind.Find()
	}
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip(err)
	}
	b := startBroken(t)
	if status, text := ask(t, http.MethodGet, b.page+"/", "", ""); status != http.StatusOK ||
		!strings.Contains(text, "cluster.js") {
		t.Errorf("page: %d", status)
	}
	v := b.until("nothing is seen", func(v clusterdemo.View) bool { return len(v.Spaces) > 0 })
	v = b.until("nobody owns them at first", taken("", v))
	if status := b.press(biggest(v), "kill", "http://evil.example"); status != http.StatusForbidden {
		t.Errorf("another page's button: %d", status)
	}
	if status := b.press("node-9", "kill", b.page); status != http.StatusNotFound {
		t.Errorf("no such node: %d", status)
	}
	killed := biggest(v)
	if status := b.press(killed, "kill", b.page); status != http.StatusNoContent {
		t.Fatalf("kill: %d", status)
	}
	v = b.until("what it owned is not taken over", taken(killed, b.view()))
	paused := biggest(v)
	if status := b.press(paused, "pause", b.page); status != http.StatusNoContent {
		t.Fatalf("pause: %d", status)
	}
	b.until("what the paused one owned is not taken over", taken(paused, b.view()))
	for node, action := range map[string]string{killed: "start", paused: "resume"} {
		if status := b.press(node, action, b.page); status != http.StatusNoContent {
			t.Fatalf("%s: %d", action, status)
		}
	}
	b.until("they do not come back", func(v clusterdemo.View) bool {
		for _, n := range v.Nodes {
			if n.Name == killed && n.Owns == 0 {
				return false
			}
		}
		return true
	})
	b.until("it does not go on", taken("", b.view()))
	http.DefaultClient.CloseIdleConnections()
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
