package figures

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark/internal/bench"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// measureQuickly runs the figures of a pattern at the smallest scale. What they say of a machine
// that runs tests is worth nothing; that they say it, and that the counts are right, is.
func measureQuickly(t *testing.T, pattern string, against map[string]string) *bench.Report {
	t.Helper()
	var log bytes.Buffer
	r, err := Suite().Run(t.Context(), bench.Config{
		Rounds: bench.MinRounds, Scale: bench.Quick, Figures: regexp.MustCompile(pattern),
		Against: against, Stderr: &log, Now: time.Now,
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	for _, f := range r.Figures {
		if f.Verdict == bench.NotMeasured {
			t.Errorf("%s is not measured: %s", f.Name, f.Why)
		}
	}
	for _, c := range r.Checks {
		if c.Compared == 0 || c.Wrong > 0 {
			t.Errorf("%s, %s: %d of %d wrong", c.Group, c.Name, c.Wrong, c.Compared)
		}
	}
	return r
}

func TestMessages(t *testing.T) { measureQuickly(t, "^message-", nil) }

func TestCrowd(t *testing.T) {
	r := measureQuickly(t, "^(counts-cold.*|dot|gc-.*|bytes-per-state)$", nil)
	if len(r.Checks) != 2 || r.Checks[1].Compared != 4*crowdScopes {
		t.Errorf("checks %+v", r.Checks)
	}
}

func TestFlush(t *testing.T) {
	f := measureQuickly(t, "^flush-rows$", nil).Figures[0]
	if f.Verdict != bench.Met { // a count: the same on every machine
		t.Errorf("%s: %v rows", f.Verdict, f.Ratio.Values)
	}
}

func TestLibrary(t *testing.T) { measureQuickly(t, "^parallel-", nil) }

func TestWeb(t *testing.T) { measureQuickly(t, "^http-constant$", nil) }

func TestStreams(t *testing.T) { measureQuickly(t, "^sse-", nil) }

// rival is another system's address, from the environment. Where the project is built for good,
// a missing one is a failure.
func rival(t *testing.T, kind string) map[string]string {
	t.Helper()
	name := "TIDEMARK_TEST_" + strings.ToUpper(kind)
	dsn := os.Getenv(name)
	if dsn == "" && os.Getenv("CI") == "true" {
		t.Fatalf("$%s is not set; scripts/services starts a server", name)
	}
	if dsn == "" {
		t.Skipf("$%s is not set; scripts/services starts a server", name)
	}
	return map[string]string{kind: dsn}
}

func TestPostgres(t *testing.T) {
	measureQuickly(t, "^(http-postgres|postgres-.*)$", rival(t, "postgres"))
}

// Two nodes share a database, and each statement belongs to a message, whoever owns its workspace.
func TestPair(t *testing.T) {
	r := measureQuickly(t, "^two-nodes", rival(t, "postgres"))
	if f := r.Figures[len(r.Figures)-1]; f.Name != twoNodesStatements || f.Verdict != bench.Met {
		t.Errorf("%s is %s: %v", f.Name, f.Verdict, f.Ratio.Values) // a count: the same on every machine
	}
}

func TestRedis(t *testing.T) { measureQuickly(t, "^redis-", rival(t, "redis")) }

func TestBell(t *testing.T) { measureQuickly(t, "^inbox-badge$", nil) }

func TestRedisBell(t *testing.T) { measureQuickly(t, "^inbox-badge-redis$", rival(t, "redis")) }

// Every figure is filled by one group, and every group fills figures of the catalogue.
func TestSuite(t *testing.T) {
	s := Suite()
	filled := map[string]int{}
	for _, g := range s.Groups {
		for _, name := range g.Fills {
			filled[name]++
		}
	}
	for _, d := range s.Catalogue {
		if filled[d.Name] != 1 {
			t.Errorf("%s is filled by %d groups", d.Name, filled[d.Name])
		}
		if d.Bound.None() != (d.Held == "") {
			t.Errorf("%s: bound %q, held %q", d.Name, d.Bound, d.Held)
		}
		delete(filled, d.Name)
	}
	for name := range filled {
		t.Errorf("%s is filled and not in the catalogue", name)
	}
}

// The walk goes through every line before it comes to one again.
func TestChase(t *testing.T) {
	const lines = 1000
	c := newChase(lines * lineWords * 4)
	seen := map[uint32]bool{}
	for !seen[c.at] {
		seen[c.at] = true
		c.walk(1)
	}
	if len(seen) != lines || c.at != 0 {
		t.Errorf("%d lines of %d", len(seen), lines)
	}
}

// The channels of a member are distinct, and members differ.
func TestCrowdChannels(t *testing.T) {
	c := &crowd{members: 50, channels: 499}
	all := map[int]bool{}
	for m := range c.members {
		own := map[int]bool{}
		for n := range crowdScopes {
			own[c.channel(m, n)] = true
			all[c.channel(m, n)] = true
		}
		if len(own) != crowdScopes {
			t.Fatalf("member %d has %d channels", m, len(own))
		}
	}
	if len(all) < 400 {
		t.Errorf("%d channels are used", len(all))
	}
}

func TestBareEvent(t *testing.T) {
	for _, size := range []int{40, 300, 5000} {
		e := bareEvent(size)
		if !bytes.HasPrefix(e, []byte("data: x")) || !bytes.HasSuffix(e, []byte("x\n\n")) ||
			len(e) > size || len(e) < size-12 {
			t.Errorf("%d bytes for %d", len(e), size)
		}
	}
}
