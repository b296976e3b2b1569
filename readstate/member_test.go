package readstate_test

import (
	"errors"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
)

func revisionOf(r readstate.Revision) *readstate.Revision { return &r }

func TestJoinRefusals(t *testing.T) {
	ground := readstate.Ground{Head: 5}
	for name, c := range map[string]readstate.JoinCommand{
		"effective from zero":            {Effective: revisionOf(0)},
		"effective two above the head":   {Effective: revisionOf(7)},
		"read above the head":            {Read: revisionOf(6)},
		"read above, effective in reach": {Effective: revisionOf(1), Read: revisionOf(6)},
	} {
		for _, exists := range []bool{false, true} {
			before := readstate.Row{Read: 2, Effective: 1, Epoch: 3}
			r := before
			res, err := r.Join(exists, ground, c)
			if !errors.Is(err, readstate.ErrFuture) || r != before || res != (readstate.JoinResult{}) {
				t.Errorf("%s: %v, %+v, %+v", name, err, res, r)
			}
		}
	}
	for name, c := range map[string]readstate.JoinCommand{
		"effective one above the head": {Effective: revisionOf(6)},
		"read to the head":             {Read: revisionOf(5)},
		"effective from one":           {Effective: revisionOf(1)},
		"read nothing":                 {Read: revisionOf(0)},
	} {
		var r readstate.Row
		if _, err := r.Join(false, ground, c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestJoinResult(t *testing.T) {
	ground := readstate.Ground{
		Head: 5, Floor: 2, SignalHead: 4, LatestActivity: 7,
		Writer: readstate.Writer{AuthorHead: 3, PrincipalHead: 2, ActorHead: 1},
	}
	shared := ground
	shared.History = readstate.HistoryShared
	later := ground
	later.ParentEpoch = 1
	in := readstate.Row{Joined: true, Visible: true, Epoch: 1, Effective: 1}
	in.Point.E = 0
	left := in
	left.Joined = false
	for _, c := range []struct {
		name    string
		row     readstate.Row
		exists  bool
		ground  readstate.Ground
		command readstate.JoinCommand
		want    readstate.JoinResult
		epoch   uint64
	}{
		{"first", readstate.Row{}, false, ground, readstate.JoinCommand{},
			readstate.JoinResult{Outcome: readstate.Applied, NewEpoch: true, To: 5}, 1},
		{"first under shared history", readstate.Row{}, false, shared, readstate.JoinCommand{},
			readstate.JoinResult{Outcome: readstate.Applied, NewEpoch: true, To: 5}, 1},
		{"first from an earlier revision", readstate.Row{}, false, ground,
			readstate.JoinCommand{Effective: revisionOf(4)},
			readstate.JoinResult{Outcome: readstate.Applied, NewEpoch: true, To: 3}, 1},
		{"first from below the floor", readstate.Row{}, false, ground,
			readstate.JoinCommand{Effective: revisionOf(1)},
			readstate.JoinResult{Outcome: readstate.Applied, NewEpoch: true, To: 2}, 1},
		{"again", in, true, ground, readstate.JoinCommand{},
			readstate.JoinResult{Outcome: readstate.Unchanged, To: 2}, 1},
		{"anew", left, true, ground, readstate.JoinCommand{},
			readstate.JoinResult{Outcome: readstate.Applied, NewEpoch: true, To: 5}, 2},
		{"back to shared history", left, true, shared, readstate.JoinCommand{},
			readstate.JoinResult{Outcome: readstate.Applied, To: 2}, 1},
		{"in another epoch of the parent", in, true, later, readstate.JoinCommand{},
			readstate.JoinResult{Outcome: readstate.Applied, NewEpoch: true, To: 5}, 2},
	} {
		r := c.row
		got, err := r.Join(c.exists, c.ground, c.command)
		if err != nil || got != c.want || r.Epoch != c.epoch || !r.Joined || !r.Visible {
			t.Errorf("%s: %v, %+v, %+v", c.name, err, got, r)
		}
		if !c.want.NewEpoch {
			continue
		}
		activity := readstate.ActivityPoint{Read: 7, SignalAt: 4, ActorAt: 1}
		point := readstate.Point{E: 5, AuthorRank: 3, PrincipalRank: 2}
		if r.Activity != activity || r.Point != point || r.ParentEpoch != c.ground.ParentEpoch {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

func TestFollowsByItself(t *testing.T) {
	for _, c := range []struct {
		name   string
		row    readstate.Row
		exists bool
		want   bool
	}{
		{"no row", readstate.Row{}, false, true},
		{"no row, whatever it holds", readstate.Row{Joined: true, ParentEpoch: 2, Follow: readstate.FollowStopped},
			false, true},
		{"of the present epoch", readstate.Row{Joined: true, ParentEpoch: 2}, true, false},
		{"of an older epoch", readstate.Row{Joined: true, ParentEpoch: 1}, true, true},
		{"left", readstate.Row{ParentEpoch: 2}, true, true},
		{"stopped", readstate.Row{Joined: true, ParentEpoch: 1, Follow: readstate.FollowStopped}, true, false},
		{"explicit, older epoch",
			readstate.Row{Joined: true, ParentEpoch: 1, Follow: readstate.FollowExplicit}, true, true},
	} {
		if got := c.row.FollowsByItself(c.exists, 2); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// A watch is a choice and nothing else: it changes no level.
func TestWatchKeepsTheRest(t *testing.T) {
	before := readstate.Row{
		Joined: true, Visible: true, Effective: 3, Read: 4,
		Notification: readstate.Notification{Level: readstate.LevelNone, Until: 9},
	}
	r, want := before, before
	for _, watching := range []bool{true, false, true} {
		want.Follow = readstate.FollowStopped
		if watching {
			want.Follow = readstate.FollowExplicit
		}
		if out := r.Watch(watching); out != readstate.Applied || r != want {
			t.Errorf("watch %t: %s, %+v", watching, out, r)
		}
		if out := r.Watch(watching); out != readstate.Unchanged || r != want {
			t.Errorf("watch %t again: %s, %+v", watching, out, r)
		}
	}
}

func TestLeaveAndFollowKeepTheRest(t *testing.T) {
	before := readstate.Row{
		Joined: true, Visible: true, Epoch: 2, Effective: 3, Read: 4,
		Manual: readstate.Manual{Set: true, From: 4, Version: 1},
		Point:  readstate.Point{E: 3, Direct: 2}, Activity: readstate.ActivityPoint{Read: 1},
	}
	r, want := before, before
	want.Joined = false
	if out := r.Leave(); out != readstate.Applied || r != want {
		t.Errorf("leave: %s, %+v", out, r)
	}
	if out := r.Leave(); out != readstate.Unchanged || r != want {
		t.Errorf("leave again: %s, %+v", out, r)
	}
	for _, following := range []bool{true, false} {
		r, want = before, before
		r.Notification = readstate.Notification{Level: readstate.LevelNone, Until: 9}
		want.Follow = readstate.FollowStopped
		want.Level = readstate.LevelMentions
		if following {
			want.Follow, want.Level = readstate.FollowExplicit, readstate.LevelAll
		}
		if out := r.SetFollow(following); out != readstate.Applied || r != want {
			t.Errorf("follow %t: %s, %+v", following, out, r)
		}
		if out := r.SetFollow(following); out != readstate.Unchanged || r != want {
			t.Errorf("follow %t again: %s, %+v", following, out, r)
		}
	}
}
