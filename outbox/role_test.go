package outbox

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// roleEnv says what a process of the test binary is, other than the tests.
const roleEnv = "TIDEMARK_OUTBOX_ROLE"

// patience bounds every wait for another process.
const patience = 2 * time.Minute

func playRole(role string) error {
	kind, rest, _ := strings.Cut(role, " ")
	switch kind {
	case "receiver":
		return playReceiver(rest)
	case "worker":
		return playWorker(rest)
	}
	return fmt.Errorf("no role %q", role)
}

// process is another process of the test binary.
type process struct {
	cmd    *exec.Cmd
	orders io.WriteCloser
	lines  chan string
	errors *strings.Builder
	dead   chan struct{}
	once   sync.Once
}

// launch starts a process in a role. It ends with the test at the latest.
func launch(t testing.TB, role string, settings any) *process {
	t.Helper()
	text, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{
		cmd: exec.Command(os.Args[0]), lines: make(chan string, 16), errors: &strings.Builder{},
		dead: make(chan struct{}),
	}
	p.cmd.Env = append(os.Environ(), roleEnv+"="+role+" "+string(text))
	p.cmd.Stderr = p.errors
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.orders, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		scan := bufio.NewScanner(out)
		for scan.Scan() {
			p.lines <- scan.Text()
		}
		close(p.lines)
		_ = p.cmd.Wait() // how it ended is in the state
		close(p.dead)
	}()
	t.Cleanup(p.kill)
	return p
}

// line returns what the process prints next; false when it died instead.
func (p *process) line(t testing.TB) (string, bool) {
	t.Helper()
	select {
	case line, ok := <-p.lines:
		return line, ok
	case <-time.After(patience):
		p.kill()
		t.Fatalf("the process says nothing:\n%s", p.errors)
		return "", false
	}
}

// kill ends the process in any case and waits for its end.
func (p *process) kill() {
	p.once.Do(func() {
		_ = p.cmd.Process.Kill() // an error means that it is dead
		_ = p.orders.Close()
		for range p.lines { // nobody asks any more
		}
		<-p.dead
	})
}

// killed waits for the death of a process that kills itself; any other end is a failure.
func (p *process) killed(t testing.TB) {
	t.Helper()
	select {
	case <-p.dead:
	case <-time.After(patience):
		p.kill()
		t.Fatalf("the process does not die:\n%s", p.errors)
	}
	if p.cmd.ProcessState.Exited() {
		t.Fatalf("the process ended by itself: %v\n%s", p.cmd.ProcessState, p.errors)
	}
}

// die is kill -9 from within.
func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	panic(fmt.Sprint("killed and still here: ", err))
}

// receiverSettings are what a receiver process is started with.
type receiverSettings struct {
	Log string // its file
}

// receiverProcess takes wakes and writes down what it takes. How it behaves is said by the path:
// /MODE/AGENT. One line a request: when, agent, id, what it did.
type receiverProcess struct {
	mu    sync.Mutex
	log   *os.File
	seen  map[string]int
	modes map[string]string // what a mode has been changed to
}

func playReceiver(text string) error {
	var set receiverSettings
	if err := json.Unmarshal([]byte(text), &set); err != nil {
		return err
	}
	f, err := os.OpenFile(set.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	r := &receiverProcess{log: f, seen: map[string]int{}, modes: map[string]string{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	twice, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go r.serveTwice(twice)
	server := &http.Server{Handler: r}
	go func() { fmt.Fprintln(os.Stderr, server.Serve(listener)) }()
	fmt.Println(listener.Addr(), twice.Addr())
	orders := bufio.NewScanner(os.Stdin) // a receiver ends with whoever started it
	for orders.Scan() {
		from, to, _ := strings.Cut(orders.Text(), " ")
		r.mu.Lock()
		r.modes[from] = to
		r.mu.Unlock()
		fmt.Println("done")
	}
	return nil
}

// note writes a line and returns how often the id has come.
func (r *receiverProcess) note(agent, id, what string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[id]++
	fmt.Fprintf(r.log, "%d %s %s %s\n", time.Now().UnixNano(), agent, id, what)
	return r.seen[id]
}

func (r *receiverProcess) mode(path string) (mode, agent string) {
	mode, agent, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	r.mu.Lock()
	defer r.mu.Unlock()
	if to := r.modes[mode]; to != "" {
		mode = to
	}
	return mode, agent
}

// ServeHTTP implements http.Handler.
func (r *receiverProcess) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return
	}
	id := req.Header.Get("webhook-id")
	switch mode, agent := r.mode(req.URL.Path); mode {
	case "fails": // two times of three
		if r.note(agent, id, "refused")%3 != 0 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		r.note(agent, id, "accepted")
	case "slow":
		select {
		case <-time.After(30 * time.Millisecond):
			r.note(agent, id, "accepted")
		case <-req.Context().Done():
		}
	case "late": // takes it, and of some answers the first time when nobody listens any more
		if r.note(agent, id, "accepted") == 1 && crc32.ChecksumIEEE([]byte(id))%8 == 0 {
			<-req.Context().Done()
		}
	case "silent":
		r.note(agent, id, "silent")
		<-req.Context().Done()
	case "busy":
		if r.note(agent, id, "refused") < 3 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		r.note(agent, id, "accepted")
	default:
		r.note(agent, id, "accepted")
	}
}

// serveTwice is a server that answers every request twice.
func (r *receiverProcess) serveTwice(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			in := bufio.NewReader(conn)
			for {
				req, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				if _, err := io.Copy(io.Discard, req.Body); err != nil {
					return
				}
				_, agent := r.mode(req.URL.Path)
				r.note(agent, req.Header.Get("webhook-id"), "accepted")
				const answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
				if _, err := io.WriteString(conn, answer+answer); err != nil {
					return
				}
			}
		}()
	}
}

// logged is what a receiver's log says of each agent: the ids in the order in which they were
// first taken, and how many lines were repetitions.
func logged(t testing.TB, path string) (first map[string][]string, repeats int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	first = map[string][]string{}
	seen := map[string]bool{}
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		field := strings.Fields(scan.Text())
		if len(field) != 4 {
			t.Fatalf("receiver's log: %q", scan.Text())
		}
		if field[3] != "accepted" {
			continue
		}
		if agent, id := field[1], field[2]; !seen[id] {
			seen[id] = true
			first[agent] = append(first[agent], id)
		} else {
			repeats++
		}
	}
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
	return first, repeats
}
