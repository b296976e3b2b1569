package readsync_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-im/tidemark/client/readsync"
)

type state = readsync.State

func permute(n int, fn func([]int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var walk func(int)
	walk = func(k int) {
		if k == n {
			fn(order)
			return
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			walk(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	walk(0)
}

// Statements of one server amount to the same in all 720 orders, and hearing one twice is nothing.
//
// covers: SE-039 SE-040 SE-041
func TestStatementsMergeInAnyOrder(t *testing.T) {
	told := []state{
		{ContentRevision: 9, ReadRevision: 7, ManualUnread: false, Version: 3},
		{ContentRevision: 10, ReadRevision: 7, ManualUnread: true, Version: 4},
		{ContentRevision: 12, ReadRevision: 10, ManualUnread: true, Version: 4},
		{ContentRevision: 12, ReadRevision: 10, ManualUnread: false, Version: 5},
		{ContentRevision: 13, ReadRevision: 12, ManualUnread: false, Version: 5},
		{ContentRevision: 13, ReadRevision: 12, ManualUnread: true, Version: 6},
	}
	want := state{ContentRevision: 13, ReadRevision: 12, ManualUnread: true, Version: 6}
	permute(len(told), func(order []int) {
		var got state
		for _, i := range order {
			got = got.Merge(told[i]).Merge(told[i])
		}
		if got != want {
			t.Fatalf("in the order %v: %v, want %v", order, got, want)
		}
	})
}

// covers: SE-042 SE-043
func TestFlagsGoByVersion(t *testing.T) {
	for _, c := range []struct{ known, told, want state }{
		{
			state{ReadRevision: 10, ManualUnread: true, Version: 5},
			state{ReadRevision: 12, Version: 4},
			state{ReadRevision: 12, ManualUnread: true, Version: 5},
		},
		{state{Version: 5, ManualUnread: true}, state{Version: 5}, state{Version: 5, ManualUnread: true}},
		{state{Version: 5}, state{Version: 5, ManualUnread: true}, state{Version: 5}},
	} {
		if diff := cmp.Diff(c.want, c.known.Merge(c.told)); diff != "" {
			t.Errorf("%v told %v (-want +got)\n%s", c.known, c.told, diff)
		}
	}
}

func TestUnreadTruthTable(t *testing.T) {
	for bits := range 16 {
		active, thinking, manual, newer := bits&1 > 0, bits&2 > 0, bits&4 > 0, bits&8 > 0
		s := state{ContentRevision: 5, ReadRevision: 5, ManualUnread: manual}
		if newer {
			s.ContentRevision++
		}
		running := active && thinking
		want := manual || newer && !running
		if got := s.Unread(active, thinking); got != want {
			t.Errorf("active %t thinking %t manual %t newer %t: %t", active, thinking, manual, newer, got)
		}
	}
	if (state{}).Unread(true, true) || (state{}).Unread(false, false) {
		t.Error("nothing is known, and it is unread")
	}
}

func TestDelaysGrowAndAreSpread(t *testing.T) {
	for failures, want := range map[int][2]int64{
		0: {250, 500}, 1: {250, 500}, 2: {500, 1000}, 5: {4000, 8000}, 9: {30_000, 60_000}, 1 << 40: {30_000, 60_000},
	} {
		low, high := readsync.Delay(failures, 0), readsync.Delay(failures, 1)
		if low != want[0] || high != want[1] {
			t.Errorf("after %d: %d to %d ms, want %v", failures, low, high, want)
		}
	}
}
