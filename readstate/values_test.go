package readstate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
)

// TestNegativeIsAnError gives each formula a state that contradicts itself: the error names the
// term, and no count is made up.
//
// covers: RT-041
func TestNegativeIsAnError(t *testing.T) {
	for _, c := range []struct {
		term  string
		terms readstate.Terms
	}{
		{"own", readstate.Terms{Type: readstate.Channel, Head: 5,
			Writer: readstate.Writer{AuthorHead: 1}, Point: readstate.Point{AuthorRank: 1, OwnRemoved: 1}}},
		{"own", readstate.Terms{Type: readstate.Channel, Head: 5,
			Writer: readstate.Writer{PrincipalHead: 1}, Point: readstate.Point{PrincipalRank: 2}}},
		{"unread", readstate.Terms{Type: readstate.Channel, Head: 5, Removed: 6}},
		{"unread", readstate.Terms{Type: readstate.Channel, Head: 5, Point: readstate.Point{E: 6}}},
		{"unread", readstate.Terms{Type: readstate.Channel, Head: 5, Floor: 6}},
		{"unread", readstate.Terms{Type: readstate.Channel, Head: 1, Writer: readstate.Writer{AuthorHead: 2}}},
		{"unread", readstate.Terms{Type: readstate.Task, Point: readstate.Point{Targets: 1},
			Blocked: []readstate.Pair{{Targets: 1}, {Targets: 1}}}},
		{"unread", readstate.Terms{Type: readstate.Session, Head: 1,
			Blocked: []readstate.Pair{{AuthorHead: 2}}}},
		{"blocked", readstate.Terms{Type: readstate.Channel, Head: 5,
			Blocked: []readstate.Pair{{AuthorHead: 1, AuthorAt: 1, Overlap: 1}}}},
		{"blocked", readstate.Terms{Type: readstate.Channel, Head: 5,
			Blocked: []readstate.Pair{{AuthorHead: 1, Removed: 2}}}},
		{"attention", readstate.Terms{Type: readstate.Channel, Head: 5, Point: readstate.Point{OwnEveryone: 1}}},
		{"attention", readstate.Terms{Type: readstate.Channel, Head: 5, Everyone: 1,
			Blocked: []readstate.Pair{{AuthorHead: 2, Direct: 1, Everyone: 1}}}},
		{"activity", readstate.Terms{Type: readstate.Channel, SignalHead: 2,
			Activity: readstate.ActivityPoint{SignalAt: 3}}},
		{"activity", readstate.Terms{Type: readstate.Channel, Writer: readstate.Writer{ActorHead: 1}}},
		{"activity", readstate.Terms{Type: readstate.Channel, Blocked: []readstate.Pair{{ActorHead: 1}}}},
		{"blocked activity", readstate.Terms{Type: readstate.Channel, SignalHead: 9,
			Blocked: []readstate.Pair{{ActorHead: 1, ActorAt: 2}}}},
		{"activity", readstate.Terms{Type: readstate.Task, Activity: readstate.ActivityPoint{Targets: 1},
			Blocked: []readstate.Pair{{ActivityTargets: 2}}}},
	} {
		v, err := c.terms.Values()
		if !errors.Is(err, readstate.ErrNegative) || !strings.Contains(err.Error(), ": "+c.term+" = ") {
			t.Errorf("%s of %+v: %v", c.term, c.terms, err)
		}
		if v != (readstate.Values{}) {
			t.Errorf("%s: made up %+v", c.term, v)
		}
	}
}

