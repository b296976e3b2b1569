package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// A command line that is not understood ends with code 2 and one line that says what is wrong,
// before anything is touched.
func TestBadFlags(t *testing.T) {
	secret := secretFile(t, testSecret)
	here := t.TempDir()
	t.Chdir(here)
	for _, c := range []struct {
		line, says string
		env        string
	}{
		{line: "serf", says: `unexpected argument serf, did you mean "serve"?`},
		{line: "serve --port 1", says: "unknown flag --port"},
		{line: "serve extra", says: "unexpected argument extra"},
		{line: "serve", says: "no way to check tokens"},
		{line: "serve --listen nowhere", says: `--listen is "nowhere", want HOST:PORT`},
		{line: "serve --listen :99999", says: "the port is not a number"},
		{line: "serve --admin-listen :x", says: `--admin-listen is ":x"`},
		{line: "serve --facts mysql://x", says: `--facts is "mysql://x", want mysql://USER:PASSWORD@HOST:PORT/DATABASE`},
		{line: "serve --facts redis://x", says: `--facts is "redis://x", want sqlite:PATH, postgres://`},
		{line: "serve --facts postgres://u:secret@h:x/d", says: `want postgres://USER`},
		{line: "serve --facts sqlite:", says: "want sqlite:PATH"},
		{line: "serve --profile central", says: `needs --facts on a server`},
		{line: "serve --profile none", says: `--profile must be one of "all","workspace","central"`},
		{line: "serve --log-level loud", says: `--log-level must be one of`},
		{line: "serve --log-format xml", says: `--log-format must be one of`},
		{line: "serve --tls-cert a", says: "--tls-cert and --tls-key go together"},
		{line: "serve --drain-timeout soon", says: "--drain-timeout"},
		{line: "serve --drain-timeout=-1s", says: "--drain-timeout is -1s, want 0s to 1h0m0s"},
		{line: "serve --unread-runtime-hydrate-batch-size 0", says: "from 1 to 10000"},
		{line: "serve --unread-runtime-hydrate-max-concurrency 1000", says: "from 1 to 64"},
		{line: "serve --unread-runtime-max-entries 9", says: "from 1000 to"},
		{line: "serve --http-member-rate -1", says: "--http-member-rate"},
		{line: "serve --http-member-rate=-1", says: `--http-member-rate ($TIDEMARK_HTTP_MEMBER_RATE) is "-1"`},
		{line: "serve --http-member-burst 0", says: `is "0", want a whole number from 1`},
		{line: "serve --http-service-rate 1e9", says: "$TIDEMARK_HTTP_SERVICE_RATE"},
		{line: "demo --http-token-streams 0", says: "$TIDEMARK_HTTP_TOKEN_STREAMS"},
		{line: "demo", env: "TIDEMARK_LANE_GROUP_WAIT=30", says: "want a duration such as 30s"},
		{line: "serve", env: "TIDEMARK_LIVE_HEART_BEAT=30s", says: "there is no setting $TIDEMARK_LIVE_HEART_BEAT"},
		{line: "serve", env: "TIDEMARK_LISTEN=nowhere", says: `--listen is "nowhere"`},
		{line: "serve", env: "TIDEMARK_UNREAD_RUNTIME_HYDRATE_BATCH_SIZE=many", says: "many"},
		{line: "serve", env: "TIDEMARK_JWT_SECRET_FILE=" + secret + " TIDEMARK_JWT_SECRET=x", says: "both set"},
		{line: "demo --every 1us", says: "--every is 1µs"},
		{line: "demo --listen x", says: "--listen"},
		{line: "replay", says: `expected "<trace>"`},
		{line: "trace --messages 0", says: "--messages is 0, want 1 to 10000000"},
		{line: "trace --messages lots", says: "--messages"},
		{line: "trace --seed=-1", says: "--seed"},
		{line: "token --ws a", says: "missing flags: --sub=ID"},
		{line: "token --ws a --sub b", says: "no secret to sign with"},
		{line: "token --ws a --sub b --role owner", says: "--role must be one of"},
		{line: "token --ws a --sub b --ttl 0s", says: "--ttl is 0s"},
		{line: "token --ws a --sub b --ttl -1h", says: `--ttl: "-1h" looks like another flag; a value is written --ttl=-1h`},
		{line: "token --ws * --sub b --jwt-secret-file " + secret, says: "workspace"},
		{line: "chat", says: `--url is "", want https://host[:port][/path], or give a sign-in link`},
		{line: "chat --url ftp://host --token x", says: `--url is "ftp://host"`},
		{line: "chat --url http://host", says: "no token: give --token or --token-file"},
		{line: "chat --url http://host --token x --token-file y", says: "--token and --token-file are both set"},
		{line: "chat http://host/#device=phone", says: "the link has no token in it; is it whole, and quoted?"},
		{line: "chat http://host/#token=x --url http://host", says: "a sign-in link takes the place of --url"},
		{line: "backup", says: `expected "<file>"`},
		{line: "migrate --facts x", says: "want sqlite:PATH"},
		{line: "replay t.csv --facts x", says: "want sqlite:PATH"},
		{line: "help serf", says: `did you mean "serve"?`},
		{line: "version now", says: "unexpected argument now"},
		{line: "--config missing.json version", says: "missing.json"},
	} {
		t.Run(strings.ReplaceAll(c.line+" "+c.env, "/", "_"), func(t *testing.T) {
			for _, assignment := range strings.Fields(c.env) {
				name, value, _ := strings.Cut(assignment, "=")
				t.Setenv(name, value)
			}
			run(t, strings.Fields(c.line)...).fails(t, exitUsage, c.says)
		})
	}
	if left, _ := os.ReadDir(here); len(left) != 0 {
		t.Errorf("a refused command line left %v behind", left)
	}
}

