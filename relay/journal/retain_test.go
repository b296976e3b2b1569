package journal

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidemark-im/tidemark/relay/frontier"
)

// recordWith is a record with frontiers, all of which were touched at the given revisions.
func recordWith(frontiers map[Key]Time, recent map[Key]uint64) Record {
	r := newRecord()
	r.State.Frontiers = maps.Clone(frontiers)
	r.Recent = make(map[Key]uint64)
	maps.Copy(r.Recent, recent)
	r.fill()
	for _, at := range r.Recent {
		r.Revision = max(r.Revision, at)
	}
	return r
}

// evidenceOf is evidence of messages in channels that are no dms.
func evidenceOf(messages ...frontier.Message) Evidence {
	return Evidence{
		Message: func(id string) (frontier.Message, bool) {
			i := slices.IndexFunc(messages, func(m frontier.Message) bool { return m.ID == id })
			if i < 0 {
				return frontier.Message{}, false
			}
			return messages[i], true
		},
		DM: func(string) (dm, known bool) { return false, true },
	}
}

func in(channel string, n int) frontier.Message { return frontier.Message{ID: id(n), Channel: channel} }

// bytesFor is a budget for a number of bytes of frontiers.
func bytesFor(n int) budget { return budget{bytes: emptyBlob + n, keys: frontier.MaxKeys} }

func keysOf(m map[Key]Time) []Key { return slices.Sorted(maps.Keys(m)) }

// A budget that suffices keeps everything, order included.
func TestRetainEverything(t *testing.T) {
	r := recordWith(map[Key]Time{"a": 1, ThreadKeyOf(1): 2, MessageKey(2): 3}, map[Key]uint64{"a": 1, MessageKey(2): 4})
	before, err := r.encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.retain(syncBudget, Evidence{}); err != nil {
		t.Fatal(err)
	}
	if after, err := r.encode(); err != nil || string(after) != string(before) {
		t.Errorf("%v\n%s\nbecame\n%s", err, before, after)
	}
}

// ThreadKeyOf is the key of a thread by number.
func ThreadKeyOf(n int) Key { return frontier.ThreadKey(id(n)) }

// Broad marks are kept in their order within three quarters, and the rest goes by interaction.
// covers: RL-475, RL-476, RL-477, RL-478, RL-479, RL-480, RL-497, RL-498, RL-568, RL-569
func TestRetainOrder(t *testing.T) {
	quiet := Key("quiet-channel")
	frontiers, recent := map[Key]Time{quiet: 1}, map[Key]uint64{}
	revision := uint64(0)
	touch := func(k Key, at Time) {
		revision++
		frontiers[k], recent[k] = at, revision
	}
	for i := range 400 {
		touch(frontier.ActivityKey(fmt.Sprintf("channel-%03d", i)), Time(1000+i))
	}
	for i := range 100 {
		touch(MessageKey(i), Time(2000+i))
	}
	touch(MessageKey(999), 5) // of last year, read just now
	one := frontier.Cost(MessageKey(1), 2000)
	total := frontier.Cost(quiet, 1) + 20*one
	r := recordWith(frontiers, recent)
	if err := r.retain(bytesFor(total), Evidence{}); err != nil {
		t.Fatal(err)
	}
	kept := r.State.Frontiers
	if _, ok := kept[quiet]; !ok {
		t.Error("news evicted the mark of a quiet channel")
	}
	if kept[MessageKey(999)] != 5 || r.Recent[MessageKey(999)] == 0 {
		t.Error("what was read last was dropped")
	}
	if _, ok := kept[MessageKey(0)]; ok {
		t.Error("an older interaction outlives newer ones")
	}
	var activities int
	for k := range kept {
		if _, ok := frontiers[k]; !ok {
			t.Errorf("made up %q", k)
		}
		if k.Scope() == frontier.CatchUp {
			activities++
			// Of one group, what was touched last.
			if recent[k] < 400-uint64(len(kept)) {
				t.Errorf("kept %q, touched at %d", k, recent[k])
			}
		}
	}
	if size := sizeOf(t, r); size > emptyBlob+total || activities == 0 {
		t.Errorf("%d bytes, %d catch-up marks", size, activities)
	}
	for k, at := range frontiers {
		if kept[k] != at && r.Reserve[k] != at {
			t.Errorf("%q is nowhere", k)
		}
	}
}

