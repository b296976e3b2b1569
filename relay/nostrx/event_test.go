package nostrx

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// keyOf is the key of a small secret number.
func keyOf(t testing.TB, n int) *Key {
	t.Helper()
	key, err := ParseKey(fmt.Sprintf("%064x", n))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signed(t testing.TB, key *Key, e Event) Event {
	t.Helper()
	e, err := key.Sign(e)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestParseKey(t *testing.T) {
	const order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"
	for _, text := range []string{
		"", "1", strings.Repeat("0", 64), strings.Repeat("g", 64), order, strings.Repeat("f", 64),
		strings.Repeat("1", 63), strings.Repeat("1", 65),
	} {
		_, err := ParseKey(text)
		if !errors.Is(err, ErrKey) || len(text) > 1 && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
	key, err := ParseKey("\n" + strings.ToUpper(strings.Repeat("ab", 32)) + "\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{key.String(), fmt.Sprintf("%v %+v %#v", key, key, key), key.LogValue().String()} {
		if strings.Contains(shown, key.secret) {
			t.Errorf("the secret shows in %q", shown)
		}
	}
	const one = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"
	if got := keyOf(t, 1).Public(); got != one {
		t.Errorf("the public key of 1 is %s", got)
	}
}

// An event is what it was signed as, whatever its text.
func TestSignVerify(t *testing.T) {
	key := keyOf(t, 7)
	for _, content := range []string{"", "plain", "\"\\\n\r\t\b\f\x00\x1f\x7f", "<&>\u2028\u2029", "emoji 😀 é"} {
		e := signed(t, key, Event{Kind: KindChat, CreatedAt: 1700000000, Content: content,
			Tags: []Tag{{"h", "general"}, {}, {"p"}, {"e", content, ""}}})
		back, err := ParseEvent(e.Encode(), true)
		if err != nil {
			t.Fatalf("%q: %v", content, err)
		}
		if err := back.Verify(); err != nil || back.Content != content {
			t.Errorf("%q: %v, came back as %q", content, err, back.Content)
		}
		for name, damage := range map[string]func(*Event){
			"id":      func(e *Event) { e.ID = EventID(strings.Repeat("0", 64)) },
			"author":  func(e *Event) { e.PubKey = keyOf(t, 8).Public() },
			"time":    func(e *Event) { e.CreatedAt++ },
			"kind":    func(e *Event) { e.Kind++ },
			"tags":    func(e *Event) { e.Tags = e.Tags[1:] },
			"content": func(e *Event) { e.Content += "x" },
			"sig":     func(e *Event) { e.Sig = strings.Repeat("0", 128) },
		} {
			bad := back
			damage(&bad)
			if err := bad.Verify(); !errors.Is(err, ErrForged) {
				t.Errorf("%q: with another %s: %v", content, name, err)
			}
		}
	}
}

// ParseEvent takes one reading of an event, or none.
func TestParseEventForm(t *testing.T) {
	good := string(signed(t, keyOf(t, 7), Event{Kind: 9, CreatedAt: 5, Tags: []Tag{{"h", "c"}}}).Encode())
	edit := func(from, to string) string {
		if !strings.Contains(good, from) {
			t.Fatalf("nothing to edit: %s", from)
		}
		return strings.Replace(good, from, to, 1)
	}
	for name, text := range map[string]string{
		"nothing":           "",
		"an array":          "[]",
		"null":              "null",
		"a member twice":    edit(`"kind":9`, `"kind":9,"kind":9`),
		"no kind":           edit(`"kind":9,`, ``),
		"a null kind":       edit(`"kind":9`, `"kind":null`),
		"a kind of text":    edit(`"kind":9`, `"kind":"9"`),
		"a large kind":      edit(`"kind":9`, `"kind":65536`),
		"a negative kind":   edit(`"kind":9`, `"kind":-1`),
		"a negative time":   edit(`"created_at":5`, `"created_at":-5`),
		"half a second":     edit(`"created_at":5`, `"created_at":5.5`),
		"an unsafe time":    edit(`"created_at":5`, `"created_at":9007199254740992`),
		"tags of text":      edit(`[["h","c"]]`, `["h"]`),
		"a tag of numbers":  edit(`[["h","c"]]`, `[["h",1]]`),
		"a null tag":        edit(`[["h","c"]]`, `[null]`),
		"a null element":    edit(`[["h","c"]]`, `[["h",null]]`),
		"null tags":         edit(`[["h","c"]]`, `null`),
		"an upper-case id":  edit(`"id":"`, `"id":"A`),
		"something follows": good + "x",
	} {
		if e, err := ParseEvent([]byte(text), false); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, %+v", name, err, e)
		}
	}
	more := edit(`"kind":9`, `"kind":9,"seen":true`)
	if _, err := ParseEvent([]byte(more), false); err != nil {
		t.Errorf("a member more: %v", err)
	}
	if _, err := ParseEvent([]byte(more), true); err == nil {
		t.Error("a member more was taken for the exact seven")
	}
	if _, err := ParseEvent([]byte(edit(`[["h","c"]]`, `[["h","null"]]`)), false); err != nil {
		t.Errorf("the word null: %v", err)
	}
}

// A received event may have 96 KiB, and not a byte more.
// covers: RL-554
func TestEventSizeIn(t *testing.T) {
	key := keyOf(t, 7)
	e := signed(t, key, Event{Kind: KindAppData, CreatedAt: 5})
	room := MaxEventIn - len(e.Encode())
	for over, want := range map[int]error{0: nil, 1: ErrEventSize} {
		e := signed(t, key, Event{Kind: KindAppData, CreatedAt: 5, Content: strings.Repeat("x", room+over)})
		if _, err := ParseEvent(e.Encode(), true); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v", MaxEventIn+over, err)
		}
	}
}

// What leaves is genuine, and at most 64 KiB.
// covers: RL-434, RL-558, RL-559
func TestOutgoing(t *testing.T) {
	key := keyOf(t, 7)
	room := MaxEventOut - len(signed(t, key, Event{Kind: KindAppData, CreatedAt: 5}).Encode())
	for over, want := range map[int]error{0: nil, 1: ErrEventSize, 25_000: ErrEventSize} {
		e := signed(t, key, Event{Kind: KindAppData, CreatedAt: 5, Content: strings.Repeat("x", room+over)})
		if _, err := outgoing(e); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v", MaxEventOut+over, err)
		}
	}
	tampered := signed(t, key, Event{Kind: KindAppData, CreatedAt: 5})
	tampered.CreatedAt++
	if _, err := outgoing(tampered); !errors.Is(err, ErrForged) {
		t.Errorf("a tampered event: %v", err)
	}
}

