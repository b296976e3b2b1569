package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/facts/sqlstore"
)

// prepare makes a workspace with a channel that alice and bob have joined.
func prepare(t *testing.T, url, secret string) (service, alice string) {
	t.Helper()
	admin := sign(t, secret, "--ws", "*", "--sub", "root", "--role", "admin")
	service = sign(t, secret, "--ws", "w", "--sub", "backend", "--role", "service")
	alice = sign(t, secret, "--ws", "w", "--sub", "alice")
	base := url + "/api/v1/workspaces/w"
	for _, step := range []struct{ method, path, token, body string }{
		{"PUT", "", admin, `{"name":"W"}`},
		{"PUT", "/members/alice", service, `{"kind":"human"}`},
		{"PUT", "/members/bob", service, `{"kind":"human"}`},
		{"PUT", "/scopes/c", service, `{"type":"channel","name":"C"}`},
		{"PUT", "/scopes/c/members/alice", service, `{}`},
		{"PUT", "/scopes/c/members/bob", service, `{}`},
	} {
		if code, body := ask(t, step.method, base+step.path, step.token, step.body); code/100 != 2 {
			t.Fatalf("%s %s: %d %s", step.method, step.path, code, body)
		}
	}
	return service, alice
}

func post(t *testing.T, url, token, op, payload string) (int, string) {
	t.Helper()
	return ask(t, "POST", url+"/api/v1/workspaces/w/scopes/c/messages", token,
		fmt.Sprintf(`{"opId":%q,"messageId":%q,"author":"bob","payload":%q}`, op, op, payload))
}

// unreadOf returns the raw count of a member's only scope.
func unreadOf(t *testing.T, url, token string) string {
	t.Helper()
	code, body := ask(t, "GET", url+"/api/v1/workspaces/w/unread", token, "")
	_, rest, ok := strings.Cut(body, `"unread":`)
	if code != 200 || !ok {
		t.Fatalf("unread: %d %s", code, body)
	}
	n, _, _ := strings.Cut(rest, ",")
	return n
}

func TestServe(t *testing.T) {
	db, path := database(t)
	secret := secretFile(t, testSecret)
	s := serve(t, db, "--jwt-secret-file", secret)
	service, alice := prepare(t, s.url, secret)
	for i := range 3 {
		if code, body := post(t, s.url, service, fmt.Sprint("m", i), "hello"); code != 201 {
			t.Fatalf("%d %s", code, body)
		}
	}
	if n := unreadOf(t, s.url, alice); n != "3" {
		t.Errorf("unread %s", n)
	}
	for _, probe := range []string{"/healthz", "/readyz", "/openapi.json", "/docs"} {
		if code, _ := ask(t, "GET", s.url+probe, "", ""); code != 200 {
			t.Errorf("%s: %d", probe, code)
		}
		if code, _ := ask(t, "GET", s.admin+probe, "", ""); code == 200 {
			t.Errorf("%s is on the admin port", probe)
		}
	}
	if s.log.find("serving")["docs"] != s.url+"/docs" {
		t.Errorf("the log does not say where the reference is: %v", s.log.find("serving"))
	}
	if code, body := ask(t, "GET", s.url+"/", "", ""); code != 200 || !strings.Contains(body, "<title>") {
		t.Errorf("the bare address leads to %d %s", code, body)
	}
	for _, probe := range []string{"/metrics", "/debug/pprof/"} {
		code, body := ask(t, "GET", s.admin+probe, "", "")
		if code != 200 || probe == "/metrics" && !strings.Contains(body, "go_goroutines") {
			t.Errorf("%s: %d", probe, code)
		}
		if code, _ := ask(t, "GET", s.url+probe, "", ""); code == 200 {
			t.Errorf("%s is on the public port", probe)
		}
	}
	// The same database again, the same port again, and a backup meanwhile.
	run(t, "serve", db, "--listen", "127.0.0.1:0", "--admin-listen", "off", "--jwt-secret-file", secret).
		fails(t, exitFailed, fmt.Sprintf("database is owned by this process (%d)", os.Getpid()))
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.url, "http://"))
	other, _ := database(t)
	run(t, "serve", other, "--listen", "127.0.0.1:"+port, "--jwt-secret-file", secret).
		fails(t, exitFailed, "address already in use")
	run(t, "serve", other, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:"+port, "--jwt-secret-file", secret).
		fails(t, exitFailed, "address already in use")
	copied := filepath.Join(t.TempDir(), "copy.db")
	run(t, "backup", db, copied).done(t)
	run(t, "backup", db, copied).fails(t, exitFailed, "exists")
	if code, _ := post(t, s.url, service, "later", "hello"); code != 201 {
		t.Error("no writes after a backup")
	}
	if code := s.end(t); code != exitDone || s.log.await("ended") == nil {
		t.Errorf("code %d, log %v", code, s.log.all)
	}
	if err := sqlstore.CheckSQLite(t.Context(), path); err != nil {
		t.Error(err)
	}
	// The copy is of before, the database of now; both serve.
	for facts, want := range map[string]string{"--facts=sqlite:" + copied: "3", db: "4"} {
		s := serve(t, facts, "--jwt-secret-file", secret)
		if n := unreadOf(t, s.url, alice); n != want {
			t.Errorf("%s: unread %s, want %s", facts, n, want)
		}
		s.end(t)
	}
}