// sizeOf is what the state takes as one blob.
func sizeOf(t interface{ Fatal(...any) }, r Record) int {
	text, err := frontier.Blob{ClientID: r.ClientID, State: r.State}.Encode(1 << 24)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}

// A read that was just made is kept, even if a budget is full of broad marks.
// covers: RL-478
func TestRetainNewestRead(t *testing.T) {
	frontiers := make(map[Key]Time)
	for i := range 3000 {
		frontiers[Key(fmt.Sprintf("01234567-89ab-cdef-0123-%012d", i))] = Time(1_700_000_000 + i)
	}
	frontiers[MessageKey(1)] = 7
	r := recordWith(frontiers, map[Key]uint64{MessageKey(1): 1})
	if err := r.retain(syncBudget, Evidence{}); err != nil {
		t.Fatal(err)
	}
	if r.State.Frontiers[MessageKey(1)] != 7 || sizeOf(t, r) > MaxSyncBytes {
		t.Errorf("%d, %d bytes", r.State.Frontiers[MessageKey(1)], sizeOf(t, r))
	}
}

// What a kept broader mark reads is dropped, if verified messages have shown that it belongs there;
// the room goes to the next in line, and the order to what covers.
//
// covers: RL-482, RL-486, RL-487, RL-488, RL-489, RL-490, RL-491, RL-492
// covers: RL-493, RL-494, RL-517, RL-526
func TestCover(t *testing.T) {
	activity := frontier.ActivityKey("c")
	threadActivity := frontier.ThreadActivityKey(id(1))
	dms := evidenceOf(in("c", 1))
	dms.DM = func(string) (dm, known bool) { return true, true }
	unknown := evidenceOf(in("c", 1))
	unknown.DM = nil
	change := func(f func(*frontier.Message)) Evidence {
		m := in("c", 1)
		f(&m)
		return evidenceOf(m)
	}
	for name, c := range map[string]struct {
		narrow, broad Key
		evidence      Evidence
		covered       bool
	}{
		"message under channel":             {MessageKey(1), "c", evidenceOf(in("c", 1)), true},
		"message under another channel":     {MessageKey(1), "d", evidenceOf(in("c", 1)), false},
		"message of nowhere":                {MessageKey(1), "c", Evidence{}, false},
		"thread under channel":              {ThreadKeyOf(1), "c", evidenceOf(in("c", 1)), true},
		"thread of nowhere":                 {ThreadKeyOf(1), "c", Evidence{}, false},
		"channel catch-up under channel":    {activity, "c", Evidence{}, true},
		"channel catch-up under another":    {activity, "d", Evidence{}, false},
		"thread catch-up under thread":      {threadActivity, ThreadKeyOf(1), Evidence{}, true},
		"thread catch-up under another":     {threadActivity, ThreadKeyOf(2), Evidence{}, false},
		"thread catch-up under channel":     {threadActivity, "c", evidenceOf(in("c", 1)), true},
		"ordinary message under catch-up":   {MessageKey(1), activity, evidenceOf(in("c", 1)), true},
		"mention under catch-up":            {MessageKey(1), activity, change(func(m *frontier.Message) { m.Mentioned = true }), false},
		"broadcast under catch-up":          {MessageKey(1), activity, change(func(m *frontier.Message) { m.Broadcast = true }), false},
		"reply under catch-up":              {MessageKey(1), activity, change(func(m *frontier.Message) { m.Reply = true }), false},
		"message of a dm under catch-up":    {MessageKey(1), activity, dms, false},
		"message of an unknown type":        {MessageKey(1), activity, unknown, false},
		"message that is not loaded":        {MessageKey(1), activity, Evidence{DM: dms.DM}, false},
		"message under its thread":          {MessageKey(1), ThreadKeyOf(2), change(func(m *frontier.Message) { m.Reply, m.Root = true, id(2) }), false},
		"message under its thread's bottom": {MessageKey(1), frontier.ThreadActivityKey(id(2)), change(func(m *frontier.Message) { m.Reply, m.Root = true, id(2) }), false},
	} {
		for offset, late := range map[int]bool{-1: true, 0: false, 1: false} {
			r := recordWith(map[Key]Time{c.narrow: 10, c.broad: Time(10 + offset)}, map[Key]uint64{c.narrow: 9, c.broad: 3})
			if err := r.retain(syncBudget, c.evidence); err != nil {
				t.Fatal(err)
			}
			_, kept := r.State.Frontiers[c.narrow]
			if want := !c.covered || late; kept != want {
				t.Errorf("%s, %+d: kept is %v", name, offset, kept)
			}
			if _, ok := r.Reserve[c.narrow]; ok {
				t.Errorf("%s: in the reserve", name)
			}
			if !kept && r.Recent[c.broad] != 9 {
				t.Errorf("%s: the order was not handed on: %v", name, r.Recent)
			}
		}
	}
	// A home that was learned once is enough for a channel, and not for catching up.
	r := recordWith(map[Key]Time{MessageKey(1): 10, "c": 10, MessageKey(2): 10, frontier.ActivityKey("d"): 10}, nil)
	r.Homes = map[string]string{id(1): "c", id(2): "d"}
	if err := r.retain(syncBudget, Evidence{DM: evidenceOf().DM}); err != nil {
		t.Fatal(err)
	}
	if want := []Key{frontier.ActivityKey("d"), "c", MessageKey(2)}; !slices.Equal(keysOf(r.State.Frontiers), slices.Sorted(slices.Values(want))) {
		t.Errorf("%v", keysOf(r.State.Frontiers))
	}
}

