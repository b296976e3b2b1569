package frontier

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
)

// apply carries a plan out on a view.
func (v View) apply(p Plan) View {
	next := View{State: v.State.Clone(), Manual: maps.Clone(v.Manual), Now: v.Now}
	for k, at := range p.Advance {
		if old, ok := next.State.Frontiers[k]; ok && old >= at {
			panic(fmt.Sprintf("the plan raises %q from %d to %d", k, old, at))
		}
		next.State.Frontiers[k] = at
	}
	for _, k := range p.Clear {
		if _, ok := next.Manual[k]; !ok {
			panic(fmt.Sprintf("the plan clears %q, which is not marked", k))
		}
		delete(next.Manual, k)
	}
	return next
}

func channel(messages ...Message) Surface { return Surface{Channel: "c", Messages: messages} }

func thread(root int, messages ...Message) Surface {
	return Surface{Channel: "c", Root: id(root), Messages: messages}
}

func dm(root string, messages ...Message) Surface {
	for i := range messages {
		messages[i].DM = true
	}
	return Surface{Channel: "c", Root: root, DM: true, Messages: messages}
}

func marks(pairs ...any) map[Key]Time {
	m := make(map[Key]Time)
	for i := 0; i < len(pairs); i += 2 {
		switch k := pairs[i].(type) {
		case string:
			m[Key(k)] = Time(pairs[i+1].(int))
		case Key:
			m[k] = Time(pairs[i+1].(int))
		}
	}
	return m
}

// expect holds a plan against what it should raise and clear.
func expect(t *testing.T, what string, p Plan, err error, advance map[Key]Time, clears ...Key) {
	t.Helper()
	if err != nil || !maps.Equal(p.Advance, advance) || !slices.Equal(p.Clear, clears) {
		t.Errorf("%s: %v, %+v\nwant to raise %v and clear %v", what, err, p, advance, clears)
	}
}

// early is a view at the second 100, with local marks.
func early(frontiers map[Key]Time, manual ...Key) View {
	v := view(frontiers)
	v.Now = 100
	for _, k := range manual {
		v.Manual[k] = 7
	}
	return v
}

// Rows in view are read one by one. What is covered, unknown, deleted or elsewhere is passed over, and
// no mark of the viewer is cleared.
// covers: RL-017, RL-040, RL-321, RL-329, RL-426
func TestObserve(t *testing.T) {
	gone := with(top(3, 30), func(m *Message) { m.Deleted = true })
	elsewhere := with(top(4, 40), func(m *Message) { m.Channel = "d" })
	s := channel(top(1, 10), top(2, 20), gone, elsewhere, reply(5, 1, 50))
	v := early(nil, "c", MessageKey(id(1)))
	p, err := v.Observe(s, []string{id(1), id(3), id(4), id(9), "", id(5)})
	expect(t, "a mix", p, err, marks(MessageKey(id(1)), 10, MessageKey(id(5)), 50))

	p, err = v.apply(p).Observe(s, []string{id(1), id(5)})
	if err != nil || !p.Empty() {
		t.Errorf("what is covered: %v, %+v", err, p)
	}
	p, err = early(marks(ActivityKey("c"), 20)).Observe(s, []string{id(1), id(2)})
	if err != nil || !p.Empty() {
		t.Errorf("what was caught up with: %v, %+v", err, p)
	}
	if p, err := v.Observe(s, slices.Repeat([]string{id(1)}, MaxObserved+1)); !errors.Is(err, ErrTooMany) || !p.Empty() {
		t.Errorf("too many: %v, %+v", err, p)
	}
	p, err = early(nil).Observe(thread(1, s.Messages...), []string{id(1), id(2), id(5)})
	expect(t, "in a thread", p, err, marks(MessageKey(id(1)), 10, MessageKey(id(5)), 50))
}

