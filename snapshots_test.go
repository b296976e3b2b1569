package tidemark_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
	"github.com/tidemark-im/tidemark/unread/intake"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

func openSnapshots(t *testing.T, path string) (*tidemark.Engine, *tidemark.Workspace) {
	t.Helper()
	eng, err := tidemark.Open(t.Context(), tidemark.Options{
		Snapshots: &tidemark.Snapshots{Store: "sqlite:" + path},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := eng.Intake().Open("w"); err != nil {
		t.Fatal(err)
	}
	return eng, eng.Workspace("w")
}

// An engine without facts answers from memory what it was told, and refuses everything that needs
// facts. An orderly close keeps what was told; its last flush takes no interval.
// covers: RT-030 RT-032
func TestSnapshotMode(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "snap.db")
	eng, ws := openSnapshots(t, path)
	if err := ws.Tell(
		intake.ScopeStateChanged{Scope: "c", Type: readstate.Channel},
		intake.MembershipChanged{Scope: "c", Member: "b", Joined: true},
	); err != nil {
		t.Fatal(err)
	}
	if err := eng.Intake().Settle(ctx, "w"); err != nil {
		t.Fatal(err)
	}
	watch, err := ws.Watch("b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ws.Unread(ctx, "b", "", 10); err != nil {
		t.Fatal(err)
	}
	watch.Next(10)
	if err := ws.Tell(intake.MessageStored{Scope: "c", Seq: 1, Revision: 1, Author: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := eng.Intake().Settle(ctx, "w"); err != nil {
		t.Fatal(err)
	}
	<-watch.Ready()
	deltas := watch.Next(10)
	if len(deltas) != 1 || deltas[0].Row.Values.Unread != 1 || deltas[0].Row.State != unread.Ready {
		t.Errorf("%+v", deltas)
	}
	watch.Close()
	if _, err := ws.Post(ctx, facts.Post{Scope: "c", OpID: "1", Author: "a"}); !errors.Is(err, facts.ErrUnavailable) && !errors.Is(err, facts.ErrNotFound) {
		t.Errorf("post: %v", err)
	}
	if _, err := eng.Workspaces(ctx); !errors.Is(err, facts.ErrUnavailable) {
		t.Errorf("workspaces: %v", err)
	}
	if _, err := tidemark.Open(ctx, tidemark.Options{Snapshots: &tidemark.Snapshots{Store: "sqlite:" + path}}); !errors.Is(err, facts.ErrNotOwner) {
		t.Errorf("a second owner of the snapshots: %v", err)
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	eng, ws = openSnapshots(t, path)
	row, err := ws.Row(ctx, "b", "c")
	if err != nil || row.Values.Unread != 1 || row.State != unread.SnapshotServing {
		t.Errorf("%+v %s %v", row.Values, row.State, err)
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
}

// What the environment sets reaches the memory of an embedded engine; what the program sets goes
// before.
// covers: RT-442
func TestSnapshotBudgets(t *testing.T) {
	set := map[string]string{
		"HYDRATE_BATCH_SIZE": "7", "HYDRATE_RETRY": "9s", "MAX_BYTES": "64MiB", "MAX_QUEUED_EVENTS": "11",
		"MAX_ENTRIES": "12",
	}
	opts := tidemark.Options{Snapshots: &tidemark.Snapshots{
		Store: "sqlite:" + filepath.Join(t.TempDir(), "snap.db"),
	}}
	if err := opts.Snapshots.Intake.FromEnv(func(name string) (string, bool) {
		text, ok := set[strings.TrimPrefix(name, intake.EnvPrefix)]
		return text, ok
	}); err != nil {
		t.Fatal(err)
	}
	opts.Runtime.MaxEntries = 99
	eng, err := tidemark.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	b := eng.Intake().Stats().Budgets
	if b.Runtime.HydratePageSize != 7 || b.Runtime.HydrateRetry != 9*time.Second ||
		b.Runtime.MaxBytes != 64<<20 || b.MaxQueuedEvents != 11 || b.Runtime.MaxEntries != 99 {
		t.Errorf("%+v", b)
	}
}

// covers: RT-445
func TestBadSnapshotOptions(t *testing.T) {
	dir := t.TempDir()
	for name, o := range map[string]tidemark.Options{
		"nowhere": {Snapshots: &tidemark.Snapshots{}},
		"both":    {Facts: "sqlite:" + dir + "/f.db", Snapshots: &tidemark.Snapshots{Store: "sqlite:" + dir + "/s.db"}},
		"no path": {Snapshots: &tidemark.Snapshots{Store: "sqlite:"}},
		"unknown": {Snapshots: &tidemark.Snapshots{Store: "redis:x"}},
		"budget": {Snapshots: &tidemark.Snapshots{
			Store: "sqlite:" + dir + "/b.db", Intake: intake.Config{MaxRoster: -1},
		}},
		"flush": {Snapshots: &tidemark.Snapshots{
			Store: "sqlite:" + dir + "/i.db", Intake: intake.Config{Flush: snapshot.Config{FlushInterval: -1}},
		}},
	} {
		if eng, err := tidemark.Open(t.Context(), o); err == nil {
			t.Errorf("%s was accepted", name)
			eng.Close()
		}
	}
	facts, err := tidemark.Open(t.Context(), tidemark.Options{Facts: "sqlite:" + dir + "/facts.db"})
	if err != nil {
		t.Fatal(err)
	}
	defer facts.Close()
	if facts.Intake() != nil || facts.Workspace("w").Tell() == nil {
		t.Error("an engine with facts takes events")
	}
}