// The room of what is dropped goes to the next in line, and a cover that is itself left out replaces
// nothing.
// covers: RL-483, RL-484, RL-485
func TestCoverFreesRoom(t *testing.T) {
	frontiers := map[Key]Time{"c": 100}
	recent := map[Key]uint64{"c": 1}
	var messages []frontier.Message
	for i := range 20 {
		frontiers[MessageKey(i)], recent[MessageKey(i)] = 50, uint64(100-i)
		if i < 10 {
			messages = append(messages, in("c", i))
		}
	}
	room := frontier.Cost("c", 100) + 10*frontier.Cost(MessageKey(0), 50)
	r := recordWith(frontiers, recent)
	if err := r.retain(bytesFor(room*4/3), evidenceOf(messages...)); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if _, kept := r.State.Frontiers[MessageKey(i)]; kept != (i >= 10) {
			t.Errorf("message %d: kept is %v", i, kept)
		}
	}
	if r.Recent["c"] != 100 {
		t.Errorf("the cover has the order %d", r.Recent["c"])
	}
	// With the channel's mark left out, its messages stay.
	tight := recordWith(map[Key]Time{MessageKey(1): 50, "a-channel-with-a-very-long-name-that-does-not-fit-the-budget-of-this-one": 60}, map[Key]uint64{MessageKey(1): 5})
	home := "a-channel-with-a-very-long-name-that-does-not-fit-the-budget-of-this-one"
	tight.Homes = map[string]string{id(1): home}
	if err := tight.retain(bytesFor(frontier.Cost(MessageKey(1), 50)), Evidence{}); err != nil {
		t.Fatal(err)
	}
	if tight.State.Frontiers[MessageKey(1)] != 50 || tight.Reserve[Key(home)] != 60 {
		t.Errorf("%v and %v", tight.State.Frontiers, tight.Reserve)
	}
}

// Registers, and all that they could be measured by, are kept; when that does not fit, nothing is cut.
// covers: RL-495, RL-508, RL-528, RL-529, RL-530, RL-531, RL-532, RL-536
func TestRetainRegisters(t *testing.T) {
	make4 := func() Record {
		frontiers := map[Key]Time{"room": 20, ThreadKeyOf(5): 30}
		recent := make(map[Key]uint64)
		for i := range 300 {
			frontiers[MessageKey(1000+i)], recent[MessageKey(1000+i)] = 25, uint64(i+1)
		}
		r := recordWith(frontiers, recent)
		r.State.Overrides["child"] = frontier.Register{Set: 4, Baseline: 15}
		r.State.Overrides["floor"] = frontier.Register{Clear: 9}
		r.Reserve = map[Key]Time{"child": 3, MessageKey(1): 4}
		return r
	}
	r := make4()
	registers := maps.Clone(r.State.Overrides)
	if err := r.retain(budget{512, frontier.MaxKeys}, evidenceOf(in("room", 1000))); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(r.State.Overrides, registers) || r.State.Frontiers["room"] != 20 || r.State.Frontiers[ThreadKeyOf(5)] != 30 {
		t.Errorf("%+v", r.State)
	}
	// RL-509: the floor of a register comes back from the reserve.
	if r.State.Frontiers["child"] != 3 || r.Reserve["child"] != 0 {
		t.Errorf("%+v", r.State.Frontiers)
	}
	small := make4()
	before, err := small.encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := small.retain(budget{50, frontier.MaxKeys}, Evidence{}); !errors.Is(err, frontier.ErrCapacity) {
		t.Errorf("what cannot be given up does not fit: %v", err)
	}
	if !maps.Equal(small.State.Overrides, registers) || len(before) == 0 {
		t.Error("something was cut")
	}
	covered := recordWith(map[Key]Time{"c": 10, MessageKey(1): 5}, nil)
	covered.State.Overrides["x"] = frontier.Register{Set: 1}
	if err := covered.retain(syncBudget, evidenceOf(in("c", 1))); err != nil || covered.State.Frontiers[MessageKey(1)] != 5 {
		t.Errorf("dropped beside a register: %v, %v", err, covered.State.Frontiers)
	}
}

