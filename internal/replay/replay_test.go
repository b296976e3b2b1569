package replay_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	tidemark "github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/internal/dbtest"
	"github.com/tidemark-im/tidemark/internal/replay"
	"github.com/tidemark-im/tidemark/internal/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the golden numbers of the sample trace anew")

const (
	sample = "../../testdata/trace.csv.gz"
	golden = "../../testdata/trace.golden.json"
)

func open(t *testing.T, path string) *trace.Reader {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	rows, err := trace.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func engine(t *testing.T, path string) *tidemark.Engine {
	t.Helper()
	return engineOn(t, "sqlite:"+path)
}

func engineOn(t *testing.T, facts string) *tidemark.Engine {
	t.Helper()
	e, err := tidemark.Open(t.Context(), tidemark.Options{Facts: facts})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func workspace(t *testing.T, e *tidemark.Engine) *tidemark.Workspace {
	t.Helper()
	if _, err := e.CreateWorkspace(t.Context(), "trace", "Trace"); err != nil {
		t.Fatal(err)
	}
	return e.Workspace("trace")
}

func shut(t *testing.T, e *tidemark.Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func count(t *testing.T, w *tidemark.Workspace) (replay.Totals, string) {
	t.Helper()
	counts, err := replay.Count(t.Context(), w, nil)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := counts.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	return counts.Totals, text.String()
}

// The committed numbers are the oracle's.
func TestOracleAgreesWithGolden(t *testing.T) {
	got, _ := judge(t, open(t, sample)).totals()
	if *update {
		text, err := json.MarshalIndent(got, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	var want replay.Totals
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A replay serves what the oracle counts; the same trace again changes nothing; a restart serves
// the same.
func TestReplay(t *testing.T) {
	for name, path := range traces(t) {
		t.Run(name, func(t *testing.T) {
			replayOn(t, path, "sqlite:"+filepath.Join(t.TempDir(), "facts.db"), 2)
		})
	}
}

// A replay on a server leaves the same counts as in a file. It takes longer there: the sample is for
// the soak and for runs with a recorded trace, the others have a shorter one.
func TestReplayOnServers(t *testing.T) {
	all := map[string]string{"short": short(t)}
	if os.Getenv("TIDEMARK_SOAK") != "" || os.Getenv("TIDEMARK_TRACE") != "" {
		all = traces(t)
	}
	for _, k := range dbtest.Kinds {
		for name, path := range all {
			t.Run(k.Name+"/"+name, func(t *testing.T) { replayOn(t, path, k.New(t).Facts, 1) })
		}
	}
}

// replayOn loads a trace so many times, compares and opens the database again.
func replayOn(t *testing.T, path, facts string, rounds int) {
	t.Helper()
	wantTotals, wantLines := judge(t, open(t, path)).totals()
	e := engineOn(t, facts)
	w := workspace(t, e)
	for round := range rounds {
		loaded, err := replay.Load(t.Context(), w, open(t, path), nil)
		if err != nil {
			t.Fatal(err)
		}
		want := replay.Loaded{Messages: int(wantTotals.Messages), Changed: round == 0}
		if round == 1 {
			want.Duplicates = want.Messages
		}
		if diff := cmp.Diff(want, loaded); diff != "" {
			t.Errorf("round %d: %s", round, diff)
		}
		compare(t, w, wantTotals, wantLines)
	}
	shut(t, e)
	e = engineOn(t, facts)
	compare(t, e.Workspace("trace"), wantTotals, wantLines)
	shut(t, e)
	compareRecorded(t, path, wantLines)
}

func compare(t *testing.T, w *tidemark.Workspace, totals replay.Totals, lines string) {
	t.Helper()
	gotTotals, gotLines := count(t, w)
	if diff := cmp.Diff(totals, gotTotals); diff != "" {
		t.Error(diff)
	}
	if gotLines != lines {
		t.Errorf("counts differ, first at %q", firstDifference(lines, gotLines))
	}
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] + " and " + b[i]
		}
	}
	return "the end"
}

// traces are the sample, and a recorded trace where the environment names one: a file, or a
// directory with chat-trace.csv.gz and counts.csv.gz.
func traces(t *testing.T) map[string]string {
	out := map[string]string{"sample": sample}
	if path := os.Getenv("TIDEMARK_TRACE"); path != "" {
		if info, err := os.Stat(path); err != nil {
			t.Fatal(err)
		} else if info.IsDir() {
			path = filepath.Join(path, "chat-trace.csv.gz")
		}
		out["recorded"] = path
	}
	return out
}

// compareRecorded holds the counts against the file that came with a recorded trace.
func compareRecorded(t *testing.T, path, lines string) {
	f, err := os.Open(filepath.Join(filepath.Dir(path), "counts.csv.gz"))
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if string(recorded) != lines {
		t.Errorf("recorded counts differ, first at %q", firstDifference(string(recorded), lines))
	}
}

// short is a trace that is just long enough to be loaded in two parts.
func short(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "short.csv")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := trace.NewWriter(f)
	if err := trace.Generate(trace.Settings{Messages: 8_100, Seed: 3}, w.Write); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return path
}

// A load that was broken off goes on where it stopped. Progress is told what is durable.
func TestReplayGoesOn(t *testing.T) {
	path := short(t)
	wantTotals, wantLines := judge(t, open(t, path)).totals()
	e := engine(t, filepath.Join(t.TempDir(), "facts.db"))
	defer shut(t, e)
	w := workspace(t, e)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := replay.Load(ctx, w, open(t, path), func(int) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	var told []int
	loaded, err := replay.Load(t.Context(), w, open(t, path), func(n int) { told = append(told, n) })
	if err != nil {
		t.Fatal(err)
	}
	if n := len(told); n != 2 || told[n-1] != 8_100 {
		t.Errorf("progress: %v", told)
	}
	if loaded.Duplicates == 0 || loaded.Duplicates == loaded.Messages || !loaded.Changed {
		t.Errorf("second load: %+v", loaded)
	}
	compare(t, w, wantTotals, wantLines)
	var counted []int
	if _, err := replay.Count(t.Context(), w, func(n, of int) { counted = append(counted, of-n) }); err != nil {
		t.Fatal(err)
	}
	if n := len(counted); n != wantTotals.Members || counted[n-1] != 0 {
		t.Errorf("progress of the count: %v", counted)
	}
}

func TestReplayOfAnotherTrace(t *testing.T) {
	e := engine(t, filepath.Join(t.TempDir(), "facts.db"))
	defer shut(t, e)
	w := workspace(t, e)
	load := func(text string) error {
		rows, err := trace.NewReader(strings.NewReader(
			"unix_seconds,channel,topic,sender,mentions,length\n" + text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = replay.Load(t.Context(), w, rows, nil)
		return err
	}
	if err := load("1,0,0,1,,1\n2,0,0,2,,1\n"); err != nil {
		t.Fatal(err)
	}
	before, _ := count(t, w)
	if err := load("1,0,0,1,,1\n2,0,0,2,1,1\n"); !errors.Is(err, replay.ErrOtherTrace) ||
		!strings.Contains(err.Error(), "row 2") {
		t.Errorf("another mention: %v", err)
	}
	if err := load("1,0,0,1,,1\n2,0,0,x,1,1\n"); !errors.Is(err, trace.ErrFormat) {
		t.Errorf("malformed: %v", err)
	}
	if after, _ := count(t, w); after != before {
		t.Errorf("counts changed from %+v to %+v", before, after)
	}
}