// The bottom of a channel reads its ordinary backlog up to the newest event that is retained, and the
// mentions and broadcasts down to the last row by themselves. Replies stay what they are.
// covers: RL-062, RL-066, RL-067, RL-068, RL-069, RL-071, RL-081, RL-082, RL-084, RL-190, RL-322
func TestCatchUpChannel(t *testing.T) {
	own := with(mention(top(8, 41)), func(m *Message) { m.Own = true })
	quiet := with(top(6, 45), func(m *Message) { m.Quiet = true })
	s := channel(top(1, 10), mention(top(2, 20)), broadcast(reply(3, 1, 30)), mention(reply(4, 1, 35)),
		top(5, 40), quiet, reply(7, 1, 50), own)
	v := early(nil, "c", MessageKey(id(1)), ThreadKey(id(1)))
	p, err := v.CatchUp(s, id(6))
	expect(t, "the bottom", p, err,
		marks(ActivityKey("c"), 50, MessageKey(id(2)), 20, MessageKey(id(3)), 30), "c")

	after := v.apply(p)
	late := mention(top(9, 15))          // sent again, with its first time
	found := undecided(reply(10, 2, 12)) // not yet known to be relevant
	relevant := with(found, func(m *Message) { m.Belongs = Inside })
	for _, c := range []struct {
		m    Message
		want bool
	}{
		{top(5, 40), false}, {mention(top(2, 20)), false}, {broadcast(reply(3, 1, 30)), false},
		{mention(reply(4, 1, 35)), true}, {reply(7, 1, 50), true}, {late, true}, {relevant, true},
		{top(11, 15), false}, {top(11, 51), true},
	} {
		if got := after.Verdict(c.m); got.Counts != c.want {
			t.Errorf("%+v: %+v", c.m, got)
		}
	}
	if _, marked := after.Manual[MessageKey(id(1))]; !marked {
		t.Error("the mark of a message is gone")
	}
	again, err := after.CatchUp(s, id(6))
	if err != nil || !again.Empty() {
		t.Errorf("again: %v, %+v", err, again)
	}
	covered, err := early(marks("c", 60)).CatchUp(s, id(6))
	if err != nil || !covered.Empty() {
		t.Errorf("below the mark of the channel: %v, %+v", err, covered)
	}
}

// Only the newest row of a surface is its bottom, and only a row of that surface.
func TestCatchUpRefused(t *testing.T) {
	s := channel(top(1, 10), reply(2, 1, 30), top(3, 20), with(top(4, 40), func(m *Message) { m.Deleted = true }))
	for row, want := range map[int]error{1: ErrHistory, 2: ErrTarget, 3: nil, 4: ErrTarget, 9: ErrTarget} {
		if p, err := early(nil).CatchUp(s, id(row)); !errors.Is(err, want) || err != nil && !p.Empty() {
			t.Errorf("row %d: %v, %+v", row, err, p)
		}
	}
	// In one second the order on screen decides.
	s = channel(top(1, 10), with(top(2, 10), func(m *Message) { m.Millis = 5 }))
	if _, err := early(nil).CatchUp(s, id(1)); !errors.Is(err, ErrHistory) {
		t.Errorf("five milliseconds earlier: %v", err)
	}
}

// The bottom of a thread reads the replies of that thread and clears nothing.
// covers: RL-074, RL-084, RL-105, RL-106, RL-322
func TestCatchUpThread(t *testing.T) {
	replies := []Message{top(1, 10), reply(2, 1, 20), mention(reply(3, 1, 30)), reply(4, 9, 25), top(5, 50)}
	v := early(nil, "c", ThreadKey(id(1)), MessageKey(id(2)))
	p, err := v.CatchUp(thread(1, replies...), id(3))
	expect(t, "the bottom", p, err, marks(ThreadActivityKey(id(1)), 30))
	after := v.apply(p)
	for i, want := range []bool{true, false, false, true, true} {
		if got := after.Verdict(replies[i]); got.Counts != want {
			t.Errorf("%+v: %+v", replies[i], got)
		}
	}
	for row, want := range map[int]error{1: ErrTarget, 2: ErrHistory, 4: ErrTarget} {
		if _, err := v.CatchUp(thread(1, replies...), id(row)); !errors.Is(err, want) {
			t.Errorf("row %d: %v", row, err)
		}
	}
	for _, k := range []Key{"c", ThreadKey(id(1))} {
		p, err := early(marks(k, 30)).CatchUp(thread(1, replies...), id(3))
		if err != nil || !p.Empty() {
			t.Errorf("below %s: %v, %+v", k, err, p)
		}
	}
}