func TestHelp(t *testing.T) {
	for _, line := range []string{"", "help", "--help", "serve --help", "help serve", "replay -h"} {
		o := run(t, strings.Fields(line)...).done(t)
		if !strings.Contains(o.out, "Usage: tidemark") || o.errors != "" {
			t.Errorf("%s: %q, %q", line, o.out, o.errors)
		}
	}
	// Each flag says by which variable it may be set.
	help := run(t, "serve", "--help").done(t).out
	words := strings.Join(strings.Fields(help), " ")
	for line := range strings.Lines(help) {
		if name, _, ok := strings.Cut(strings.TrimSpace(line), "="); ok && strings.HasPrefix(name, "--") {
			want := "$TIDEMARK_" + strings.ToUpper(strings.ReplaceAll(name[2:], "-", "_"))
			if !strings.Contains(words, want) {
				t.Errorf("%s has no %s", name, want)
			}
		}
	}
}

func TestHelpNamesDefaults(t *testing.T) {
	for line, want := range map[string]string{
		"serve":  "--facts=sqlite:PATH|URL Where the facts are kept: a file, or a database as postgres://",
		"replay": "in a temporary database that is removed at the end ($TIDEMARK_FACTS).",
		"doctor": "(default sqlite:tidemark.db, $TIDEMARK_FACTS).",
		"trace":  "How many messages (default 20000, $TIDEMARK_MESSAGES).",
	} {
		help := strings.Join(strings.Fields(run(t, line, "--help").done(t).out), " ")
		if !strings.Contains(help, want) {
			t.Errorf("%s: no %q in %s", line, want, help)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Setenv("TIDEMARK_VERSION", "of whoever packs it")
	for _, line := range []string{"version", "--version"} {
		if o := run(t, line).done(t); !strings.HasPrefix(o.out, "tidemark ") || strings.Count(o.out, "\n") != 1 {
			t.Errorf("%s: %q", line, o.out)
		}
	}
}

// The committed sample is what the generator writes.
func TestTrace(t *testing.T) {
	f, err := os.Open("../../testdata/trace.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := unzip(t, f)
	if got := run(t, "trace", "--messages", "20000", "--seed", "1").done(t).out; got != want {
		t.Error("trace --messages 20000 --seed 1 is not testdata/trace.csv.gz")
	}
	plain := filepath.Join(t.TempDir(), "t.csv")
	if o := run(t, "trace", "--messages", "20000", "-o", plain).done(t); o.out != "" {
		t.Error("both file and output were written")
	}
	if got, _ := os.ReadFile(plain); string(got) != want {
		t.Error("the file differs")
	}
	packed, err := os.Create(plain + ".gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	run(t, "trace", "--messages", "20000", "-o", plain+".gz").done(t)
	if unzip(t, packed) != want {
		t.Error("the compressed file differs")
	}
	run(t, "trace", "-o", filepath.Join(t.TempDir(), "no", "such")).fails(t, exitFailed, "no such file")
}

func TestTraceEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	name := filepath.Join(t.TempDir(), "t.csv")
	runFor(ctx, t, "trace", "--messages", "10000000", "-o", name).fails(t, exitFailed, "canceled")
	if _, err := os.Stat(name); !os.IsNotExist(err) {
		t.Error("half a trace was left behind")
	}
}

func unzip(t *testing.T, r io.Reader) string {
	t.Helper()
	z, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestToken(t *testing.T) {
	file := secretFile(t, testSecret, otherSecret)
	o := run(t, "token", "--jwt-secret-file", file, "--ws", "w", "--sub", "m", "--role", "service", "--ttl", "2h").done(t)
	if o.errors != "" || strings.Count(o.out, "\n") != 1 {
		t.Errorf("more than the token: %q %q", o.out, o.errors)
	}
	var claims jwt.MapClaims
	_, err := jwt.ParseWithClaims(strings.TrimSpace(o.out), &claims, func(*jwt.Token) (any, error) {
		return []byte(testSecret), nil // the first one signs
	})
	if err != nil {
		t.Fatal(err)
	}
	expires, _ := claims.GetExpirationTime()
	if left := time.Until(expires.Time); left < 119*time.Minute || left > 2*time.Hour {
		t.Errorf("good for %v", left)
	}
	if claims["ws"] != "w" || claims["sub"] != "m" || claims["role"] != "service" {
		t.Errorf("claims %v", claims)
	}
	t.Setenv(secretVariable, testSecret)
	run(t, "token", "--ws", "*", "--sub", "root", "--role", "admin").done(t)
	t.Setenv(secretVariable, "short")
	run(t, "token", "--ws", "w", "--sub", "m").fails(t, exitUsage, "at least 32")
	t.Setenv(secretVariable, "")
	run(t, "token", "--ws", "w", "--sub", "m", "--jwt-secret-file", "missing").fails(t, exitFailed, "missing")
	run(t, "token", "--ws", "w", "--sub", "m", "--jwt-secret-file", secretFile(t)).fails(t, exitFailed, "is empty")
}

func TestMigrate(t *testing.T) {
	db, path := database(t)
	run(t, "migrate", db, "--check").fails(t, exitFailed, "run tidemark migrate")
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error("a check made the database")
	}
	if o := run(t, "migrate", db).done(t); !strings.Contains(o.out, "from schema 0 to ") {
		t.Errorf("%q", o.out)
	}
	for _, args := range [][]string{{"migrate", db, "--check"}, {"migrate", db}} {
		if o := run(t, args...).done(t); !strings.Contains(o.out, "nothing to do") {
			t.Errorf("%v: %q", args, o.out)
		}
	}
	run(t, "migrate", "--facts", "sqlite:"+filepath.Join(t.TempDir(), "no", "dir.db")).
		fails(t, exitFailed, "dir.db")
}

func TestDoctor(t *testing.T) {
	db, path := database(t)
	o := run(t, "doctor", db).done(t)
	for _, want := range []string{"clock", "disk", "commits a second", "space", "open files", "is not there yet", "no way to check tokens"} {
		if !strings.Contains(o.out, want) {
			t.Errorf("no %q in\n%s", want, o.out)
		}
	}
	run(t, "migrate", db).done(t)
	file := secretFile(t, testSecret)
	o = run(t, "doctor", db, "--jwt-secret-file", file).done(t)
	if !strings.Contains(o.out, "sound") || !strings.Contains(o.out, "1 secret\n") {
		t.Errorf("%s", o.out)
	}
	o = run(t, "doctor", "--facts=sqlite:"+filepath.Join(t.TempDir(), "no", "a.db"))
	if o.code != exitFailed || !strings.Contains(o.out, "FAIL  database  serve cannot make it: there is no directory") {
		t.Errorf("no directory: %d\n%s", o.code, o.out)
	}
	t.Setenv(secretVariable, "short")
	if o := run(t, "doctor", db); o.code != exitFailed || !strings.Contains(o.out, "FAIL  tokens") {
		t.Errorf("short secret: %d\n%s", o.code, o.out)
	}
	t.Setenv(secretVariable, "")
	spoil(t, path)
	o = run(t, "doctor", db)
	o.fails(t, exitFailed, "not everything is well")
	if !strings.Contains(o.out, "FAIL  database") || !strings.Contains(o.out, "damaged") {
		t.Errorf("damaged database:\n%s", o.out)
	}
}

// spoil overwrites the pages of a database file, but for its name.
func spoil(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(text[100:], bytes.Repeat([]byte("spoiled "), len(text)/8-13))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, extra := range []string{"-wal", "-shm"} {
		_ = os.Remove(path + extra)
	}
}

// The file is below a flag and the environment, and a key that no flag has is a mistake.
func TestConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.json")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := func(args ...string) string {
		o := run(t, append([]string{"--config", file, "trace"}, args...)...).done(t)
		_, rest, _ := strings.Cut(o.out, "\n")
		return rest
	}
	byFlag := func(seed string) string {
		_, rest, _ := strings.Cut(run(t, "trace", "--messages", "3", "--seed", seed).done(t).out, "\n")
		return rest
	}
	write(`{"messages": 3, "seed": "5", "admin-listen": "off"}`)
	if got := first(); got != byFlag("5") {
		t.Errorf("file: %s", got)
	}
	t.Setenv("TIDEMARK_SEED", "6")
	if got := first(); got != byFlag("6") {
		t.Errorf("environment: %s", got)
	}
	if got := first("--seed", "7"); got != byFlag("7") {
		t.Errorf("flag: %s", got)
	}
	t.Setenv("TIDEMARK_CONFIG", file)
	if o := run(t, "trace").done(t); strings.Count(o.out, "\n") != 4 {
		t.Errorf("the file that the environment names: %s", o.out)
	}
	for text, says := range map[string]string{
		`{"mesages": 3}`:                        `there is no flag "mesages"`,
		`{"messages": 0}`:                       "--messages is 0",
		`{"messages": 1.5}`:                     "1.5",
		`{"messages": null}`:                    `"messages": want a text`,
		`{"messages": 1, "Messages": 2}`:        "is there twice",
		`{"corsOrigin": ["a", "b,c"]}`:          "texts without commas",
		`[]`:                                    "not a JSON object",
		`{"messages": 3} {}`:                    "goes on after",
		`{"config": "x"}`:                       `there is no flag "config"`,
		`{"adminListen": 3, "admin-listen": 4}`: "is there twice",
	} {
		write(text)
		run(t, "--config", file, "trace").fails(t, exitUsage, says)
	}
}

func TestReplayMatchesTheSample(t *testing.T) {
	db, _ := database(t)
	counts := filepath.Join(t.TempDir(), "counts.csv.gz")
	o := run(t, "replay", "../../testdata/trace.csv.gz", db, "--json", "--counts", counts).done(t)
	var got, want map[string]any
	if err := json.Unmarshal([]byte(o.out), &got); err != nil {
		t.Fatal(err)
	}
	golden, err := os.ReadFile("../../testdata/trace.golden.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(golden, &want); err != nil {
		t.Fatal(err)
	}
	if seconds, ok := got["seconds"].(float64); !ok || seconds <= 0 {
		t.Errorf("seconds: %v", got["seconds"])
	}
	want["seconds"] = got["seconds"]
	for key := range want {
		if got[key] != want[key] {
			t.Errorf("%s is %v, want %v", key, got[key], want[key])
		}
	}
	if len(got) != len(want) {
		t.Errorf("keys: %v", got)
	}
	if !strings.Contains(o.errors, "loading  100 %  20,000 of 20,000 messages") {
		t.Errorf("progress: %q", o.errors)
	}
	f, err := os.Open(counts)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if lines := strings.Count(unzip(t, f), "\n"); lines != 2640+6108 {
		t.Errorf("%d counts", lines)
	}
	o = run(t, "replay", "../../testdata/trace.csv.gz", db).done(t)
	if !strings.HasPrefix(o.out, "20,000 messages were already here; nothing changed\n") ||
		!strings.HasSuffix(o.out, "sha256 of all counts  "+want["sha256"].(string)+"\n") {
		t.Errorf("again: %s", o.out)
	}
}

// Without a place for them the facts leave nothing behind.
func TestReplayIsTemporaryUnlessToldOtherwise(t *testing.T) {
	home := t.TempDir()
	t.Setenv("TMPDIR", home)
	t.Chdir(t.TempDir())
	file := "t.csv"
	text := "unix_seconds,channel,topic,sender,mentions,length\n1,0,0,0,,1\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		o := run(t, "replay", file).done(t)
		if !strings.HasPrefix(o.out, "1 messages loaded") || !strings.HasPrefix(o.errors, "in a temporary database") {
			t.Errorf("%s\n%s", o.out, o.errors)
		}
	}
	here, _ := os.ReadDir(".")
	left, _ := os.ReadDir(home)
	if len(here) != 1 || len(left) != 0 {
		t.Errorf("left behind: %v, %v", here, left)
	}
}

