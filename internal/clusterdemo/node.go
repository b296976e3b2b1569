package clusterdemo

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"
)

// Condition is what became of a process.
type Condition string

// Conditions.
const (
	Running Condition = "running"
	Paused  Condition = "paused"
	Killed  Condition = "killed"
	Ended   Condition = "ended" // by itself
)

// Node is a process of the cluster.
type Node struct {
	Name, Address string
	binary        string
	args, env     []string

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{}
	is    Condition
	says  tail
}

var errCondition = errors.New("the process is not in a condition for that")

// Start starts the process, unless it runs.
func (n *Node) Start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.is == Running || n.is == Paused {
		return fmt.Errorf("start %s: %w", n.Name, errCondition)
	}
	cmd := exec.Command(n.binary, n.args...) //nolint:noctx // Stop ends it
	cmd.Env, cmd.Stderr = n.env, &n.says
	apart(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", n.Name, err)
	}
	ended := make(chan struct{})
	n.cmd, n.ended, n.is = cmd, ended, Running
	go func() { // ends with the process, which Stop ends
		_ = cmd.Wait()
		n.mu.Lock()
		if n.cmd == cmd && n.is != Killed {
			n.is = Ended
		}
		n.mu.Unlock()
		close(ended)
	}()
	return nil
}

// Kill ends the process as kill -9 does.
func (n *Node) Kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.is != Running && n.is != Paused {
		return fmt.Errorf("kill %s: %w", n.Name, errCondition)
	}
	n.is = Killed
	return n.cmd.Process.Kill()
}

// Pause stops the process where it is.
func (n *Node) Pause() error { return n.turn(Running, Paused, pause) }

// Resume lets it go on.
func (n *Node) Resume() error { return n.turn(Paused, Running, resume) }

func (n *Node) turn(from, to Condition, how func(*exec.Cmd) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.is != from {
		return fmt.Errorf("%s is %s: %w", n.Name, n.is, errCondition)
	}
	if err := how(n.cmd); err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	n.is = to
	return nil
}

// Condition is what became of the process.
func (n *Node) Condition() Condition {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.is
}

// Said is the end of what the process has written.
func (n *Node) Said() string { return n.says.String() }

// Stop asks the process to end, ends it if it does not, and waits for it.
func (n *Node) Stop() {
	n.mu.Lock()
	cmd, ended := n.cmd, n.ended
	if cmd != nil && n.is == Paused {
		_ = resume(cmd)
	}
	if cmd != nil {
		_ = ask(cmd) // it may be gone
	}
	n.mu.Unlock()
	if cmd == nil {
		return
	}
	patience := time.NewTimer(10 * time.Second)
	defer patience.Stop()
	select {
	case <-ended:
	case <-patience.C:
		_ = cmd.Process.Kill()
		<-ended
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const tailBytes = 4096

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - tailBytes; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.kept))
}
