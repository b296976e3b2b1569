//go:build unix

package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	readyTimeout = 60 * time.Second
	readyPoll    = 50 * time.Millisecond
	StopTimeout  = 15 * time.Second
	portTries    = 3 // a port that was free may be taken meanwhile
)

// Kind is a sort of server.
type Kind struct {
	Name     string
	Variable string
	Binaries []string // names of the server's program, the first one found is taken
	places   []string // patterns of directories beside PATH, the last match is taken
	Packages string   // of Debian, for the message
	users    []string // for root: who runs it, the first one that exists
	end      syscall.Signal
	// prepare fills the directory; nil where nothing has to be done.
	prepare func(ctx context.Context, at place) error
	// args are the server's own.
	args func(at place) []string
	// Answers reports that the server takes requests.
	Answers func(conn net.Conn) error
	dsn     func(port int) string
}

// place is where one server runs.
type place struct {
	binary string
	dir    string
	port   int
	as     *syscall.Credential // nil: who runs this program
	log    *os.File
}

// Server is a process that runs.
type Server struct {
	kind  *Kind
	place place
	DSN   string
	cmd   *exec.Cmd
	ended chan struct{} // closed once the process is gone
}

// Find looks for one of the kind's programs.
func (k *Kind) Find() (string, error) {
	for _, name := range k.Binaries {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil // as it is called: some programs ask for their own name
		}
		for _, pattern := range k.places {
			found, _ := filepath.Glob(filepath.Join(pattern, name)) // a pattern of ours
			if len(found) > 0 {
				return found[len(found)-1], nil
			}
		}
	}
	return "", fmt.Errorf("not installed (%s); on Debian: apt-get install %s",
		strings.Join(k.Binaries, ", "), k.Packages)
}

// Start makes a server and waits until it answers.
func Start(ctx context.Context, k *Kind) (*Server, error) {
	binary, err := k.Find()
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		s, err := startOnce(ctx, k, binary)
		if err == nil || try == portTries || ctx.Err() != nil {
			return s, err
		}
	}
}

func startOnce(ctx context.Context, k *Kind, binary string) (*Server, error) {
	at := place{binary: binary}
	var err error
	if at.dir, err = os.MkdirTemp("", "tidemark-"+k.Name+"-*"); err != nil {
		return nil, err
	}
	s := &Server{kind: k, place: at}
	if err = s.begin(ctx); err == nil {
		err = s.await(ctx)
	}
	if err != nil {
		err = fmt.Errorf("%w%s", err, s.complaint())
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// begin prepares the directory and starts the process.
func (s *Server) begin(ctx context.Context) error {
	var err error
	at := &s.place
	if at.port, err = freePort(ctx); err != nil {
		return err
	}
	if at.log, err = os.Create(filepath.Join(at.dir, "log")); err != nil {
		return err
	}
	if err := at.own(s.kind.users); err != nil {
		return err
	}
	if s.kind.prepare != nil {
		if err := s.kind.prepare(ctx, *at); err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
	}
	// The server must outlive ctx until it is stopped in its own way.
	s.cmd = at.command(context.WithoutCancel(ctx), at.binary, s.kind.args(*at)...)
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		return err
	}
	s.ended = make(chan struct{})
	go func() {
		_ = s.cmd.Wait() // how it ended matters only before it was asked to
		close(s.ended)
	}()
	s.DSN = s.kind.dsn(at.port)
	return nil
}

// own gives the directory to a user whom the server accepts.
func (at *place) own(users []string) error {
	if os.Getuid() != 0 || len(users) == 0 {
		return nil
	}
	for _, name := range append(users, "nobody") {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return fmt.Errorf("user %s: %w", name, err)
		}
		at.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return os.Chown(at.dir, int(uid), int(gid))
	}
	return errors.New("root cannot run it, and there is no user nobody")
}

// command runs a program as the place's user, in a process group of its own: an interrupt of the
// terminal is for this program, which stops the servers in order.
func (at *place) command(ctx context.Context, binary string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = at.dir
	cmd.Stdout, cmd.Stderr = at.log, at.log
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + at.dir, "TMPDIR=" + at.dir, "LC_ALL=C",
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: at.as}
	return cmd
}

// await polls until the server answers, ends, or takes too long.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		err := s.ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-s.ended:
			return errors.New("it ended before it answered")
		case <-ctx.Done():
			return fmt.Errorf("no answer: %w", errors.Join(ctx.Err(), err))
		}
	}
}

func (s *Server) ask(ctx context.Context) error {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(loopback, strconv.Itoa(s.place.port)))
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // it has answered or not
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	return s.kind.Answers(conn)
}

// complaint is the end of the server's log, for a message.
func (s *Server) complaint() string {
	raw, err := os.ReadFile(filepath.Join(s.place.dir, "log"))
	if err != nil || len(raw) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	return ": " + strings.Join(lines[max(0, len(lines)-3):], " | ")
}

// Stop asks the process to end, ends it if it does not, and removes the directory.
func (s *Server) Stop() error {
	var failed error
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(s.kind.end) // it may be gone already
		timer := time.NewTimer(StopTimeout)
		defer timer.Stop()
		select {
		case <-s.ended:
		case <-timer.C:
			failed = fmt.Errorf("%s: did not end in %v and was killed", s.kind.Name, StopTimeout)
			_ = s.cmd.Process.Kill()
			<-s.ended
		}
	}
	if s.place.log != nil {
		_ = s.place.log.Close()
	}
	return errors.Join(failed, os.RemoveAll(s.place.dir))
}

const loopback = "127.0.0.1"

// freePort asks the system for a port that nobody listens on.
func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", loopback+":0")
	if err != nil {
		return 0, err
	}
	defer l.Close() //nolint:errcheck // nothing was accepted
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Named finds a kind by its name.
func Named(name string) (*Kind, error) {
	for _, k := range Kinds {
		if k.Name == name {
			return k, nil
		}
	}
	return nil, fmt.Errorf("no kind of server is called %q", name)
}

// Kind is what the server is.
func (s *Server) Kind() *Kind { return s.kind }

// Ended is closed once the process is gone.
func (s *Server) Ended() <-chan struct{} { return s.ended }
