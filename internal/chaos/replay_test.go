package chaos

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/internal/replay"
)

const (
	traceWorkspace = "trace"
	sampleTrace    = "../../testdata/trace.csv.gz"
	sampleGolden   = "../../testdata/trace.golden.json"
	// traceEnv names a recorded trace: a file, or a directory that holds one with its counts.
	traceEnv = "TIDEMARK_TRACE"
)

// trial is a trace with the counts that it must leave.
type trial struct {
	name, path string
	sum        string // of the counts, in hexadecimal; empty where nobody knows
}

func trials(t *testing.T) []trial {
	t.Helper()
	text, err := os.ReadFile(sampleGolden)
	if err != nil {
		t.Fatal(err)
	}
	var golden replay.Totals
	if err := json.Unmarshal(text, &golden); err != nil {
		t.Fatal(err)
	}
	out := []trial{{"sample", sampleTrace, golden.SHA256}}
	path := os.Getenv(traceEnv)
	if path == "" {
		return out
	}
	if info, err := os.Stat(path); err != nil {
		t.Fatal(err)
	} else if info.IsDir() {
		path = filepath.Join(path, "chat-trace.csv.gz")
	}
	recorded := trial{name: "recorded", path: path}
	if f, err := os.Open(filepath.Join(filepath.Dir(path), "counts.csv.gz")); err == nil {
		defer f.Close()
		lines, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, lines); err != nil {
			t.Fatal(err)
		}
		recorded.sum = hex.EncodeToString(sum.Sum(nil))
	}
	return append(out, recorded)
}

// What a replay left is served after kill -9 and a restart as it was before, to every member.
// A replay that was killed on its way goes on where it was.
//
// covers: RT-355
func TestReplayKilled(t *testing.T) {
	for _, tr := range trials(t) {
		t.Run(tr.name, func(t *testing.T) {
			in := inFile(t)
			s := launch(t, in, nil)
			s.arm(t, blow{Place: committed, After: 12})
			if _, alive := s.tell(t, order{Replay: tr.path}); alive {
				t.Fatal("the replay took fewer commits than the kill needs")
			}

			s = launch(t, in, nil)
			loaded := reload(t, s, tr.path)
			if loaded.Duplicates == 0 || loaded.Duplicates == loaded.Messages || !loaded.Changed {
				t.Errorf("going on found %+v", loaded)
			}
			before := servedLines(t, s)
			s.kill()
			if sum := sha256.Sum256([]byte(strings.Join(before, ""))); tr.sum != "" &&
				hex.EncodeToString(sum[:]) != tr.sum {
				t.Errorf("%d counts, their sum is %x and should be %s", len(before), sum, tr.sum)
			}

			s = launch(t, in, nil)
			compareLines(t, before, servedLines(t, s))
			s.kill()
			t.Logf("%d messages, %d of them before the first kill; %d counts", loaded.Messages,
				loaded.Duplicates, len(before))
		})
	}
}

func reload(t *testing.T, s *server, path string) replay.Loaded {
	t.Helper()
	r, alive := s.tell(t, order{Replay: path})
	if !alive || r.Error != "" || r.Loaded == nil {
		t.Fatalf("replay: %s\n%s", r.Error, s.errors)
	}
	return *r.Loaded
}

// servedLines reads every count of every member over HTTP, a line each, in bytewise order.
func servedLines(t *testing.T, s *server) []string {
	t.Helper()
	w := dial(s)
	defer w.close()
	service := token(t, traceWorkspace, "the-service", httpapi.RoleService)
	var lines []string
	for _, member := range everybody(t, w, service) {
		rows := map[string]string{}
		query, tried := "", 0
		for {
			var p page
			w.get(t, service, address(traceWorkspace,
				"unread?limit=500&member="+url.QueryEscape(member)+query), &p)
			if tried++; tried > tries {
				t.Fatalf("the counts of %s never become complete: %+v", member, p)
			}
			if p.State != "ready" {
				query = "" // nothing was said; the read itself waited for what is being loaded
				continue
			}
			for id, r := range p.Scopes {
				rows[id] = fmt.Sprintf("%s,%s,%d,%d\n", member, id, r.Unread, r.Attention)
			}
			if p.Next == "" && p.Complete {
				break
			}
			query = "&pageToken=" + url.QueryEscape(p.Next)
		}
		for _, line := range rows {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

func everybody(t *testing.T, w *wire, service string) []string {
	t.Helper()
	var out []string
	for query := ""; ; {
		var body struct {
			Members []struct {
				ID string `json:"id"`
			} `json:"members"`
			Next string `json:"next"`
		}
		w.get(t, service, address(traceWorkspace, "members?limit=500"+query), &body)
		for _, m := range body.Members {
			out = append(out, m.ID)
		}
		if body.Next == "" {
			return out
		}
		query = "&pageToken=" + url.QueryEscape(body.Next)
	}
}

func compareLines(t *testing.T, want, got []string) {
	t.Helper()
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			t.Fatalf("before the kill %q, after the restart %q", want[i], got[i])
		}
	}
	if len(want) != len(got) {
		t.Fatalf("%d counts before the kill, %d after the restart", len(want), len(got))
	}
}
