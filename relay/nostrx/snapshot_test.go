package nostrx

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

var community = uuid.MustParse("01234567-89ab-cdef-0123-456789abcdef")

// The ids that two independent implementations agree on.
func TestSnapshotID(t *testing.T) {
	one := keyOf(t, 1).Public()
	for _, c := range []struct {
		community string
		ids       []EventID
		want      string
	}{
		{"00000000-0000-0000-0000-000000000001", nil,
			"c743efa3271e9ff6556bcf01f74c0a9ba783839b10a61b490e1ec4a1b37f8649"},
		{"01234567-89ab-cdef-0123-456789abcdef",
			[]EventID{EventID(strings.Repeat("aa", 32)), EventID(strings.Repeat("bb", 32))},
			"0d9f6a1bd0bea2bfb20fbb2fd1521376831f7e1bdcacf97a70b347b3ed785e66"},
	} {
		got, err := SnapshotID(uuid.MustParse(c.community), one, c.ids)
		if err != nil || got != c.want {
			t.Errorf("%s, %v", got, err)
		}
	}
	if _, err := SnapshotID(community, one, []EventID{"aa"}); err == nil {
		t.Error("a short id has a hash")
	}
}

// answer is a snapshot as a relay sends it.
type answer struct {
	Version   any    `json:"read_state_snapshot"`
	Complete  any    `json:"complete"`
	Community string `json:"community_id"`
	Author    PubKey `json:"pubkey"`
	ID        string `json:"snapshot_id"`
	Events    []any  `json:"events"`
}

func answerOf(t testing.TB, key *Key, events ...Event) answer {
	t.Helper()
	slices.SortFunc(events, Compare)
	a := answer{Version: 1, Complete: true, Community: community.String(), Author: key.Public(), Events: []any{}}
	var ids []EventID
	for _, e := range events {
		a.Events = append(a.Events, e)
		ids = append(ids, e.ID)
	}
	id, err := SnapshotID(community, key.Public(), ids)
	if err != nil {
		t.Fatal(err)
	}
	a.ID = id
	return a
}

