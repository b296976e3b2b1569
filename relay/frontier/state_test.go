package frontier

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// few keys, so that states meet.
var keys = rapid.SampledFrom([]Key{
	"general", "dev", ThreadKey(id(1)), ThreadKey(id(2)), MessageKey(id(3)), ActivityKey("general"),
	ThreadActivityKey(id(1)), "ov_s:x", "esc:x", "esc:esc:x", "__proto__", "future:kind", "ä\u2028\"\\",
})

var times = rapid.OneOf(rapid.Map(rapid.Uint32Range(0, 5), func(n uint32) Time { return Time(n) }),
	rapid.Just(MaxTime), rapid.Map(rapid.Uint32(), func(n uint32) Time { return Time(n) }))

var registers = rapid.Custom(func(t *rapid.T) Register {
	count := rapid.OneOf(rapid.Uint32Range(0, 3), rapid.Just(uint32(maxCount)))
	return Register{Set: count.Draw(t, "set"), Clear: count.Draw(t, "clear"), Baseline: times.Draw(t, "baseline")}
})

var states = rapid.Custom(func(t *rapid.T) State {
	s := State{
		Frontiers: rapid.MapOfN(keys, times, 0, 8).Draw(t, "frontiers"),
		Overrides: rapid.MapOfN(keys, registers, 0, 4).Draw(t, "overrides"),
	}
	delete(s.Overrides, "")
	for k, r := range s.Overrides {
		if r == (Register{}) {
			delete(s.Overrides, k)
		}
	}
	return s
})

// id is the id of an event.
func id(n int) string { return fmt.Sprintf("%064x", n) }

func join(t interface{ Fatal(...any) }, a, b State) State {
	joined, err := Join(a, b)
	if err != nil {
		t.Fatal(err)
	}
	return joined
}

// Order, grouping and repetition of what arrives do not matter, and nothing is ever lowered.
// covers: RL-425, RL-567
func TestJoinLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := states.Draw(t, "a"), states.Draw(t, "b"), states.Draw(t, "c")
		if !join(t, a, b).Equal(join(t, b, a)) {
			t.Error("the order matters")
		}
		if !join(t, join(t, a, b), c).Equal(join(t, a, join(t, b, c))) {
			t.Error("the grouping matters")
		}
		if !join(t, a, a).Equal(a) || !join(t, a, State{}).Equal(a) {
			t.Error("repetition matters")
		}
		joined := join(t, a, b)
		if !joined.Covers(a) || !joined.Covers(b) {
			t.Error("something was lowered or lost")
		}
		if a.Covers(b) != join(t, a, b).Equal(a) {
			t.Error("what covers is not what a join leaves as it is")
		}
		for k, f := range a.Frontiers {
			if joined.Frontiers[k] < f {
				t.Errorf("%q fell from %d to %d", k, f, joined.Frontiers[k])
			}
		}
	})
}

// A copy shares nothing with what it was copied from.
func TestJoinShares(t *testing.T) {
	a := State{Frontiers: map[Key]Time{"a": 1}, Overrides: map[Key]Register{"a": {Set: 1}}}
	b := join(t, a, State{})
	if _, err := b.Advance("a", 5); err != nil {
		t.Fatal(err)
	}
	b.Overrides["a"] = Register{Set: 9}
	if a.Frontiers["a"] != 1 || a.Overrides["a"].Set != 1 {
		t.Errorf("changed: %+v", a)
	}
}

// Unknown is not zero.
func TestUnknownIsNotZero(t *testing.T) {
	s := State{Frontiers: map[Key]Time{"zero": 0}}
	if _, known := s.Effective("none", Home{}); known {
		t.Error("a missing frontier is known")
	}
	if f, known := s.Effective("zero", Home{}); !known || f != 0 {
		t.Error("a frontier of zero is not known")
	}
	if (State{}).Covers(s) || (State{}).Equal(s) {
		t.Error("nothing covers a frontier of zero")
	}
}

