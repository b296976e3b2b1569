package model

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

func randomBytes(rng *rand.Rand, n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(rng.IntN(256))
	}
	return data
}

func TestHistoriesAreDeterministic(t *testing.T) {
	for seed := range uint64(20) {
		a := RandomOps(seeded(seed), 60, FullMix())
		b := RandomOps(seeded(seed), 60, FullMix())
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("seed %d: two histories", seed)
		}
		data := randomBytes(seeded(seed), 300)
		if !reflect.DeepEqual(DecodeOps(data), DecodeOps(data)) {
			t.Fatalf("seed %d: two decoded histories", seed)
		}
		if x, y := play(t, a), play(t, a); !reflect.DeepEqual(x, y) {
			t.Fatalf("seed %d: two worlds", seed)
		}
	}
}

func play(t *testing.T, ops []Op) *World {
	t.Helper()
	w := New()
	for _, op := range ops {
		_, _ = w.Apply(op)
	}
	return w
}

func TestMixWeights(t *testing.T) {
	for name, mix := range map[string]Mix{"full": FullMix(), "facts": FactsMix(), "hub": HubMix()} {
		sum := 0
		for _, w := range mix.Weights {
			sum += w
		}
		if sum == 0 || sum > 256 {
			t.Errorf("%s: weights sum up to %d; a byte cannot choose among them", name, sum)
		}
	}
}

func TestHubMixHasNoOtherParts(t *testing.T) {
	for seed := range uint64(50) {
		for _, op := range RandomOps(seeded(seed), 100, HubMix()) {
			switch op.Kind {
			case OpActivity, OpActivityRead, OpRunState, OpMerge, OpFork:
				t.Fatalf("seed %d: %s", seed, op)
			case OpCreate:
				if op.Type == Task || op.Type == Session {
					t.Fatalf("seed %d: %s", seed, op)
				}
			}
		}
	}
}

// Nobody tells a task who its recipients are. Yet somebody is told: as a watcher, as an assignee, by
// name, and by activities. Sessions run, are merged and forked.
func TestFactsMix(t *testing.T) {
	var messages, named, activities, reads int
	sessions := map[Kind]int{}
	for seed := range uint64(150) {
		w := New()
		for _, op := range RandomOps(seeded(seed), 100, FactsMix()) {
			switch op.Kind {
			case OpRunState, OpMerge, OpFork:
				sessions[op.Kind]++
			case OpPost, OpActivity, OpMove:
				if op.Recipients != nil {
					t.Fatalf("seed %d: %s", seed, op)
				}
			case OpCreate:
				if op.Type == Task && !op.Planned {
					t.Fatalf("seed %d: %s", seed, op)
				}
			}
			before := w.Clone()
			_, _ = w.Apply(op)
			for m := range before.scopes[8].rowsOf() {
				was, is := before.Values(m, 8), w.Values(m, 8)
				reads += int(boolInt(op.Kind == OpRead && is.Activity < was.Activity))
			}
		}
		for _, e := range w.Entries(8) {
			for _, m := range e.Recipients {
				messages++
				named += int(boolInt(slices.Contains(e.Mentions, m)))
			}
		}
		for _, a := range w.Activities(8) {
			activities += len(a.Recipients)
		}
	}
	if len(sessions) != 3 {
		t.Errorf("of sessions there is only %v", sessions)
	}
	t.Logf("%d deliveries of messages, %d by name, %d of activities, %d read by message",
		messages, named, activities, reads)
	if named < 50 || messages < 2*named || activities < 100 || reads < 15 {
		t.Error("too few of something")
	}
}

func (s *scope) rowsOf() map[MemberID]*row {
	if s == nil {
		return nil
	}
	return s.rows
}