func (a answer) encode(t testing.TB) []byte {
	t.Helper()
	data, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func descriptor() SnapshotDescriptor {
	return SnapshotDescriptor{Community: community, MaxEvents: MaxSnapshotEvents, MaxBytes: MaxSnapshotBytes}
}

func appData(t testing.TB, key *Key, d string, at int64, content string) Event {
	t.Helper()
	return signed(t, key, Event{Kind: KindAppData, CreatedAt: at, Tags: []Tag{{"d", d}}, Content: content})
}

// A snapshot is taken whole when everything in it is right, and not at all otherwise.
// covers: RL-540, RL-541, RL-542, RL-543, RL-544
func TestParseSnapshot(t *testing.T) {
	key, other := keyOf(t, 1), keyOf(t, 2)
	a, b := appData(t, key, "read-state:1", 10, "x"), appData(t, key, "of another app", 11, "y")
	tampered := a
	tampered.Content = "z"
	bare := signed(t, key, Event{Kind: KindAppData, CreatedAt: 12})
	empty := appData(t, key, "", 13, "")

	s, err := ParseSnapshot(answerOf(t, key, a, b, bare).encode(t), descriptor(), key.Public())
	if err != nil || len(s.Events) != 3 {
		t.Fatalf("a good one: %v, %+v", err, s)
	}
	if s, err := ParseSnapshot(answerOf(t, key).encode(t), descriptor(), key.Public()); err != nil || len(s.Events) != 0 {
		t.Fatalf("an empty one: %v, %+v", err, s)
	}
	change := func(f func(*answer)) []byte {
		wrong := answerOf(t, key, a, b)
		f(&wrong)
		return wrong.encode(t)
	}
	text := string(answerOf(t, key, a, b).encode(t))
	for name, data := range map[string][]byte{
		"an array":                  []byte("[]"),
		"nothing":                   nil,
		"incomplete":                change(func(x *answer) { x.Complete = false }),
		"complete as text":          change(func(x *answer) { x.Complete = "true" }),
		"another version":           change(func(x *answer) { x.Version = 2 }),
		"version as text":           change(func(x *answer) { x.Version = "1" }),
		"another community":         change(func(x *answer) { x.Community = uuid.Nil.String() }),
		"another author":            change(func(x *answer) { x.Author = other.Public() }),
		"one event less":            change(func(x *answer) { x.Events = x.Events[:1] }),
		"another order":             change(func(x *answer) { slices.Reverse(x.Events) }),
		"a tampered event":          answerOf(t, key, tampered).encode(t),
		"a foreign event":           answerOf(t, key, appData(t, other, "d", 1, "")).encode(t),
		"another kind":              answerOf(t, key, signed(t, key, Event{Kind: KindChat})).encode(t),
		"a coordinate twice":        answerOf(t, key, a, appData(t, key, "read-state:1", 9, "w")).encode(t),
		"no d beside an empty":      answerOf(t, key, bare, empty).encode(t),
		"a member more in an event": []byte(strings.Replace(text, `"kind":30078`, `"kind":30078,"x":1`, 1)),
		"a member twice":            []byte(strings.Replace(text, `"complete":true`, `"complete":true,"complete":true`, 1)),
		"a member twice in an event": []byte(strings.Replace(text, `"kind":30078`,
			`"kind":30078,"kind":30078`, 1)),
	} {
		if s, err := ParseSnapshot(data, descriptor(), key.Public()); !errors.Is(err, ErrSnapshot) {
			t.Errorf("%s: %v, %+v", name, err, s)
		}
	}
}

// The bounds of a snapshot hold to the event and to the byte.
// covers: RL-551, RL-552
func TestSnapshotBounds(t *testing.T) {
	key := keyOf(t, 1)
	a := answerOf(t, key, appData(t, key, "a", 1, ""), appData(t, key, "b", 2, ""))
	d := descriptor()
	raw, err := json.Marshal(a.Events)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ events, bytes int }{{2, len(raw)}, {1, len(raw)}, {2, len(raw) - 1}} {
		d.MaxEvents, d.MaxBytes = c.events, c.bytes
		_, err := ParseSnapshot(a.encode(t), d, key.Public())
		if fits := c.events >= 2 && c.bytes >= len(raw); fits != (err == nil) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	// White space is not counted in the array, but in the stream.
	spaced := strings.Replace(string(a.encode(t)), `"events":[`, `"events":[ `, 1)
	d.MaxEvents, d.MaxBytes = 2, len(raw)
	if _, err := ParseSnapshot([]byte(spaced), d, key.Public()); err != nil {
		t.Errorf("with white space: %v", err)
	}
	if MaxSnapshotEvents != 4096 || MaxSnapshotBytes != 8_388_608 || maxSnapshotAnswer != 8_392_704 {
		t.Error("the limits are other ones")
	}
}

// The descriptor of the relay's document decides whether there is a snapshot query at all; whatever
// else the document has does not matter.
// covers: RL-538, RL-540
func TestParseInfo(t *testing.T) {
	const good = `{"version":1,"community_id":"01234567-89ab-cdef-0123-456789abcdef","max_events":4096,` +
		`"max_event_array_bytes":8388608,"max_bytes":7}`
	for text, want := range map[string]*SnapshotDescriptor{
		good: {Community: community, MaxEvents: 4096, MaxBytes: 8388608},
		`{"version":1,"community_id":"01234567-89ab-cdef-0123-456789abcdef"}`: {
			Community: community, MaxEvents: 4096, MaxBytes: 8388608},
		`{"version":1,"community_id":"01234567-89ab-cdef-0123-456789abcdef","max_events":9,"max_event_array_bytes":99999999}`: {
			Community: community, MaxEvents: 9, MaxBytes: 8388608},
		`{"version":2,"community_id":"01234567-89ab-cdef-0123-456789abcdef"}`:   nil,
		`{"version":"1","community_id":"01234567-89ab-cdef-0123-456789abcdef"}`: nil,
		`{"version":1,"community_id":"01234567-89AB-cdef-0123-456789abcdef"}`:   nil,
		`{"version":1,"community_id":"0123456789abcdef0123456789abcdef"}`:       nil,
		`{"version":1}`: nil,
		`{"version":1,"community_id":"01234567-89ab-cdef-0123-456789abcdef","max_events":0}`: nil,
		`[]`:   nil,
		`null`: nil,
	} {
		info, err := ParseInfo(fmt.Appendf(nil, `{"name":"r","self":"x","limitation":{},"read_state_snapshot":%s}`, text))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Snapshot; (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s: %+v", text, got)
		}
		if info.Self != "" {
			t.Errorf("the relay's key is %q", info.Self)
		}
	}
	if info, err := ParseInfo([]byte(`{"self":"` + string(keyOf(t, 3).Public()) + `"}`)); err != nil ||
		info.Self != keyOf(t, 3).Public() || info.Snapshot != nil {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := ParseInfo([]byte("<html>")); err == nil {
		t.Error("a page was taken for a document")
	}
}

func FuzzParseSnapshot(f *testing.F) {
	key := keyOf(f, 1)
	f.Add(answerOf(f, key).encode(f))
	f.Add(answerOf(f, key, appData(f, key, "a", 1, "x"), appData(f, key, "b", 2, "")).encode(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseSnapshot(data, descriptor(), key.Public())
		if err != nil {
			if !errors.Is(err, ErrSnapshot) {
				t.Errorf("another error: %v", err)
			}
			return
		}
		for _, e := range s.Events {
			if e.PubKey != key.Public() || e.Verify() != nil {
				t.Errorf("took %+v", e)
			}
		}
	})
}

func FuzzParseMessage(f *testing.F) {
	for _, text := range []string{
		`["EVENT","t1",{"id":"x"}]`, `["EOSE","t1"]`, `["CLOSED","t1","auth-required: x"]`,
		`["OK","id",true,""]`, `["NOTICE","x"]`, `["AUTH","x"]`, `["COUNT","x",{}]`, `[]`, `["EVENT"]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseMessage(data)
		if err == nil && m.label == labelEvent && m.event == nil {
			t.Error("an event frame without an event")
		}
		if e, err := ParseEvent(data, false); err == nil && e.check() != nil {
			t.Errorf("parsed %+v", e)
		}
	})
}
