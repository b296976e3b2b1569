package main

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// process is the program with an environment of its own.
type process struct {
	binary string // empty: this test as the program
	args   []string
	dir    string
	env    []string

	url, admin string
	cmd        *exec.Cmd
	log        *lines
}

// freeAddress is an address that nobody listened on a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startProcess starts a server and waits until it serves. Its ports are free ones, whatever its
// arguments and its environment say.
func startProcess(t *testing.T, p process) *process {
	t.Helper()
	if p.binary == "" {
		p.binary = os.Args[0]
	}
	args := append([]string{}, p.args...)
	for i, arg := range args {
		if i > 0 && (args[i-1] == "--listen" || args[i-1] == "--admin-listen") {
			args[i] = "127.0.0.1:0"
		}
		if arg == "text" {
			args[i] = "json"
		}
	}
	p.cmd = exec.Command(p.binary, args...)
	p.cmd.Dir = p.dir
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "TMPDIR=" + os.TempDir(), asProgram + "=1"}
	for _, assignment := range p.env {
		name, _, _ := strings.Cut(assignment, "=")
		if (name == "TIDEMARK_LISTEN" || name == "TIDEMARK_ADMIN_LISTEN") && strings.Contains(assignment, "0.0.0.0") {
			assignment = name + "=127.0.0.1:0"
		}
		p.cmd.Env = append(p.cmd.Env, assignment)
	}
	p.cmd.Env = append(p.cmd.Env, "TIDEMARK_LOG_FORMAT=json")
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.log = newLines()
	go p.log.collect(stderr) // ends with the process
	t.Cleanup(p.kill)
	line := p.log.await("serving")
	if line == nil {
		t.Fatalf("%v did not start: %v", args, p.log.all)
	}
	p.url, p.admin = line["url"].(string), line["admin"].(string)
	return &p
}

// kill ends it as kill -9 does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()
}

// end asks it to end, and expects that it does so in peace.
func (p *process) end(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-p.logEnded()
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v: %v", err, p.log.all)
	}
}

// logEnded is closed once the process has closed its log, before which Wait must not be called.
func (p *process) logEnded() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		p.log.await("\x00 never")
		close(ended)
	}()
	return ended
}