// TestHistoriesHitRareCases counts, over histories of the size that property tests
// use, how often each of the cases really happens to somebody.
func TestHistoriesHitRareCases(t *testing.T) {
	sources := map[string]func(seed uint64) []Op{
		"random": func(seed uint64) []Op { return RandomOps(seeded(seed), 80, FullMix()) },
		"bytes":  func(seed uint64) []Op { return DecodeOps(randomBytes(seeded(seed), 80*recordSize)) },
	}
	for name, source := range sources {
		hits := map[string]int{}
		applied, refused := 0, 0
		for seed := range uint64(150) {
			w := New()
			for _, op := range source(seed) {
				before := w.Clone()
				if _, err := w.Apply(op); err != nil {
					refused++
					continue
				}
				applied++
				rareCases(before, w, op, hits)
			}
		}
		for _, want := range []string{
			"edit newly names", "edit to everyone at mentions", "run ends", "unblock",
			"first writer blocked", "dm at mentions", "manual left without messages",
			"shared rejoin", "thread epoch renewed", "merge with unread", "level ended",
			"expired", "trimmed unread", "broadcast", "broadcast twin removed", "counted move",
			"task delivery", "version-less clear", "root removed",
		} {
			if hits[want] < 20 {
				t.Errorf("%s: %q happened %d times in 150 histories", name, want, hits[want])
			}
		}
		if refused*4 > applied {
			t.Errorf("%s: %d of %d operations refused", name, refused, applied+refused)
		}
		t.Logf("%s: applied %d refused %d %v", name, applied, refused, hits)
	}
}

// rareCases counts what the operation made happen.
func rareCases(before, after *World, op Op, hits map[string]int) {
	hit := func(name string, ok bool) {
		if ok {
			hits[name]++
		}
	}
	for _, m := range after.MemberIDs() {
		for _, id := range after.ScopeIDs() {
			b, a := before.Values(m, id), after.Values(m, id)
			here := op.Scope == id
			more := a.Attention > b.Attention
			switch op.Kind {
			case OpEdit:
				hit("edit newly names", here && more && slices.Contains(op.Mentions, m))
				hit("edit to everyone at mentions", here && more && op.Everyone && a.Level == Mentions)
			case OpRunState:
				hit("run ends", here && a.ShownUnread > b.ShownUnread)
			case OpUnblock:
				hit("unblock", a.Unread > b.Unread)
			case OpPost:
				s := before.scopes[id]
				first := here && !slices.ContainsFunc(s.entries,
					func(e *entry) bool { return e.author == op.Member })
				hit("first writer blocked", first && a.Exists && before.blocks[m][op.Member])
				hit("dm at mentions", here && s.kind == DM && a.Level == Mentions && a.Unread > b.Unread)
				hit("broadcast", !here && a.Unread > b.Unread)
				hit("task delivery", here && s.kind == Task && a.Unread > b.Unread)
				hit("thread epoch renewed", here && s.kind == Thread && epochs(after, m, id) > 1 &&
					epochs(after, m, id) > epochs(before, m, id))
			case OpRemove:
				hit("manual left without messages", here && a.Manual && a.ManualFrom > 0 &&
					a.Unread == 0 && b.Unread > 0)
				hit("broadcast twin removed", !here && a.Unread < b.Unread)
				hit("root removed", !here && a.Archived && !b.Archived)
			case OpJoin:
				hit("shared rejoin", here && a.Present && !b.Present && b.Exists && a.Unread > 0)
			case OpMerge:
				hit("merge with unread", op.To == id && a.Unread > b.Unread)
			case OpAdvanceClock, OpExpire:
				hit("level ended", a.Level != b.Level)
				hit("expired", a.Unread < b.Unread)
			case OpTrim:
				hit("trimmed unread", here && a.Unread < b.Unread)
			case OpMove:
				hit("counted move", op.To == id && a.Unread > b.Unread)
			case OpRead:
				hit("version-less clear", here && op.Version == NoVersion && b.Manual && !a.Manual)
			}
		}
	}
}

func epochs(w *World, m MemberID, s ScopeID) int {
	r, _ := w.Row(m, s)
	return r.Epoch
}