// A dwell in a dm reads all of it.
// covers: RL-086, RL-087, RL-330
func TestDM(t *testing.T) {
	s := dm("", top(1, 10), reply(2, 1, 20), top(3, 15))
	v := early(nil, "c", MessageKey(id(1)), ThreadKey(id(1)))
	for name, plan := range map[string]func() (Plan, error){
		"rows":       func() (Plan, error) { return v.Observe(s, []string{id(1)}) },
		"the bottom": func() (Plan, error) { return v.CatchUp(s, id(3)) },
	} {
		p, err := plan()
		expect(t, name, p, err, marks("c", 20), "c")
	}
	if p, err := v.Observe(s, []string{id(9)}); err != nil || !p.Empty() {
		t.Errorf("no row of it: %v, %+v", err, p)
	}
}

// A reader of one thread of a dm comes as far as the first message outside of it that would be read
// unseen, to the second before.
// covers: RL-089, RL-090, RL-091, RL-092, RL-093, RL-094, RL-095, RL-096, RL-097
func TestDMThread(t *testing.T) {
	replies := []Message{reply(2, 1, 10), reply(3, 1, 12), reply(4, 1, 11)}
	for name, outside := range map[string]Message{"top level": top(5, 11), "another thread": reply(5, 9, 11)} {
		s := dm(id(1), append(slices.Clone(replies), outside)...)
		v := early(nil)
		p, err := v.Observe(s, []string{id(2)})
		expect(t, name, p, err, marks("c", 10))
		after := v.apply(p)
		for i, want := range []bool{false, true, true, true} {
			if got := after.Verdict(s.Messages[i]); got.Counts != want {
				t.Errorf("%s: %+v: %+v", name, s.Messages[i], got)
			}
		}
		whole, err := after.Observe(dm("", s.Messages...), []string{id(5)})
		expect(t, name+", all of it", whole, err, marks("c", 12))

		marked := early(nil, MessageKey(id(5)))
		p, err = marked.Observe(s, []string{id(2)})
		expect(t, name+", marked unread", p, err, marks("c", 12))
		if got := marked.apply(p).Verdict(s.Messages[3]); !got.Unread() {
			t.Errorf("%s: the mark is gone: %+v", name, got)
		}
		p, err = early(marks("c", 11)).Observe(s, []string{id(3)})
		expect(t, name+", read before", p, err, marks("c", 12))
	}
	// The original is not here: the reply stands for its thread, and its siblings are outside.
	s := dm(id(3), replies...)
	p, err := early(nil).Observe(s, []string{id(3)})
	expect(t, "a reply alone", p, err, marks("c", 9))
}

// What arrives later, with a time before the cut of such a read, is covered unseen.
// covers: RL-099, RL-100
func TestDMThreadLate(t *testing.T) {
	v := early(nil)
	p, err := v.Observe(dm(id(1), reply(2, 1, 10), reply(3, 1, 12)), []string{id(3)})
	expect(t, "the thread", p, err, marks("c", 12))
	for cause, at := range map[string]Time{"a clock that is late": 8, "the same second": 12, "sent again": 11} {
		late := with(top(5, at), func(m *Message) { m.DM = true })
		if got := v.apply(p).Verdict(late); got.Counts {
			t.Errorf("%s: %+v", cause, got)
		}
	}
}