// covers: RT-009
func TestProfileAllOwnsEveryWorkspace(t *testing.T) {
	db, _ := database(t)
	secret := secretFile(t, testSecret)
	s := serve(t, db, "--profile", "all", "--jwt-secret-file", secret)
	service, alice := prepare(t, s.url, secret)
	post(t, s.url, service, "m1", "hello")
	admin := sign(t, secret, "--ws", "*", "--sub", "root", "--role", "admin")
	for _, step := range []struct{ method, path, body string }{
		{"PUT", "", `{"name":"V"}`},
		{"PUT", "/scopes/c", `{"type":"channel"}`},
		{"POST", "/scopes/c/members:batch?create=members", `{"members":[{"id":"alice"},{"id":"bob"}]}`},
		{"POST", "/messages:batch", `{"messages":[{"scope":"c","opId":"1","author":"bob"},{"scope":"c","opId":"2","author":"bob"}]}`},
	} {
		if code, body := ask(t, step.method, s.url+"/api/v1/workspaces/v"+step.path, admin, step.body); code/100 != 2 {
			t.Fatalf("%s %s: %d %s", step.method, step.path, code, body)
		}
	}
	s.end(t)
	t.Setenv("TIDEMARK_PROFILE", "all")
	s = serve(t, db, "--jwt-secret-file", secret)
	if n := unreadOf(t, s.url, alice); n != "1" {
		t.Errorf("unread in w: %s", n)
	}
	other := sign(t, secret, "--ws", "v", "--sub", "alice")
	code, body := ask(t, "GET", s.url+"/api/v1/workspaces/v/unread", other, "")
	if code != 200 || !strings.Contains(body, `"badge":{"messages":2,`) {
		t.Errorf("unread in v: %d %s", code, body)
	}
	for _, want := range []string{"tidemark_unread_workspaces 2\n", "tidemark_unread_members 2\n"} {
		if code, body := ask(t, "GET", s.admin+"/metrics", "", ""); code != 200 || !strings.Contains(body, want) {
			t.Errorf("the metrics do not say %q: %d", want, code)
		}
	}
}

func TestServeRefusesADatabaseThatIsNone(t *testing.T) {
	secret := secretFile(t, testSecret)
	serveOn := func(path string) outcome {
		return run(t, "serve", "--facts", "sqlite:"+path, "--listen", "127.0.0.1:0", "--admin-listen", "off",
			"--jwt-secret-file", secret)
	}
	text := filepath.Join(t.TempDir(), "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is no database\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	serveOn(text).fails(t, exitFailed, "damaged or not a tidemark database")
	db, path := database(t)
	run(t, "migrate", db).done(t)
	spoil(t, path)
	serveOn(path).fails(t, exitFailed, "damaged or not a tidemark database")
	serveOn(filepath.Join(t.TempDir(), "no", "dir.db")).fails(t, exitFailed, "dir.db")
	serveOn(t.TempDir()).fails(t, exitFailed, "cannot be opened")
}

func TestServeChecksItsKeys(t *testing.T) {
	db, _ := database(t)
	common := []string{"serve", db, "--listen", "127.0.0.1:0", "--admin-listen", "off"}
	run(t, append(common, "--jwt-secret-file", secretFile(t, "short"))...).fails(t, exitFailed, "at least 32")
	run(t, append(common, "--jwt-secret-file", secretFile(t, testSecret, otherSecret, testSecret))...).
		fails(t, exitFailed, "at most two secrets")
	run(t, append(common, "--jwks", filepath.Join(t.TempDir(), "keys.json"))...).fails(t, exitFailed, "keys.json")
	run(t, append(common, "--jwt-secret-file", secretFile(t, testSecret), "--tls-cert", "no.pem", "--tls-key", "no.pem")...).
		fails(t, exitFailed, "no.pem")
	// While secrets are changed, tokens of both are good; a third one is not.
	s := serve(t, db, "--jwt-secret-file", secretFile(t, otherSecret, testSecret))
	for secret, want := range map[string]int{testSecret: 404, otherSecret: 404, strings.Repeat("x", 32): 401} {
		token := sign(t, secretFile(t, secret), "--ws", "w", "--sub", "m")
		if code, body := ask(t, "GET", s.url+"/api/v1/workspaces/w/unread", token, ""); code != want {
			t.Errorf("%s: %d %s", secret, code, body)
		}
	}
}

func TestServeOverTLS(t *testing.T) {
	cert, key, pool := certificate(t)
	db, _ := database(t)
	s := serve(t, db, "--jwt-secret-file", secretFile(t, testSecret), "--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(s.url, "https://") {
		t.Fatal(s.url)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Get(s.url + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 200 || res.ProtoMajor != 2 {
		t.Errorf("%s %s", res.Status, res.Proto)
	}
}

func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: raw},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	return cert, key, pool
}

// program is the program as a process of its own.
type program struct {
	cmd *exec.Cmd
	log *lines
	url string
}

// startProgram serves in another process.
func startProgram(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{
		"serve", "--listen", "127.0.0.1:0", "--admin-listen", "off", "--log-format", "json",
	}, args...)
	p := &program{cmd: exec.Command(self, args...), log: newLines()}
	p.cmd.Env = append(append(os.Environ(), asProgram+"=1"), env...)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cmd.Process.Kill(); p.cmd.Wait() })
	go p.log.collect(stderr)
	line := p.log.await("serving")
	if line == nil {
		t.Fatalf("the program did not start: %v", p.log.all)
	}
	p.url = line["url"].(string)
	return p
}