// TestCountersBelowZero takes back what was never counted. The sums may come out right by
// wrapping around; the counter is wrong all the same.
func TestCountersBelowZero(t *testing.T) {
	named := readstate.Role{Named: true, Recipient: true}
	own := readstate.Role{Author: true}
	everyone := readstate.Message{Revision: 3, Everyone: true}
	plain := readstate.Message{Revision: 3}
	for name, spoil := range map[string]func(*readstate.Terms){
		"direct":  func(x *readstate.Terms) { x.Point.Remove(x.Type, 0, plain, named) },
		"targets": func(x *readstate.Terms) { x.Type = readstate.Task; x.Point.Remove(x.Type, 0, plain, named) },
		"own everyone": func(x *readstate.Terms) {
			x.Point.Remove(x.Type, 0, everyone, own)
		},
		"own removed": func(x *readstate.Terms) { x.Point.OwnRemoved-- },
		"pair, direct": func(x *readstate.Terms) {
			x.Blocked[0].Edit(x.Type, true, plain, plain, named, readstate.Role{})
		},
		"pair, everyone": func(x *readstate.Terms) { x.Blocked[0].Remove(x.Type, true, everyone, named) },
		"pair, overlap": func(x *readstate.Terms) {
			x.Blocked[0].Remove(x.Type, true, plain, readstate.Role{Principal: true})
		},
		"pair, targets": func(x *readstate.Terms) {
			x.Type = readstate.Task
			x.Blocked[0].Remove(x.Type, true, plain, named)
		},
		"pair, removed": func(x *readstate.Terms) { x.Blocked[0].Removed-- },
	} {
		terms := readstate.Terms{
			Type: readstate.Channel, Head: 9, Everyone: 5,
			Writer: readstate.Writer{AuthorHead: 3}, Point: readstate.Point{E: 1, AuthorRank: 1},
			Blocked: []readstate.Pair{{AuthorHead: 4, AuthorAt: 1}},
		}
		if _, err := terms.Values(); err != nil {
			t.Fatal(err)
		}
		spoil(&terms)
		if v, err := terms.Values(); !errors.Is(err, readstate.ErrNegative) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
}

// TestLargestCounter keeps the largest number that clients can hold apart from a broken one.
func TestLargestCounter(t *testing.T) {
	terms := readstate.Terms{Type: readstate.Channel, Point: readstate.Point{Direct: readstate.MaxCounter}}
	v, err := terms.Values()
	if err != nil || v.Attention != readstate.MaxCounter {
		t.Errorf("%+v, %v", v, err)
	}
	terms.Point.Direct++
	if _, err = terms.Values(); !errors.Is(err, readstate.ErrNegative) {
		t.Errorf("one more: %v", err)
	}
}

// TestPresent says what every standing shows.
//
// covers: RT-044, RT-155
func TestPresent(t *testing.T) {
	for i := range 1 << 7 {
		bit := func(n int) bool { return i&(1<<n) != 0 }
		v := readstate.Values{}
		if bit(0) {
			v.Unread, v.Attention = 5, 2
		}
		if bit(1) {
			v.Activity = 3
		}
		s := readstate.Standing{Manual: bit(2), Busy: bit(3)}
		s.Level = []readstate.Level{readstate.LevelAll, readstate.LevelMentions, readstate.LevelNone}[i>>4&3%3]
		counts := bit(6)

		want := readstate.Presented{Counts: counts}
		if counts {
			switch {
			case s.Busy || s.Level == readstate.LevelNone:
			case s.Level == readstate.LevelMentions:
				want.Unread = v.Attention
			default:
				want.Unread = v.Unread
			}
			signal := v.Activity > 0 && s.Level == readstate.LevelAll
			want.Shown = want.Unread > 0 || signal || s.Manual && s.Level != readstate.LevelNone
			if want.Shown {
				want.Attention = v.Attention
			}
		}
		if got := s.Present(counts, v); got != want {
			t.Errorf("%+v of %+v, counts %t: %+v, not %+v", s, v, counts, got, want)
		}
	}
}

// covers: RT-046
func TestCounts(t *testing.T) {
	whole := readstate.Standing{Joined: true, Visible: true}
	spoilt := map[string]readstate.Standing{
		"left": {Visible: true}, "invisible": {Joined: true},
		"archived": {Joined: true, Visible: true, Archived: true},
	}
	if !whole.Counts(nil, false) || !whole.Counts(&whole, true) {
		t.Error("a whole row does not count")
	}
	if whole.Counts(&whole, false) {
		t.Error("a row of another epoch counts")
	}
	for name, s := range spoilt {
		switch {
		case s.Counts(nil, true), s.Counts(&whole, true):
			t.Errorf("counts although %s", name)
		case whole.Counts(&s, true):
			t.Errorf("counts although the parent is %s", name)
		}
	}
}

func TestBadge(t *testing.T) {
	shown := readstate.Presented{Counts: true, Shown: true, Unread: 3, Attention: 2}
	dot := readstate.Presented{Counts: true, Shown: true}
	hidden := readstate.Presented{Counts: true, Unread: 9, Attention: 9}
	var b readstate.Badge
	for _, p := range []readstate.Presented{shown, dot, hidden, shown} {
		b.Add(p)
	}
	if want := (readstate.Badge{Messages: 6, Conversations: 3, Attention: 4}); b != want {
		t.Errorf("sum %+v", b)
	}
	b.Remove(hidden)
	b.Remove(shown)
	if want := (readstate.Badge{Messages: 3, Conversations: 2, Attention: 2}); b != want {
		t.Errorf("less one %+v", b)
	}
	b.Remove(dot)
	b.Remove(shown)
	if b != (readstate.Badge{}) {
		t.Errorf("less all %+v", b)
	}
}