// An explicit prefix reads what is not loaded as well, clears the mark of its target, and takes
// messages of its target only.
// covers: RL-281, RL-284, RL-285, RL-324, RL-331
func TestMarkThrough(t *testing.T) {
	s := channel(top(1, 10), reply(2, 1, 20), broadcast(reply(3, 1, 30)), top(4, 40))
	all := []Key{"c", ThreadKey(id(1)), MessageKey(id(2)), MessageKey(id(4))}
	for _, c := range []struct {
		target  Key
		message int
		at      int // zero where it is refused
	}{
		{"c", 1, 10}, {"c", 4, 40}, {"c", 3, 30}, {"c", 2, 0}, {"c", 9, 0}, {"d", 1, 0},
		{ThreadKey(id(1)), 2, 20}, {ThreadKey(id(1)), 3, 30}, {ThreadKey(id(1)), 1, 0}, {ThreadKey(id(9)), 2, 0},
		{MessageKey(id(2)), 2, 20}, {MessageKey(id(2)), 4, 0}, {ActivityKey("c"), 1, 0},
	} {
		v := early(nil, all...)
		p, err := v.MarkThrough(c.target, s, id(c.message))
		if c.at == 0 {
			if !errors.Is(err, ErrTarget) || !p.Empty() {
				t.Errorf("%s through %d: %v, %+v", c.target, c.message, err, p)
			}
			continue
		}
		var cleared []Key
		if slices.Contains(all, c.target) {
			cleared = []Key{c.target}
		}
		expect(t, fmt.Sprintf("%s through %d", c.target, c.message), p, err, map[Key]Time{c.target: Time(c.at)}, cleared...)
	}
	v := early(nil)
	p, err := v.MarkThrough("c", s, id(1))
	if got := v.apply(p).Verdict(top(9, 9)); err != nil || got.Counts {
		t.Errorf("an older message that comes later: %v, %+v", err, got)
	}
}

// An explicit read of a channel goes to the moment of the click, and takes the marks with it that are
// known to be the channel's.
// covers: RL-289, RL-290, RL-291, RL-293, RL-295, RL-296, RL-297, RL-298, RL-300, RL-301, RL-302, RL-326
func TestMarkChannelRead(t *testing.T) {
	s := channel(top(1, 10), reply(2, 7, 90), top(3, 95))
	owned := []Key{"c", MessageKey(id(1)), MessageKey(id(2)), MessageKey(id(7)), ThreadKey(id(7)), ThreadKey(id(1))}
	kept := []Key{"d", MessageKey(id(8)), ThreadKey(id(8))}
	v := early(nil, append(slices.Clone(owned), kept...)...)
	v.State.Overrides = map[Key]Register{"c": {Set: 1, Baseline: 200}}
	p := v.MarkChannelRead(s, true)
	expect(t, "with evidence", p, nil, marks("c", 100), slices.Sorted(slices.Values(owned))...)
	after := v.apply(p)
	if after.State.Overrides["c"] != v.State.Overrides["c"] {
		t.Error("a mark of another client was touched")
	}
	after.State.Overrides = nil
	for at, want := range map[Time]bool{95: false, 100: false, 101: true} {
		after.Now = 200
		if got := after.Verdict(top(5, at)); got.Counts != want {
			t.Errorf("a message of the second %d: %+v", at, got)
		}
	}
	// A clock that was ahead leaves its mark.
	after.Now = 50
	if p := after.MarkChannelRead(s, true); !p.Empty() {
		t.Errorf("after the clock was set back: %+v", p)
	}
	bare := early(nil, "c", MessageKey(id(1)))
	expect(t, "without evidence", bare.MarkChannelRead(channel(), true), nil, marks("c", 100), "c")
	expect(t, "without frontiers", bare.MarkChannelRead(channel(), false), nil, marks(), "c")
}