// runLimited runs a command in a process that may not write files beyond a size.
func runLimited(t *testing.T, size int, args ...string) (code int, stderr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1", fmt.Sprint(fileSize, "=", size))
	cmd.Stderr = &text
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), text.String()
}

// wait returns the exit code once the process has ended.
func (p *program) wait(t *testing.T) int {
	t.Helper()
	for p.log.find("ended") == nil {
		if _, more := <-p.log.news; !more {
			break
		}
	}
	if err := p.cmd.Wait(); err != nil && p.cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// A process that is asked to end lets its streams end properly, and leaves a database that the
// next one opens at once.
func TestSignalDrainsStreams(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(signal.String(), func(t *testing.T) {
			db, _ := database(t)
			secret := secretFile(t, testSecret)
			p := startProgram(t, nil, db, "--jwt-secret-file", secret)
			service, alice := prepare(t, p.url, secret)
			req, err := http.NewRequestWithContext(t.Context(), "GET", p.url+"/api/v1/workspaces/w/events", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+alice)
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			events := bufio.NewScanner(res.Body)
			until := func(want string) bool {
				for events.Scan() {
					if strings.Contains(events.Text(), want) {
						return true
					}
				}
				return false
			}
			if !until(`"complete":true`) {
				t.Fatalf("no snapshot: %v", events.Err())
			}
			if code, _ := post(t, p.url, service, "m1", "hi"); code != 201 {
				t.Fatal(code)
			}
			if !until(`"unread":1`) {
				t.Fatalf("no delta: %v", events.Err())
			}
			if err := p.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			for events.Scan() { // to a proper end: a cut connection would be an error
			}
			if err := events.Err(); err != nil {
				t.Errorf("the stream was cut off: %v", err)
			}
			http.DefaultClient.CloseIdleConnections()
			if code := p.wait(t); code != exitDone {
				t.Errorf("code %d: %v", code, p.log.all)
			}
			if p.log.find("draining") == nil || p.log.find("connections cut off") != nil {
				t.Errorf("log %v", p.log.all)
			}
			s := serve(t, db, "--jwt-secret-file", secret)
			if n := unreadOf(t, s.url, alice); n != "1" {
				t.Errorf("unread %s", n)
			}
		})
	}
}

// Requests that do not end are cut off when the time for draining is over.
func TestDrainTimeout(t *testing.T) {
	db, _ := database(t)
	secret := secretFile(t, testSecret)
	s := serve(t, db, "--jwt-secret-file", secret, "--drain-timeout", "50ms")
	service, _ := prepare(t, s.url, secret)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /api/v1/workspaces/w/messages:batch HTTP/1.1\r\nHost: x\r\n"+
		"Authorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"+
		"Expect: 100-continue\r\n\r\n", service)
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("%q, %v", line, err)
	}
	if code := s.end(t); code != exitDone || s.log.await("connections cut off") == nil {
		t.Errorf("code %d, log %v", code, s.log.all)
	}
}
