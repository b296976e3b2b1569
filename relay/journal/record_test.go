package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark/relay/frontier"
	"github.com/tidemark-im/tidemark/relay/nostrx"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		runChild()
		return
	}
	goleak.VerifyTestMain(m)
}

func keyOf(t testing.TB, n int) *nostrx.Key {
	t.Helper()
	key, err := nostrx.ParseKey(fmt.Sprintf("%064x", n))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// id is the id of an event.
func id(n int) string { return fmt.Sprintf("%064x", n) }

// openAt opens a journal at a path, without syncing: the tests end with their files.
func openAt(t testing.TB, path string, onStep func(string)) *Journal {
	t.Helper()
	j, err := Open(t.Context(), path, Options{NoSync: true, OnStep: onStep})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func open(t testing.TB) *Journal {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "journal.db"), nil)
}

// mine is the partition of the key 1 in a scope.
func mine(t testing.TB, scope string) Partition {
	t.Helper()
	return Partition{Scope: scope, Viewer: keyOf(t, 1).Public()}
}

// advancing is a decision to raise frontiers.
func advancing(pairs ...any) func(Record) (frontier.Plan, error) {
	p := frontier.Plan{Advance: make(map[Key]Time)}
	for i := 0; i < len(pairs); i += 2 {
		switch k := pairs[i].(type) {
		case string:
			p.Advance[Key(k)] = Time(pairs[i+1].(int))
		case Key:
			p.Advance[k] = Time(pairs[i+1].(int))
		}
	}
	return func(Record) (frontier.Plan, error) { return p, nil }
}

func act(t testing.TB, b *Book, pairs ...any) Record {
	t.Helper()
	r, err := b.Act(t.Context(), Evidence{}, advancing(pairs...))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What is saved is there again after everything was closed: frontiers, marks, order and identity.
// covers: RL-328, RL-423, RL-428, RL-430
func TestSaved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openAt(t, path, nil)
	b := j.Book(mine(t, "relay"))
	act(t, b, "general", 10, MessageKey(7), 5)
	act(t, b, "dev", 3)
	before, err := b.MarkUnread(t.Context(), "general")
	if err != nil {
		t.Fatal(err)
	}
	after, err := openAt(t, path, nil).Book(mine(t, "relay")).Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, after, before)
	if after.State.Frontiers["general"] != 10 || after.Manual["general"] != 3 || after.Recent["general"] != 1 ||
		after.Recent["dev"] != 2 {
		t.Errorf("%+v", after)
	}
	other, err := j.Book(mine(t, "another relay")).Load(t.Context())
	if err != nil || other.Slot == after.Slot || other.ClientID == after.ClientID || len(other.State.Frontiers) > 0 {
		t.Errorf("%v, %+v", err, other)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read it: %v, %v", info.Mode(), err)
	}
}

// MessageKey is the key of the message with a number.
func MessageKey(n int) Key { return frontier.MessageKey(id(n)) }

// same compares two records by what would be stored of them.
func same(t testing.TB, got, want Record) {
	t.Helper()
	one, err1 := got.encode()
	two, err2 := want.encode()
	if err1 != nil || err2 != nil || string(one) != string(two) {
		t.Errorf("%v %v\n%s\nis not\n%s", err1, err2, one, two)
	}
}

// A refusal and a failure save nothing, and nothing is written for what changes nothing.
// covers: RL-304, RL-422, RL-426
func TestNothingSaved(t *testing.T) {
	writes := 0
	path := filepath.Join(t.TempDir(), "journal.db")
	j := openAt(t, path, func(step string) {
		if step == "write" {
			writes++
		}
	})
	b := j.Book(mine(t, "relay"))
	before := act(t, b, "general", 10)
	start := writes
	refusal := errors.New("no")
	if _, err := b.Act(t.Context(), Evidence{}, func(Record) (frontier.Plan, error) {
		return frontier.Plan{Advance: map[Key]Time{"general": 99}}, refusal
	}); !errors.Is(err, refusal) {
		t.Errorf("a refusal: %v", err)
	}
	if r := act(t, b); r.Revision != before.Revision || writes != start {
		t.Errorf("an empty plan: revision %d, %d writes", r.Revision, writes-start)
	}
	if _, err := b.Act(t.Context(), Evidence{}, advancing("", 1)); !errors.Is(err, frontier.ErrKey) {
		t.Errorf("a wrong key: %v", err)
	}
	if _, err := b.MarkUnread(t.Context(), ""); !errors.Is(err, frontier.ErrKey) {
		t.Errorf("a wrong key: %v", err)
	}
	if err := j.db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Act(t.Context(), Evidence{}, advancing("general", 99)); !errors.Is(err, ErrStorage) {
		t.Errorf("a file that is gone: %v", err)
	}
	after, err := openAt(t, path, nil).Book(mine(t, "relay")).Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, after, before)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Act(gone, Evidence{}, advancing("general", 99)); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}