func TestReplayRefuses(t *testing.T) {
	db, path := database(t)
	bad := filepath.Join(t.TempDir(), "bad.csv")
	good := filepath.Join(t.TempDir(), "good.csv")
	header := "unix_seconds,channel,topic,sender,mentions,length\n"
	for name, text := range map[string]string{bad: header + "1,0,0,0,,1\n1,x,0,0,,1\n", good: header + "1,0,0,0,,1\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, "replay", bad, db).fails(t, exitFailed, `line 3: not a chat trace: channel is "x"`)
	run(t, "replay", "missing.csv", db).fails(t, exitFailed, "missing.csv")
	run(t, "replay", t.TempDir(), db).fails(t, exitFailed, "is a directory")
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error("a trace that cannot be read made a database")
	}
	run(t, "replay", good, db).done(t)
	if err := os.WriteFile(good, []byte(header+"1,0,0,0,5,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if o := run(t, "replay", good, db); o.code != exitFailed || !strings.Contains(o.errors, "row 1: the workspace holds another trace") {
		t.Errorf("%d %q", o.code, o.errors)
	}
	run(t, "replay", good, db, "--counts", filepath.Join(t.TempDir(), "no", "c.csv"), "--facts", "sqlite:"+path+"2")
}

// A recorded trace, where the environment names one, ends at its recorded counts.
func TestReplayMatchesTheRecording(t *testing.T) {
	dir := os.Getenv("TIDEMARK_TRACE")
	recorded, err := os.Open(filepath.Join(dir, "counts.csv.gz"))
	if dir == "" || err != nil {
		t.Skip("TIDEMARK_TRACE names no directory with chat-trace.csv.gz and counts.csv.gz")
	}
	defer recorded.Close()
	db, _ := database(t)
	counts := filepath.Join(t.TempDir(), "counts.csv")
	run(t, "replay", filepath.Join(dir, "chat-trace.csv.gz"), db, "--counts", counts).done(t)
	got, err := os.ReadFile(counts)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != unzip(t, recorded) {
		t.Error("the counts differ from the recorded ones")
	}
}