// A sweep goes to channels with something unread or a mark of their own, and to no others.
// covers: RL-311, RL-312
func TestNeedsRead(t *testing.T) {
	read := early(marks("c", 50))
	for name, c := range map[string]struct {
		v    View
		s    Surface
		want bool
	}{
		"unread":              {early(nil), channel(top(1, 10)), true},
		"read":                {read, channel(top(1, 10)), false},
		"nothing":             {early(nil), channel(), false},
		"its mark":            {early(nil, "c"), channel(), true},
		"a mark of a thread":  {early(marks("c", 50), ThreadKey(id(1))), channel(top(1, 10)), true},
		"a mark of a message": {early(marks("c", 50), MessageKey(id(1))), channel(top(1, 10)), true},
		"another's mark":      {early(marks("c", 50), "d"), channel(top(1, 10)), false},
	} {
		if got := c.v.NeedsRead(c.s); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A message from the future is read by itself and silences nobody, whichever way it is read.
func TestFutureMessages(t *testing.T) {
	const future = 100 + 365*24*60*60
	honest := top(9, 110)
	for name, plan := range map[string]func(View) (Plan, error){
		"caught up": func(v View) (Plan, error) { return v.CatchUp(channel(top(1, 10), top(2, future)), id(2)) },
		"through":   func(v View) (Plan, error) { return v.MarkThrough("c", channel(top(1, 10), top(2, future)), id(2)) },
		"all read":  func(v View) (Plan, error) { return v.MarkChannelRead(channel(top(1, 10), top(2, future)), true), nil },
		"observed": func(v View) (Plan, error) {
			return v.Observe(channel(top(1, 10), top(2, future)), []string{id(1), id(2)})
		},
		"in a dm": func(v View) (Plan, error) {
			return v.Observe(dm("", top(1, 10), top(2, future)), []string{id(2)})
		},
	} {
		v := early(nil)
		p, err := plan(v)
		after := v.apply(p)
		if p.Advance[MessageKey(id(2))] != future || err != nil {
			t.Errorf("%s: %v, %+v", name, err, p)
		}
		for k, at := range p.Advance {
			if !k.IsMessage() && at > v.Now {
				t.Errorf("%s: %q is raised to %d", name, k, at)
			}
		}
		after.Now = 120
		for _, m := range []Message{top(1, 10), top(2, future), honest} {
			m.DM = name == "in a dm"
			if got := after.Verdict(m); got.Counts != (m.ID == honest.ID) {
				t.Errorf("%s: %+v: %+v", name, m, got)
			}
		}
	}
	v := early(nil)
	p, err := v.CatchUp(thread(1, reply(2, 1, future)), id(2))
	expect(t, "a thread", p, err, map[Key]Time{ThreadActivityKey(id(1)): 100, MessageKey(id(2)): future})
}

// What each action raises and clears.
// covers: RL-321, RL-322, RL-324, RL-326
func TestEffectTable(t *testing.T) {
	every := []Key{"c", ThreadKey(id(1)), MessageKey(id(1)), MessageKey(id(2))}
	messages := []Message{top(1, 10), reply(2, 1, 20)}
	for name, c := range map[string]struct {
		plan func(View) (Plan, error)
		want []Key
	}{
		"dwell":           {func(v View) (Plan, error) { return v.Observe(channel(messages...), []string{id(1)}) }, nil},
		"channel bottom":  {func(v View) (Plan, error) { return v.CatchUp(channel(messages...), id(1)) }, []Key{"c"}},
		"thread bottom":   {func(v View) (Plan, error) { return v.CatchUp(thread(1, messages...), id(2)) }, nil},
		"message through": {func(v View) (Plan, error) { return v.MarkThrough(MessageKey(id(2)), channel(messages...), id(2)) }, []Key{MessageKey(id(2))}},
		"thread through":  {func(v View) (Plan, error) { return v.MarkThrough(ThreadKey(id(1)), channel(messages...), id(2)) }, []Key{ThreadKey(id(1))}},
	} {
		p, err := c.plan(early(nil, every...))
		if err != nil || !slices.Equal(p.Clear, c.want) || len(p.Advance) == 0 {
			t.Errorf("%s: %v, %+v", name, err, p)
		}
	}
}
