package frontier

import (
	"errors"
	"testing"
)

// A reading holds until it is disposed of, its channel is revoked, everything is cleared, or a mark is
// made on what it reads. Nothing brings it back.
func TestLeases(t *testing.T) {
	var l Leases
	open := func(channel, root string, at uint64) LeaseID {
		t.Helper()
		id, err := l.Open(channel, root, at)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	holds := func(id LeaseID, manual map[Key]uint64) bool {
		_, err := l.Check(id, manual)
		if err != nil && !errors.Is(err, ErrExpired) {
			t.Fatal(err)
		}
		return err == nil
	}
	one, two, other := open("c", "", 5), open("c", id(1), 5), open("d", "", 5)
	if lease, err := l.Check(two, nil); err != nil || lease != (Lease{Channel: "c", Root: id(1), At: 5}) {
		t.Errorf("%+v, %v", lease, err)
	}
	for name, c := range map[string]struct {
		manual          map[Key]uint64
		one, two, other bool
	}{
		"no marks":           {nil, true, true, true},
		"older marks":        {map[Key]uint64{"c": 5, ThreadKey(id(1)): 4}, true, true, true},
		"on the channel":     {map[Key]uint64{"c": 6}, false, false, true},
		"on the thread":      {map[Key]uint64{ThreadKey(id(1)): 6}, true, false, true},
		"on another thread":  {map[Key]uint64{ThreadKey(id(2)): 6}, true, true, true},
		"on another channel": {map[Key]uint64{"d": 6}, true, true, false},
	} {
		if holds(one, c.manual) != c.one || holds(two, c.manual) != c.two || holds(other, c.manual) != c.other {
			t.Errorf("%s: %v %v %v", name, holds(one, c.manual), holds(two, c.manual), holds(other, c.manual))
		}
	}
	l.Dispose(one)
	l.Dispose(one)
	if holds(one, nil) || !holds(two, nil) {
		t.Error("disposing of one")
	}
	l.Revoke("c")
	again := open("c", id(1), 5)
	if holds(two, nil) || !holds(other, nil) || !holds(again, nil) {
		t.Error("revoking a channel")
	}
	l.Clear()
	if holds(other, nil) || holds(again, nil) || holds(0, nil) {
		t.Error("clearing everything")
	}
	var last LeaseID
	for range MaxLeases {
		last = open("c", "", 0)
	}
	if _, err := l.Open("c", "", 0); !errors.Is(err, ErrLeases) {
		t.Errorf("one too many: %v", err)
	}
	l.Dispose(last)
	if next := open("c", "", 0); next == last {
		t.Error("an id was given out twice")
	}
}