// What a context belongs to reads it as well, where that is known. Reading a part leaves the whole and
// the other parts. Catch-up keys take no part.
// covers: RL-079, RL-080, RL-157, RL-537
func TestEffective(t *testing.T) {
	thread, other := ThreadKey(id(1)), ThreadKey(id(2))
	home := Home{Channel: "c", Root: id(1)}
	s := State{Frontiers: map[Key]Time{
		"c": 10, thread: 20, ThreadKey(id(9)): 50, MessageKey(id(7)): 30, ActivityKey("c"): 90, ThreadActivityKey(id(1)): 90,
	}}
	for _, c := range []struct {
		key  Key
		home Home
		want Time
	}{
		{"c", Home{}, 10},
		{thread, Home{Channel: "c"}, 20},
		{other, Home{Channel: "c"}, 10},
		{thread, Home{Channel: "c", Root: id(9)}, 20}, // a thread is in no thread
		{MessageKey(id(7)), home, 30},
		{MessageKey(id(8)), home, 20},
		{MessageKey(id(8)), Home{Channel: "c"}, 10},
		{MessageKey(id(7)), Home{}, 30},
	} {
		if got, known := s.Effective(c.key, c.home); !known || got != c.want {
			t.Errorf("%s at %+v: %d %v, want %d", c.key, c.home, got, known, c.want)
		}
	}
	for k, h := range map[Key]Home{MessageKey(id(8)): {}, other: {}, "d": {}, "opaque:x": {Channel: "c"}} {
		if got, known := s.Effective(k, h); known {
			t.Errorf("%s at %+v is known: %d", k, h, got)
		}
	}
}

// Frontiers only rise, and not beyond what a blob can hold.
// covers: RL-424, RL-560
func TestAdvance(t *testing.T) {
	var s State
	for i, c := range []struct {
		to   Time
		want bool
	}{{5, true}, {5, false}, {4, false}, {0, false}, {6, true}, {MaxTime, true}, {1, false}} {
		changed, err := s.Advance("c", c.to)
		if err != nil || changed != c.want {
			t.Errorf("step %d: %v, %v", i, changed, err)
		}
	}
	for _, bad := range []Key{"", Key(make([]byte, MaxKey+1)), "\xff", "ov_" + Key(make([]byte, MaxKey-6))} {
		if _, err := s.Advance(bad, 1); !errors.Is(err, ErrKey) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for i := 1; i < MaxKeys; i++ {
		if _, err := s.Advance(Key(fmt.Sprint("k", i)), 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Advance("one more", 1); !errors.Is(err, ErrCapacity) {
		t.Errorf("key %d: %v", MaxKeys+1, err)
	}
	if changed, err := s.Advance("k1", 2); !changed || err != nil {
		t.Errorf("a key that is there: %v, %v", changed, err)
	}
	if _, err := Join(s, State{Frontiers: map[Key]Time{"one more": 1}}); !errors.Is(err, ErrCapacity) {
		t.Errorf("a join of %d keys: %v", MaxKeys+1, err)
	}
	if _, err := Join(s, State{Frontiers: map[Key]Time{"k1": 9}}); err != nil {
		t.Errorf("a join of %d keys: %v", MaxKeys, err)
	}
}

// Keys have exactly these forms, and what they name is read from the key alone where it can be.
// covers: RL-023, RL-024
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		key     Key
		text    string
		scope   Scope
		event   string
		channel string
	}{
		{ChannelKey("general"), "general", Channel, "", "general"},
		{ThreadKey(id(1)), "thread:" + id(1), Thread, id(1), ""},
		{MessageKey(id(1)), "msg:" + id(1), Other, id(1), ""},
		{ActivityKey("general"), "activity:general", CatchUp, "", "general"},
		{ThreadActivityKey(id(1)), "thread-activity:" + id(1), CatchUp, id(1), ""},
		{"thread:x", "thread:x", Other, "", ""},
		{Key("msg:" + id(1) + "0"), "msg:" + id(1) + "0", Other, "", ""},
		{"msg:" + Key(id(10)[:63]) + "A", "msg:" + id(10)[:63] + "A", Other, "", ""},
	} {
		if string(c.key) != c.text || c.key.Scope() != c.scope || c.key.Event() != c.event ||
			c.key.ChannelOf() != c.channel {
			t.Errorf("%q: scope %d, event %q, channel %q", c.key, c.key.Scope(), c.key.Event(), c.key.ChannelOf())
		}
	}
}
