package frontier

import (
	"slices"
	"testing"
)

const now Time = 1_800_000_000

// top is an ordinary message on the top level of the channel c.
func top(n int, at Time) Message { return Message{ID: id(n), Channel: "c", At: at} }

// reply is a reply to a thread of the channel c, inside a conversation of the viewer.
func reply(n, root int, at Time) Message {
	return Message{ID: id(n), Channel: "c", At: at, Reply: true, Root: id(root), Belongs: Inside}
}

func with(m Message, change func(*Message)) Message {
	change(&m)
	return m
}

func mention(m Message) Message   { m.Mentioned = true; return m }
func broadcast(m Message) Message { m.Broadcast = true; return m }
func foreign(m Message) Message   { m.Belongs = Outside; return m }
func undecided(m Message) Message { m.Belongs = Undecided; return m }

// view is a view of now with frontiers.
func view(frontiers map[Key]Time) View {
	return View{State: State{Frontiers: frontiers}, Manual: map[Key]uint64{}, Now: now}
}

// What may count, and for which reason it has attention.
// covers: RL-111, RL-113, RL-114, RL-115, RL-170, RL-171, RL-176, RL-181, RL-186, RL-187, RL-213, RL-215
func TestVerdictReasons(t *testing.T) {
	inDM := func(m Message) Message { m.DM = true; return m }
	quiet := func(m Message) Message { m.Quiet = true; return m }
	for name, c := range map[string]struct {
		m    Message
		want Verdict
	}{
		"ordinary":                   {top(1, now), Verdict{Counts: true}},
		"own":                        {with(mention(top(1, now)), func(m *Message) { m.Own = true }), Verdict{}},
		"deleted":                    {with(mention(top(1, now)), func(m *Message) { m.Deleted = true }), Verdict{}},
		"quiet":                      {quiet(mention(top(1, now))), Verdict{}},
		"quiet in a dm":              {quiet(inDM(top(1, now))), Verdict{}},
		"quiet in a conversation":    {quiet(reply(1, 9, now)), Verdict{}},
		"mention":                    {mention(top(1, now)), Verdict{Counts: true, Attention: Mention}},
		"broadcast":                  {broadcast(top(1, now)), Verdict{Counts: true, Attention: Broadcast}},
		"in a dm":                    {inDM(top(1, now)), Verdict{Counts: true, Attention: Direct}},
		"mention in a dm":            {inDM(mention(top(1, now))), Verdict{Counts: true, Attention: Direct}},
		"reply in a dm":              {inDM(foreign(reply(1, 9, now))), Verdict{Counts: true, Attention: Direct}},
		"reply in a conversation":    {reply(1, 9, now), Verdict{Counts: true, Attention: Conversation}},
		"foreign reply":              {foreign(reply(1, 9, now)), Verdict{}},
		"foreign reply, mention":     {foreign(mention(reply(1, 9, now))), Verdict{Counts: true, Attention: Mention}},
		"foreign reply, broadcast":   {foreign(broadcast(reply(1, 9, now))), Verdict{Counts: true, Attention: Broadcast}},
		"undecided reply":            {undecided(reply(1, 9, now)), Verdict{Pending: true}},
		"undecided reply, mention":   {undecided(mention(reply(1, 9, now))), Verdict{Counts: true, Attention: Mention}},
		"reply without a root":       {with(reply(1, 9, now), func(m *Message) { m.Root = "" }), Verdict{Counts: true, Attention: Conversation}},
		"top level has no belonging": {with(top(1, now), func(m *Message) { m.Belongs = Undecided }), Verdict{Counts: true}},
	} {
		if got := view(nil).Verdict(c.m); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// Attention is a part of what is observed.
// covers: RL-110, RL-167
func TestCount(t *testing.T) {
	messages := []Message{
		with(top(1, now), func(m *Message) { m.DM = true }), mention(top(2, now)), broadcast(top(3, now)),
		reply(4, 1, now), top(5, now), foreign(reply(6, 1, now)),
	}
	if got := view(nil).Count(messages); got != (Counts{Observed: 5, Attention: 4}) {
		t.Errorf("%+v", got)
	}
	if got := view(nil).Count(append(messages, undecided(reply(7, 1, now)))); !got.Pending || got.Observed != 5 {
		t.Errorf("%+v", got)
	}
}

// Which frontier reads what.
// covers: RL-063, RL-064, RL-065, RL-073, RL-074, RL-079, RL-228
func TestVerdictFrontiers(t *testing.T) {
	messages := map[string]Message{
		"top": top(1, 50), "mention": mention(top(2, 50)), "broadcast": broadcast(top(3, 50)),
		"dm": with(top(4, 50), func(m *Message) { m.DM = true }), "reply": reply(5, 1, 50), "sibling": reply(6, 2, 50),
		"rootless": with(reply(7, 1, 50), func(m *Message) { m.Root = "" }),
	}
	for _, c := range []struct {
		key  Key
		read []string
	}{
		{"c", []string{"top", "mention", "broadcast", "dm", "reply", "sibling", "rootless"}},
		{"d", nil},
		{ActivityKey("c"), []string{"top"}},
		{ActivityKey("d"), nil},
		{ThreadKey(id(1)), []string{"reply"}},
		{ThreadActivityKey(id(1)), []string{"reply"}},
		{ThreadActivityKey(id(9)), nil},
		{MessageKey(id(2)), []string{"mention"}},
		{MessageKey(id(5)), []string{"reply"}},
		{MessageKey(id(7)), []string{"rootless"}},
	} {
		for name, m := range messages {
			for at, covers := range map[Time]bool{49: false, 50: true, 51: true} {
				v := view(map[Key]Time{c.key: at})
				v.Now = 60
				want := !covers || !slices.Contains(c.read, name)
				if got := v.Verdict(m); got.Counts != want {
					t.Errorf("%s at %d, %s: %+v", c.key, at, name, got)
				}
			}
		}
	}
}

// What is thirty days old is read; a mark of the viewer shows it all the same.
// covers: RL-173, RL-174, RL-175
func TestHorizon(t *testing.T) {
	v := view(nil)
	for offset, want := range map[int]bool{-1: false, 0: false, 1: true} {
		if got := v.Verdict(top(1, Time(int(now)-Horizon+offset))); got.Counts != want {
			t.Errorf("the floor%+d: %+v", offset, got)
		}
	}
	v.Manual[MessageKey(id(1))] = 1
	if got := v.Verdict(top(1, now-40*24*60*60)); got.Counts || !got.Unread() {
		t.Errorf("marked: %+v", got)
	}
	v.Now = 100
	if got := v.Verdict(top(2, 0)); !got.Counts {
		t.Errorf("before there was a floor: %+v", got)
	}
}

// A local mark is shown, whatever was read, and changes neither count. What is quiet it cannot mark.
// covers: RL-182, RL-191, RL-192, RL-334, RL-335, RL-336
func TestManualMarks(t *testing.T) {
	read, irrelevant := mention(top(1, now)), foreign(reply(2, 9, now))
	quiet := with(top(3, now), func(m *Message) { m.Quiet = true })
	messages := []Message{read, irrelevant, quiet}
	v := view(map[Key]Time{read.Key(): now})
	before := v.Count(messages)
	for _, k := range []Key{"c", ThreadKey(id(9)), read.Key(), irrelevant.Key(), quiet.Key()} {
		v.Manual[k] = 1
	}
	if after := v.Count(messages); after != before || after != (Counts{}) {
		t.Errorf("counted %+v, before %+v", after, before)
	}
	for _, m := range []Message{read, irrelevant} {
		if got := v.Verdict(m); !got.Unread() || got.Attention != NoCategory {
			t.Errorf("%s: %+v", m.ID, got)
		}
	}
	if got := v.Verdict(quiet); got.Unread() {
		t.Errorf("quiet: %+v", got)
	}
}

// A reply that is read needs no lookup, and nobody waits for one.
// covers: RL-249, RL-251
func TestPendingReplies(t *testing.T) {
	m := undecided(reply(1, 9, now))
	if got := view(nil).Verdict(m); got != (Verdict{Pending: true}) {
		t.Errorf("unread: %+v", got)
	}
	for _, k := range []Key{"c", ThreadKey(id(9)), m.Key()} {
		if got := view(map[Key]Time{k: now}).Verdict(m); got != (Verdict{}) {
			t.Errorf("read by %s: %+v", k, got)
		}
	}
}

// Marks of other clients are shown, on the message, its thread or its channel.
// covers: RL-463, RL-534
func TestRemoteMarks(t *testing.T) {
	m := reply(1, 9, 50)
	for _, k := range []Key{"c", ThreadKey(id(9)), m.Key()} {
		v := view(map[Key]Time{"c": 60})
		v.Now = 70
		v.State.Overrides = map[Key]Register{k: {Set: 1, Baseline: 60}}
		if got := v.Verdict(m); !got.Counts {
			t.Errorf("marked at %s: %+v", k, got)
		}
		v.State.Frontiers["c"] = 61
		if got := v.Verdict(m); got.Counts {
			t.Errorf("read beyond, at %s: %+v", k, got)
		}
		v.State.Frontiers["c"] = 60
		v.State.Overrides[k] = Register{Set: 1, Clear: 1, Baseline: 60}
		if got := v.Verdict(m); got.Counts {
			t.Errorf("cleared at %s: %+v", k, got)
		}
	}
}

// The latest message may be own, read or quiet, and not deleted; in a second the lower id is later.
// covers: RL-190
func TestLatest(t *testing.T) {
	quiet := with(top(3, 60), func(m *Message) { m.Quiet = true })
	gone := with(top(1, 90), func(m *Message) { m.Deleted = true })
	if got, ok := Latest([]Message{top(5, 50), quiet, gone, top(7, 60)}); !ok || got.ID != id(3) {
		t.Errorf("%+v, %v", got, ok)
	}
	if got, ok := Latest([]Message{gone}); ok {
		t.Errorf("%+v", got)
	}
}