// Of a coordinate the newest counts, in a second the lower id, in whatever order they arrive.
func TestCompare(t *testing.T) {
	older, low, high := Event{CreatedAt: 1, ID: "00"}, Event{CreatedAt: 2, ID: "0a"}, Event{CreatedAt: 2, ID: "0b"}
	for _, order := range [][]Event{{older, low, high}, {high, low, older}, {low, older, high}} {
		slices.SortFunc(order, Compare)
		if order[0].ID != low.ID || order[1].ID != high.ID || order[2].ID != older.ID {
			t.Errorf("sorted %v", order)
		}
	}
}

func TestFilter(t *testing.T) {
	e := Event{ID: "1", PubKey: "a", Kind: 9, CreatedAt: 10, Tags: []Tag{{"h", "x"}, {"e", "1"}, {"e", "2"}}}
	for text, want := range map[string]bool{
		`{}`:                                   true,
		`{"ids":["1"],"authors":["a"]}`:        true,
		`{"ids":[]}`:                           false,
		`{"kinds":[9,10],"since":10}`:          true,
		`{"since":11}`:                         false,
		`{"until":10}`:                         true,
		`{"until":9}`:                          false,
		`{"#h":["x"],"#e":["2"]}`:              true,
		`{"#h":["y"]}`:                         false,
		`{"#q":["x"]}`:                         false,
		`{"authors":["b"]}`:                    false,
		`{"limit":0,"include_aux":true}`:       true,
		`{"kinds":[40003],"include_aux":true}`: false,
	} {
		var f Filter
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got := f.Matches(e); got != want {
			t.Errorf("%s: %v", text, got)
		}
		again, err := json.Marshal(f)
		var back Filter
		if err != nil || json.Unmarshal(again, &back) != nil || back.Matches(e) != want {
			t.Errorf("%s came back as %s, %v", text, again, err)
		}
	}
	for _, text := range []string{
		`[]`, `{"search":"x"}`, `{"limit":-1}`, `{"limit":"1"}`, `{"since":null}`, `{"#h":null}`, `{"#h":"x"}`,
		`{"#":["x"]}`, `{"ids":["1"],"ids":["2"]}`,
	} {
		var f Filter
		if err := json.Unmarshal([]byte(text), &f); err == nil {
			t.Errorf("%s was read as %+v", text, f)
		}
	}
}