// A lease is looked at inside the transaction: what ended while the save waited saves nothing.
// covers: RL-027, RL-028, RL-029, RL-564
func TestLeaseInsideTransaction(t *testing.T) {
	for name, end := range map[string]func(*Book, *frontier.Leases, frontier.LeaseID) error{
		"disposed": func(_ *Book, l *frontier.Leases, id frontier.LeaseID) error { l.Dispose(id); return nil },
		"revoked and granted again": func(_ *Book, l *frontier.Leases, _ frontier.LeaseID) error {
			l.Revoke("general")
			_, err := l.Open("general", "", 99)
			return err
		},
		"marked unread": func(b *Book, _ *frontier.Leases, _ frontier.LeaseID) error {
			_, err := b.MarkUnread(context.Background(), "general")
			return err
		},
	} {
		b := open(t).Book(mine(t, "relay"))
		before := act(t, b, "dev", 1)
		var leases frontier.Leases
		lease, err := leases.Open("general", "", before.Revision)
		if err != nil {
			t.Fatal(err)
		}
		if err := end(b, &leases, lease); err != nil {
			t.Fatal(err)
		}
		_, err = b.Act(t.Context(), Evidence{}, func(r Record) (frontier.Plan, error) {
			if _, err := leases.Check(lease, r.Manual); err != nil {
				return frontier.Plan{}, err
			}
			return frontier.Plan{Advance: map[Key]Time{"general": 10}}, nil
		})
		after, loadErr := b.Load(t.Context())
		if !errors.Is(err, frontier.ErrExpired) || loadErr != nil || after.State.Frontiers["general"] != 0 {
			t.Errorf("%s: %v, %v, %+v", name, err, loadErr, after.State)
		}
	}
}

