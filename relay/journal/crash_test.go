package journal

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/relay/frontier"
	"github.com/tidemark-im/tidemark/relay/nostrx"
	"github.com/tidemark-im/tidemark/relay/relaytest"
)

// childEnv makes the test binary be a process that reads, publishes, and is killed on the way. It
// holds its orders.
const childEnv = "TIDEMARK_JOURNAL_CHILD"

// orders are what a child is to do.
type orders struct {
	URL, Secret, Path string
	Step              string // to stop at and wait for the blow; "" for none
	Nth               int    // time that it comes, from 1
}

// reads are what a child saves, each with a publication after it.
var reads = []map[Key]Time{
	{"one": Time(start - 90), MessageKey(1): Time(start - 80)},
	{"two": Time(start - 70), "one": Time(start - 60)},
}

func runChild() {
	var o orders
	if err := json.Unmarshal([]byte(os.Getenv(childEnv)), &o); err != nil {
		die(err)
	}
	seen := 0
	onStep := func(step string) {
		if step != o.Step {
			return
		}
		if seen++; seen == o.Nth {
			fmt.Println("at", step)
			select {} // until it is killed
		}
	}
	ctx := context.Background()
	key, err := nostrx.ParseKey(o.Secret)
	if err != nil {
		die(err)
	}
	clock := func() time.Time { return time.Unix(start, 0) }
	web, err := nostrx.NewWeb(o.URL, key, &http.Client{}, clock)
	if err != nil {
		die(err)
	}
	j, err := Open(ctx, o.Path, Options{NoSync: true, OnStep: onStep})
	if err != nil {
		die(err)
	}
	b := j.Book(Partition{Scope: o.URL, Viewer: key.Public()})
	p := Publisher{Book: b, Relay: OverWeb(web), Key: key, Now: clock}
	for i, advance := range reads {
		_, err := b.Act(ctx, Evidence{}, func(Record) (frontier.Plan, error) {
			return frontier.Plan{Advance: advance}, nil
		})
		if err != nil {
			die(err)
		}
		fmt.Println("saved", i)
		if _, err := b.MarkUnread(ctx, Key(fmt.Sprint("mark", i))); err != nil {
			die(err)
		}
		if err := p.Flush(ctx); err != nil {
			die(err)
		}
		fmt.Println("published", i)
	}
	if err := j.Close(); err != nil {
		die(err)
	}
	fmt.Println("done")
}

func die(err error) {
	fmt.Println("error", err)
	os.Exit(1)
}

// blow says where a child is killed: at one of its own steps, or by the relay.
type blow struct {
	step  string
	nth   int
	point relaytest.Point // of the nth publication
}

// killSteps are those of the journal: a transaction is begun, but nothing written; written, but not
// committed; committed. A publication looks at the record; has signed, inside the transaction; is
// about to send, has sent, has looked.
var killSteps = []string{"commit", "committed", "load", "looked", "send", "sent", "signed", "write"}

// A process that is killed at any moment loses nothing that it has saved, and what it has signed for
// one read is sent once, or again as it is: no read is signed for twice. Whoever comes next finishes
// the work.
// covers: RL-421, RL-437, RL-438, RL-469, RL-570
func TestKilledAnywhere(t *testing.T) {
	w := newWorld(t)
	rounds := 0
	steps := make(map[string]int)
	for nth := 1; nth <= len(reads); nth++ {
		for _, point := range []relaytest.Point{relaytest.AtEvent, relaytest.AtReceipt} {
			if w.killed(blow{point: point, nth: nth}, rounds) {
				steps[string(point)]++
			}
			rounds++
		}
	}
	for _, step := range killSteps {
		stride := 1
		// The steps of a transaction are the same in each: some of them, and all in long runs. Beside
		// the race detector, which looks into no child that is killed, once each.
		if os.Getenv("TIDEMARK_SOAK") == "" && slices.Contains([]string{"commit", "committed", "write"}, step) {
			stride = 3
		}
		for n := 1; w.killed(blow{step: step, nth: n}, rounds); n += stride {
			rounds++
			steps[step]++
			if raceDetector {
				break
			}
			if n > 100 {
				t.Fatal("it never ends")
			}
		}
		rounds++
	}
	want := append(slices.Clone(killSteps), string(relaytest.AtEvent), string(relaytest.AtReceipt))
	if got := slices.Sorted(maps.Keys(steps)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("killed at %v, want all of %v", got, want)
	}
	t.Logf("%d processes, killed at %v", rounds, steps)
}

// killed runs a child into a blow, in a journal of its own, and judges what is left; false when it came
// through.
func (w *world) killed(b blow, round int) bool {
	w.t.Helper()
	o := orders{
		URL: w.srv.URL, Secret: fmt.Sprintf("%064x", 1), Step: b.step, Nth: b.nth,
		Path: filepath.Join(w.t.TempDir(), fmt.Sprintf("%d.db", round)),
	}
	text, err := json.Marshal(o)
	if err != nil {
		w.t.Fatal(err)
	}
	before := len(w.publications())
	cmd := exec.CommandContext(w.t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	at := 0
	started := make(chan *os.Process, 1)
	w.guard(func(occasion relaytest.Occasion) relaytest.Fault {
		if occasion.Point != b.point {
			return relaytest.None
		}
		if at++; at != b.nth {
			return relaytest.None
		}
		_ = (<-started).Kill()
		return relaytest.Cut
	})
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	started <- cmd.Process
	saved, through := 0, false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "saved":
			saved++
		case "at":
			_ = cmd.Process.Kill()
		case "done":
			through = true
		case "error":
			w.t.Errorf("%+v: the child says %s", b, rest)
		}
	}
	_ = cmd.Wait() // it was killed
	w.guard(nil)
	w.judge(o.Path, saved, before, fmt.Sprintf("%+v", b))
	return !through
}

// judge lets the next process finish the work and looks at the end.
func (w *world) judge(path string, saved, before int, how string) {
	w.t.Helper()
	next := w.device(path)
	r := w.load(next)
	for i, advance := range reads[:saved] {
		for k, at := range advance {
			if r.State.Frontiers[k] < at {
				w.t.Errorf("%s: %q of read %d is lost: %v", how, k, i, r.State.Frontiers)
			}
		}
	}
	w.flush(next, nil)
	r = w.load(next)
	if r.Waiting() {
		w.t.Errorf("%s: still waiting: %+v", how, r)
	}
	events := w.srv.Stored(nostrx.Filter{Tags: map[string][]string{"d": {slotPrefix + r.Slot}}})
	seen, err := Decode(w.key, events)
	if err != nil {
		w.t.Fatal(err)
	}
	held := make(map[Key]Time)
	for _, o := range seen {
		maps.Copy(held, o.Blob.State.Frontiers)
	}
	if want := r.publishable(start); !maps.Equal(held, want) || saved > 0 && len(want) == 0 {
		w.t.Errorf("%s: the relay holds %v, saved were %v", how, held, want)
	}
	distinct := make(map[nostrx.EventID]bool)
	for _, id := range w.publications()[before:] {
		distinct[id] = true
	}
	if len(distinct) > len(reads) {
		w.t.Errorf("%s: %d events for %d reads", how, len(distinct), len(reads))
	}
}