// The reserve keeps what was evicted, and still decides; it is bounded, and gives up narrow and old
// receipts first.
// covers: RL-496, RL-499, RL-500, RL-501, RL-502, RL-504, RL-506, RL-507, RL-513
func TestReserve(t *testing.T) {
	frontiers := map[Key]Time{}
	for i := range 6000 {
		frontiers[MessageKey(i)] = Time(1000 + i)
	}
	frontiers["old channel"], frontiers[ThreadKeyOf(9)], frontiers[frontier.ActivityKey("c")] = 1, 2, 3
	r := recordWith(frontiers, nil)
	if err := r.retain(budget{emptyBlob, 0}, Evidence{}); err != nil {
		t.Fatal(err)
	}
	if len(r.State.Frontiers) != 0 || len(r.Reserve) != MaxReserveKeys {
		t.Fatalf("%d kept, %d in reserve", len(r.State.Frontiers), len(r.Reserve))
	}
	for _, k := range []Key{"old channel", ThreadKeyOf(9), frontier.ActivityKey("c"), MessageKey(5999)} {
		if r.Reserve[k] != frontiers[k] {
			t.Errorf("%q is not in reserve", k)
		}
	}
	if _, ok := r.Reserve[MessageKey(0)]; ok {
		t.Error("the oldest message is in reserve")
	}
	for k, at := range r.Reserve {
		if frontiers[k] != at {
			t.Errorf("%q became %d", k, at)
		}
	}
	m := in("c", 5999)
	m.At = 1000 + 5999
	v := r.View(m.At + 10)
	if v.Verdict(m).Counts {
		t.Error("a receipt in reserve decides nothing")
	}
	if gone := in("c", 0); !r.View(1010).Verdict(with(gone, 1000)).Counts {
		t.Error("a receipt that was given up decides")
	}

	wide := recordWith(nil, nil)
	for i := range 4000 {
		wide.Reserve[Key(fmt.Sprintf("%0200d", i))] = Time(i)
	}
	if err := wide.retain(syncBudget, Evidence{}); err != nil {
		t.Fatal(err)
	}
	if size := reserveSize(wide.Reserve); size > MaxReserveBytes || size < MaxReserveBytes-300 {
		t.Errorf("%d bytes in reserve", size)
	}
}

func with(m frontier.Message, at Time) frontier.Message { m.At = at; return m }