// Windows that save at once lose nothing of each other, in one process and in several.
// covers: RL-415
func TestConcurrentSaves(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	books := []*Book{
		openAt(t, path, nil).Book(mine(t, "relay")), openAt(t, path, nil).Book(mine(t, "relay")),
	}
	const each = 20
	var saving sync.WaitGroup
	for w, b := range books {
		saving.Go(func() {
			for i := range each {
				if _, err := b.Act(context.Background(), Evidence{}, advancing(fmt.Sprintf("c%d-%d", w, i), 5)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	saving.Wait()
	r, err := books[0].Load(t.Context())
	if err != nil || len(r.State.Frontiers) != 2*each || r.Revision != 2*each {
		t.Errorf("%v, %d frontiers, revision %d", err, len(r.State.Frontiers), r.Revision)
	}
}

// Partitions are kept apart by scope and by viewer; leaving one community touches no other.
// covers: RL-411, RL-412, RL-413, RL-414, RL-515
func TestPartitions(t *testing.T) {
	j := open(t)
	var all []Partition
	for _, scope := range []string{"one", "two"} {
		for _, viewer := range []int{1, 2} {
			all = append(all, Partition{Scope: scope, Viewer: keyOf(t, viewer).Public()})
		}
	}
	before := make(map[Partition]Record)
	for i, p := range all {
		before[p] = act(t, j.Book(p), "general", 10+i)
	}
	left := all[1]
	if err := j.Leave(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		r, err := j.Book(p).Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if p == left {
			if len(r.State.Frontiers) > 0 || r.Slot == before[p].Slot {
				t.Errorf("left, and still there: %+v", r)
			}
			continue
		}
		same(t, r, before[p])
	}
}

// Local marks are saved whatever the relay can do, wake nobody, and go when they are cleared.
// covers: RL-220, RL-333, RL-535
func TestLocalMarks(t *testing.T) {
	b := open(t).Book(mine(t, "relay"))
	r, err := b.MarkUnread(t.Context(), "general")
	if err != nil || r.Waiting() || r.Manual["general"] != 1 || len(r.State.Overrides) > 0 {
		t.Fatalf("%v, %+v", err, r)
	}
	r = act(t, b, MessageKey(1), 5)
	if r.Waiting() || len(r.Own) > 0 {
		t.Errorf("the mark of a message waits to be published: %+v", r)
	}
	if r = act(t, b, "dev", 5); !r.Waiting() {
		t.Error("the mark of a channel does not wait to be published")
	}
	if r, err = b.MarkUnread(t.Context(), "dev"); err != nil || !r.Waiting() {
		t.Errorf("a local mark settled something else: %v, %+v", err, r)
	}
	r, err = b.Act(t.Context(), Evidence{}, func(Record) (frontier.Plan, error) {
		return frontier.Plan{Clear: []Key{"general"}}, nil
	})
	if err != nil || len(r.Manual) != 1 {
		t.Errorf("%v, %+v", err, r.Manual)
	}
}

// What is stored is checked as a whole. What is wrong is an error, and stays as it is.
func TestCorruptRecords(t *testing.T) {
	j := open(t)
	p := mine(t, "relay")
	act(t, j.Book(p), "general", 10)
	r := act(t, j.Book(p), MessageKey(3), 5)
	good, err := r.encode()
	if err != nil {
		t.Fatal(err)
	}
	long := make(map[Key]Time)
	for i := range MaxReserveKeys + 1 {
		long[Key(fmt.Sprint("k", i))] = 1
	}
	wide := make(map[Key]Time)
	for i := range 2300 {
		wide[Key(fmt.Sprintf("%0240d", i))] = 1
	}
	for name, change := range map[string]func(map[string]any){
		"another version":       func(m map[string]any) { m["version"] = 2 },
		"no slot":               func(m map[string]any) { delete(m, "slot") },
		"an upper-case slot":    func(m map[string]any) { m["slot"] = strings.Repeat("A", 32) },
		"a slot twice":          func(m map[string]any) { m["spill"] = []any{m["slot"]} },
		"no client":             func(m map[string]any) { m["clientId"] = "" },
		"too much accepted":     func(m map[string]any) { m["acceptedRevision"] = 9 },
		"a negative frontier":   func(m map[string]any) { m["state"].(map[string]any)["frontiers"] = map[string]any{"a": -1} },
		"an empty key":          func(m map[string]any) { m["state"].(map[string]any)["frontiers"] = map[string]any{"": 1} },
		"half a second":         func(m map[string]any) { m["state"].(map[string]any)["frontiers"] = map[string]any{"a": 1.5} },
		"a mark of the future":  func(m map[string]any) { m["localUnread"] = map[string]any{"a": 3} },
		"a mark of never":       func(m map[string]any) { m["localUnread"] = map[string]any{"a": 0} },
		"an order of nothing":   func(m map[string]any) { m["recent"] = map[string]any{"a": 1} },
		"a negative reserve":    func(m map[string]any) { m["reserve"] = map[string]any{"a": -1} },
		"an empty reserve key":  func(m map[string]any) { m["reserve"] = map[string]any{"": 1} },
		"a long reserve key":    func(m map[string]any) { m["reserve"] = map[string]any{strings.Repeat("x", 257): 1} },
		"too many reserve keys": func(m map[string]any) { m["reserve"] = long },
		"a reserve too large":   func(m map[string]any) { m["reserve"] = wide },
		"in both places":        func(m map[string]any) { m["reserve"] = map[string]any{"general": 1} },
		"a message of its own":  func(m map[string]any) { m["own"] = map[string]any{string(MessageKey(1)): 1} },
		"a home of nothing":     func(m map[string]any) { m["homes"] = map[string]any{"x": "general"} },
		"a pending nothing":     func(m map[string]any) { m["pending"] = map[string]any{"event": map[string]any{}} },
		"not even an object":    nil,
	} {
		data := []byte("[]")
		if change != nil {
			var doc map[string]any
			if err := json.Unmarshal(good, &doc); err != nil {
				t.Fatal(err)
			}
			change(doc)
			if data, err = json.Marshal(doc); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := j.db.ExecContext(t.Context(), `UPDATE read_state SET record = ?`, data); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Book(p).Load(t.Context()); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: loaded, %v", name, err)
		}
		if _, err := j.Book(p).Act(t.Context(), Evidence{}, advancing("dev", 1)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: written over, %v", name, err)
		}
		var stored []byte
		if err := j.db.QueryRowContext(t.Context(), `SELECT record FROM read_state`).Scan(&stored); err != nil ||
			string(stored) != string(data) {
			t.Errorf("%s: changed (%v)", name, err)
		}
	}
}

// A record of an older version loads as it is, and one that an older version wrote has lost what that
// does not know, and nothing else.
// covers: RL-427, RL-514, RL-527
func TestOlderRecords(t *testing.T) {
	j := open(t)
	p := mine(t, "relay")
	r := act(t, j.Book(p), "general", 10, MessageKey(3), 5)
	r.Reserve, r.Homes = map[Key]Time{"old": 1}, map[string]string{id(3): "general"}
	data, err := r.encode()
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"reserve", "homes", "spill", "carried", "own", "pending"} {
		delete(doc, name)
	}
	if data, err = json.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	old, err := decode(data, p.Viewer)
	if err != nil || !old.State.Equal(r.State) || len(old.Reserve) > 0 || len(old.Homes) > 0 {
		t.Errorf("%v, %+v", err, old)
	}
	for _, keys := range [][]Key{slices.Collect(maps.Keys(old.Own)), slices.Collect(maps.Keys(old.Reserve))} {
		if len(keys) > 0 {
			t.Errorf("%v", keys)
		}
	}
}

func FuzzDecodeRecord(f *testing.F) {
	r := newRecord()
	r.Slot, r.ClientID = strings.Repeat("a", 32), "c"
	r.Revision = 2
	r.State.Frontiers["general"], r.Recent["general"], r.Manual["general"] = 5, 1, 2
	r.Reserve["old"], r.Homes[id(1)], r.Own["general"] = 1, "general", 5
	r.Carried[r.Slot] = map[Key]Time{"general": 4}
	data, err := r.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"version":1}`))
	viewer := keyOf(f, 1).Public()
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decode(data, viewer)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("another error: %v", err)
			}
			return
		}
		again, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := decode(again, viewer)
		if err != nil {
			t.Fatalf("%v: %s", err, again)
		}
		same(t, back, r)
	})
}
