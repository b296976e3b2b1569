package evidence

import (
	"maps"
	"slices"
	"testing"

	"github.com/tidemark-im/tidemark/relay/frontier"
	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// Whom a reply concerns: those who wrote its parent, its root, or anything below.
// covers: RL-177, RL-178, RL-179, RL-180, RL-230, RL-232
func TestBelongs(t *testing.T) {
	for name, c := range map[string]struct {
		before []nostrx.Event
		reply  nostrx.Event
		want   frontier.Belonging
	}{
		"nobody known":               {[]nostrx.Event{event(1)}, replyTo(9, 1, 1), frontier.Undecided},
		"wrote the parent":           {[]nostrx.Event{by(viewer, event(1))}, replyTo(9, 1, 1), frontier.Inside},
		"wrote the parent below":     {[]nostrx.Event{event(1), by(viewer, replyTo(2, 1, 1))}, replyTo(9, 2, 1), frontier.Inside},
		"answered the parent too":    {[]nostrx.Event{event(1), by(viewer, replyTo(2, 1, 1))}, replyTo(9, 1, 1), frontier.Inside},
		"wrote in another branch":    {[]nostrx.Event{event(1), replyTo(2, 1, 1), by(viewer, replyTo(3, 2, 1))}, replyTo(9, 1, 1), frontier.Inside},
		"wrote the root":             {[]nostrx.Event{by(viewer, event(1)), replyTo(2, 1, 1)}, replyTo(9, 2, 1), frontier.Inside},
		"wrote in another thread":    {[]nostrx.Event{event(1), event(2), by(viewer, replyTo(3, 2, 2))}, replyTo(9, 1, 1), frontier.Undecided},
		"by a root marked halfway":   {[]nostrx.Event{by(viewer, event(1)), replyTo(2, 1, 1)}, replyTo(9, 2, 2), frontier.Inside},
		"the parent is not here":     {nil, replyTo(9, 50, 51), frontier.Undecided},
		"answered it without seeing": {[]nostrx.Event{by(viewer, replyTo(3, 50, 51))}, replyTo(9, 50, 51), frontier.Inside},
	} {
		w := newWindow()
		add(t, w, append(c.before, c.reply)...)
		if got := messageOf(t, w, 9).Belongs; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// What the viewer has deleted decides nothing.
// covers: RL-247
func TestDeletedDecidesNothing(t *testing.T) {
	w := newWindow()
	add(t, w, event(1), by(viewer, replyTo(2, 1, 1)), replyTo(9, 1, 1))
	if got := messageOf(t, w, 9).Belongs; got != frontier.Inside {
		t.Fatalf("%v", got)
	}
	add(t, w, about(10, nostrx.KindDelete, viewer, 2))
	if got := messageOf(t, w, 9).Belongs; got != frontier.Undecided {
		t.Errorf("%v", got)
	}
}

// A choice for a thread decides before anything else, for replies at every depth, and a later reply of
// the viewer does not undo it.
// covers: RL-209, RL-210, RL-211, RL-212, RL-213, RL-214, RL-215, RL-218
func TestFollow(t *testing.T) {
	w := newWindow()
	named := replyTo(11, 2, 1)
	named.Tags = append(named.Tags, nostrx.Tag{"p", id(viewer)})
	add(t, w, event(1), replyTo(2, 1, 1), replyTo(9, 2, 2), named)
	if following, known := w.Following("c", id(1)); following || known {
		t.Errorf("nothing is known: %v, %v", following, known)
	}
	w.Follow(map[FollowKey]bool{{"c", id(1)}: true})
	for _, n := range []int{2, 9, 11} {
		if got := messageOf(t, w, n).Belongs; got != frontier.Inside {
			t.Errorf("followed, message %d: %v", n, got)
		}
	}
	if got := count(w, "c"); got.Observed != 4 || got.Attention != 3 || got.Pending {
		t.Errorf("%+v", got)
	}
	if following, known := w.Following("c", id(1)); !following || !known {
		t.Errorf("followed: %v, %v", following, known)
	}
	w.Follow(map[FollowKey]bool{{"c", id(1)}: false})
	add(t, w, by(viewer, replyTo(12, 1, 1)), replyTo(13, 12, 1))
	for _, n := range []int{2, 9, 13} {
		if got := messageOf(t, w, n).Belongs; got != frontier.Outside {
			t.Errorf("not followed, message %d: %v", n, got)
		}
	}
	if got := count(w, "c"); got.Observed != 2 || got.Attention != 1 {
		t.Errorf("a mention counts all the same: %+v", got)
	}
	if following, known := w.Following("c", id(1)); following || !known {
		t.Errorf("not followed: %v, %v", following, known)
	}
	w.Follow(nil)
	if following, known := w.Following("c", id(1)); !following || !known {
		t.Errorf("by having written there: %v, %v", following, known)
	}
	w.Follow(map[FollowKey]bool{{"d", id(1)}: false})
	if got := messageOf(t, w, 9).Belongs; got != frontier.Inside {
		t.Errorf("chosen in another channel: %v", got)
	}
}

// Lookups are asked for parents of replies that nothing here decides, once each, and their answers hold
// for the channel and the root that they are about.
// covers: RL-229, RL-231, RL-236, RL-237, RL-251, RL-266
func TestLookups(t *testing.T) {
	w := newWindow()
	inD := replyTo(8, 50, 50)
	inD.Tags[0] = nostrx.Tag{"h", "d"}
	quietly := replyTo(7, 60, 60)
	quietly.Tags = append(quietly.Tags, nostrx.Tag{"audience", "agents"})
	add(t, w, event(1), event(2), replyTo(5, 50, 1), replyTo(6, 50, 2), inD, quietly, by(viewer, replyTo(4, 70, 70)))
	view := frontier.View{Now: 10_000}
	want := map[string][]string{"c": {id(50)}, "d": {id(50)}}
	if got := w.Undecided(view); !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%v", got)
	}
	read := frontier.View{Now: 10_000, State: frontier.State{Frontiers: map[frontier.Key]frontier.Time{"c": 100}}}
	if got := w.Undecided(read); len(got["c"]) != 0 {
		t.Errorf("of what is read: %v", got)
	}
	w.Decide("c", id(50), Decision{Inside: true, Root: id(1)})
	for n, want := range map[int]frontier.Belonging{5: frontier.Inside, 6: frontier.Outside, 8: frontier.Undecided} {
		if got := messageOf(t, w, n).Belongs; got != want {
			t.Errorf("message %d: %v", n, got)
		}
	}
	// Where the root is not known, the parent decides, and nothing is grouped.
	add(t, w, replyTo(9, 50, 77))
	m := messageOf(t, w, 9)
	if m.Belongs != frontier.Inside || m.Root != "" || !view.Verdict(m).Counts {
		t.Errorf("%+v", m)
	}
	for _, a := range w.ThreadActivity("c", view) {
		if a.Root == "" || a.Root == id(77) {
			t.Errorf("grouped: %+v", a)
		}
	}
	w.Decide("d", id(50), Decision{})
	if got := messageOf(t, w, 8).Belongs; got != frontier.Outside {
		t.Errorf("%v", got)
	}
}

// What was fetched for its structure is never counted, starts nothing, and survives a window that was
// full; so do decisions. A reset forgets both.
// covers: RL-256, RL-257, RL-258, RL-259, RL-260, RL-261, RL-262, RL-263, RL-265, RL-280
func TestStructureAndDecisions(t *testing.T) {
	w := newWindow()
	before := count(w, "c")
	w.AddStructure(event(50), replyTo(51, 90, 90), about(52, nostrx.KindDelete, peer, 50))
	if events, bytes := w.Len(); events != 0 || bytes != 0 || count(w, "c") != before {
		t.Errorf("%d events, %+v", events, count(w, "c"))
	}
	if got := w.Undecided(frontier.View{Now: 10_000}); len(got) != 0 {
		t.Errorf("%v", got)
	}
	w.Decide("c", id(50), Decision{Inside: true, Root: id(50)})
	if count(w, "c") != before {
		t.Error("a decision alone is counted")
	}
	for i := range MaxEvents + 1 {
		_, _ = w.Add(event(1000 + i)) // until it is full
	}
	add(t, w, replyTo(9, 50, 50))
	if m := messageOf(t, w, 9); m.Belongs != frontier.Inside || m.Root != id(50) {
		t.Errorf("after the window was full: %+v", m)
	}
	for i := range MaxStructure {
		w.AddStructure(event(10_000 + i))
	}
	if _, ok := w.structure.get(id(50)); ok || len(w.structure.values) != MaxStructure {
		t.Errorf("%d kept for structure", len(w.structure.values))
	}
	for i := range MaxDecisions {
		w.Decide("c", id(20_000+i), Decision{})
	}
	if _, ok := w.decisions.get(lookupKey{"c", id(50)}); ok || len(w.decisions.values) != MaxDecisions {
		t.Errorf("%d decisions", len(w.decisions.values))
	}
	w.Reset()
	if len(w.structure.values)+len(w.decisions.values) != 0 || !w.Access("c") {
		t.Error("something is left")
	}
}

// Who writes later takes part from then on, also when the window forgets what they wrote.
// covers: RL-267
func TestJoiningLater(t *testing.T) {
	w := newWindow()
	w.Decide("c", id(1), Decision{})
	add(t, w, event(1), replyTo(5, 1, 1))
	if got := messageOf(t, w, 5).Belongs; got != frontier.Outside {
		t.Fatalf("%v", got)
	}
	add(t, w, by(viewer, replyTo(6, 1, 1)))
	for i := range MaxEvents {
		_, _ = w.Add(event(1000 + i))
	}
	add(t, w, replyTo(7, 1, 1))
	if _, kept := w.Message(id(6)); kept {
		t.Fatal("the window was not cleared")
	}
	if got := messageOf(t, w, 7).Belongs; got != frontier.Inside {
		t.Errorf("%v", got)
	}
}

// Threads with replies that concern the viewer, the latest first; nothing of what is for agents, or of
// nobody's concern.
// covers: RL-184, RL-188
func TestThreadActivity(t *testing.T) {
	w := newWindow()
	quietly := replyTo(14, 1, 1)
	quietly.Tags = append(quietly.Tags, nostrx.Tag{"audience", "agents"})
	w.Decide("c", id(3), Decision{})
	add(t, w, by(viewer, event(1)), by(viewer, event(2)), event(3), replyTo(10, 1, 1), replyTo(11, 2, 2), replyTo(12, 10, 1),
		replyTo(13, 3, 3), quietly)
	view := frontier.View{Now: 10_000}
	got := w.ThreadActivity("c", view)
	if len(got) != 2 || got[0].Root != id(1) || got[0].Replies != 2 || got[0].Latest.ID != id(12) || got[1].Root != id(2) {
		t.Errorf("%+v", got)
	}
	view.State.Frontiers = map[frontier.Key]frontier.Time{frontier.ThreadKey(id(1)): 12}
	if got := w.ThreadActivity("c", view); len(got) != 1 || got[0].Root != id(2) {
		t.Errorf("%+v", got)
	}
}
