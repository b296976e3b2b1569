package frontier

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func nowhere(Key) Home { return Home{} }

// A mark is active until it is cleared or read beyond; a clear as late as the mark wins.
// covers: RL-463, RL-534
func TestRegisterActive(t *testing.T) {
	for _, c := range []struct {
		r    Register
		f    Time
		want bool
	}{
		{Register{}, 0, false},
		{Register{Set: 1, Baseline: 10}, 10, true},
		{Register{Set: 1, Baseline: 10}, 11, false},
		{Register{Set: 1, Clear: 1, Baseline: 10}, 10, false},
		{Register{Set: 3, Clear: 2, Baseline: 20}, 20, true},
		{Register{Clear: 3}, 0, false},
		{Register{Set: 1}, 0, true},
	} {
		if got := c.r.Active(c.f); got != c.want {
			t.Errorf("%+v at %d: %v", c.r, c.f, got)
		}
	}
	r, err := Register{}.MarkUnread(10)
	if err != nil || r != (Register{Set: 1, Baseline: 10}) {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err = r.MarkUnread(5); err != nil || r != (Register{Set: 2, Baseline: 10}) {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err = r.MarkRead(10); err != nil || r != (Register{Set: 2, Clear: 3, Baseline: 10}) {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := (Register{}).MarkRead(10); err != nil || r != (Register{}) {
		t.Errorf("what was never marked: %+v, %v", r, err)
	}
}

// At the end of counting a mark is refused, and a clear succeeds only if reading alone ends the mark.
func TestRegisterExhausted(t *testing.T) {
	floor := Register{Clear: maxCount}
	if r, err := floor.MarkUnread(1); !errors.Is(err, ErrExhausted) || r != floor {
		t.Errorf("%+v, %v", r, err)
	}
	live := Register{Set: maxCount, Clear: 1, Baseline: 10}
	if r, err := live.MarkRead(10); !errors.Is(err, ErrExhausted) || r != live {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := live.MarkRead(11); err != nil || r != live {
		t.Errorf("%+v, %v", r, err)
	}
}

// Two registers that are dead must not join into one that lives: what is published of them are floors.
func TestDeadRegistersStayDead(t *testing.T) {
	a := State{Frontiers: map[Key]Time{"c": 10}, Overrides: map[Key]Register{"c": {Set: 3, Clear: 1, Baseline: 5}}}
	b := State{Frontiers: map[Key]Time{"c": 10}, Overrides: map[Key]Register{"c": {Set: 1, Clear: 2, Baseline: 20}}}
	if raw := join(t, a, b); !raw.Overrides["c"].Active(10) {
		t.Fatal("the example shows nothing")
	}
	joined := join(t, a.Canonical(nowhere), b.Canonical(nowhere))
	if joined.Overrides["c"] != (Register{Clear: 3}) {
		t.Errorf("%+v", joined.Overrides["c"])
	}
	stale := State{Overrides: map[Key]Register{"c": {Set: 1, Baseline: 10}}}
	read := State{Frontiers: map[Key]Time{"c": 11}, Overrides: stale.Overrides}.Canonical(nowhere)
	if read.Overrides["c"] != (Register{Clear: 1}) {
		t.Errorf("read beyond: %+v", read.Overrides["c"])
	}
	if again := join(t, State{Overrides: read.Overrides}, stale); again.Overrides["c"].Active(10) {
		t.Error("an old copy brought the mark back")
	}
	if lost := join(t, State{}, stale); !lost.Overrides["c"].Active(10) {
		t.Error("without the floor it should come back; floors would not be needed")
	}
}

// Being canonical changes no verdict, and is done once.
func TestCanonicalLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := states.Draw(t, "s")
		c := s.Canonical(nowhere)
		if !c.Canonical(nowhere).Equal(c) {
			t.Error("it is not done once")
		}
		for k, r := range s.Overrides {
			f, _ := s.Effective(k, Home{})
			if got := c.Overrides[k]; got.Active(f) != r.Active(f) || max(got.Set, got.Clear) != max(r.Set, r.Clear) {
				t.Errorf("%q: %+v became %+v", k, r, got)
			}
		}
	})
}