// A key that comes back from the reserve comes at the higher of both, and leaves the reserve.
// covers: RL-505, RL-509, RL-510, RL-511
func TestReserveReturns(t *testing.T) {
	r := recordWith(map[Key]Time{"old": 5, "c": 100}, nil)
	r.Reserve = map[Key]Time{"old": 20, MessageKey(1): 50, frontier.ActivityKey("d"): 7, "d": 8}
	r.Homes = map[string]string{id(1): "c"}
	if err := r.retain(syncBudget, Evidence{}); err != nil {
		t.Fatal(err)
	}
	if r.State.Frontiers["old"] != 20 {
		t.Errorf("%v", r.State.Frontiers)
	}
	// Covered by what is kept, and by what is in reserve.
	if want := map[Key]Time{"d": 8}; !maps.Equal(r.Reserve, want) {
		t.Errorf("%v", r.Reserve)
	}
	b := open(t).Book(mine(t, "relay"))
	if _, err := b.change(t.Context(), "set up", func(r *Record) (bool, error) {
		r.Reserve["general"] = 50
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	m := with(in("general", 1), 40)
	after, err := b.Act(t.Context(), Evidence{}, func(r Record) (frontier.Plan, error) {
		return r.View(60).Observe(frontier.Surface{Channel: "general", Messages: []frontier.Message{m}}, []string{m.ID})
	})
	if err != nil || after.Revision != 0 || after.Waiting() {
		t.Errorf("%v, %+v", err, after)
	}
}

// Homes are learned from loaded messages, kept while a receipt names them, and asked for only where a
// channel's receipt could stand for the message.
// covers: RL-516, RL-519, RL-521, RL-524
func TestHomes(t *testing.T) {
	b := open(t).Book(mine(t, "relay"))
	r := act(t, b, MessageKey(1), 10, ThreadKeyOf(2), 20, frontier.ThreadActivityKey(id(3)), 30)
	if got := r.Homeless(); len(got) > 0 {
		t.Errorf("asked for %v, though no channel could cover", got)
	}
	r = act(t, b, "c", 20)
	if got := r.Homeless(); !slices.Equal(got, []string{id(1), id(2)}) {
		t.Errorf("asked for %v", got)
	}
	revision, accepted := r.Revision, r.Accepted
	before := r.Known()
	r, err := b.Learn(t.Context(), evidenceOf(in("c", 1), in("c", 9)))
	if err != nil || !maps.Equal(r.Homes, map[string]string{id(1): "c"}) {
		t.Errorf("%v, %v", err, r.Homes)
	}
	if r.Revision != revision || r.Accepted != accepted || !r.Known().Equal(before) {
		t.Error("learning changed what is read")
	}
	if got := r.Homeless(); !slices.Equal(got, []string{id(2)}) {
		t.Errorf("asked for %v", got)
	}
	r = act(t, b, "d", 5) // the next save drops what is covered, and its home
	if _, kept := r.State.Frontiers[MessageKey(1)]; kept || len(r.Homes) > 0 {
		t.Errorf("%v, %v", r.State.Frontiers, r.Homes)
	}
}

// Whatever is saved, in whatever order, the budgets hold, doing it again changes nothing, and no
// verdict is taken back that something kept still tells.
// covers: RL-474, RL-568
func TestRetainLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		r := newRecord()
		var messages []frontier.Message
		for i := range 30 {
			messages = append(messages, frontier.Message{ID: id(i), Channel: fmt.Sprint("c", i%3), Reply: i%2 == 0, Mentioned: i%5 == 0})
		}
		e := evidenceOf(messages[:rng.IntN(len(messages))]...)
		b := budget{emptyBlob + rng.IntN(3000), 1 + rng.IntN(60)}
		for range rng.IntN(25) {
			n := rng.IntN(30)
			k := []Key{MessageKey(n), ThreadKeyOf(n), frontier.ThreadActivityKey(id(n)), Key(fmt.Sprint("c", n%3)),
				frontier.ActivityKey(fmt.Sprint("c", n%3)), Key(strings.Repeat("x", 1+n))}[rng.IntN(6)]
			before := r.Known()
			if err := r.apply(frontier.Plan{Advance: map[Key]Time{k: Time(rng.IntN(50))}}, b, e); err != nil {
				t.Fatal(err)
			}
			if err := r.check("none"); err != nil {
				t.Fatal(err)
			}
			if sizeOf(t, r) > b.bytes || len(r.State.Frontiers) > b.keys {
				t.Fatalf("%d bytes and %d keys, at most %+v", sizeOf(t, r), len(r.State.Frontiers), b)
			}
			v, old := r.View(60), frontier.View{State: before, Now: 60}
			for _, m := range messages {
				m.At = Time(rng.IntN(50))
				if _, loaded := e.Message(m.ID); loaded && old.Covered(m) && !v.Covered(m) {
					t.Fatalf("%+v is unread again after %q: %v", m, k, r.Known().Frontiers)
				}
			}
			first, err := r.encode()
			if err == nil {
				err = r.retain(b, e)
			}
			if second, err2 := r.encode(); err != nil || err2 != nil || string(first) != string(second) {
				t.Fatalf("again is not the same: %v %v\n%s\n%s", err, err2, first, second)
			}
		}
	})
}
