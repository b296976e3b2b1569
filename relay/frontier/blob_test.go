package frontier

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// blob is a blob with the contexts given as text.
func blob(contexts string) []byte {
	return []byte(`{"v":1,"client_id":"c","contexts":{` + contexts + `}}`)
}

func frontiersOf(t testing.TB, contexts string) map[Key]Time {
	t.Helper()
	b, err := ParseBlob(blob(contexts))
	if err != nil {
		t.Fatalf("%s: %v", contexts, err)
	}
	return b.State.Frontiers
}

// What is written is read as the same state, and equal states are equal texts.
func TestBlobRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Blob{ClientID: rapid.StringN(1, 64, -1).Draw(t, "client"), State: states.Draw(t, "state")}
		text, err := b.Encode(MaxBlobIn)
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseBlob(text)
		if err != nil || back.ClientID != b.ClientID || !back.State.Equal(b.State) {
			t.Fatalf("%v, %+v\nof %+v\nby %s", err, back, b, text)
		}
		again, err := back.Encode(len(text))
		if err != nil || string(again) != string(text) {
			t.Fatalf("%v, %s\nis not %s", err, again, text)
		}
	})
}

// A blob that is wrong as a whole is refused, never read as nothing.
func TestBlobRefused(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":             ``,
		"null":                `null`,
		"an array":            `[]`,
		"no version":          `{"client_id":"c","contexts":{}}`,
		"another version":     `{"v":2,"client_id":"c","contexts":{}}`,
		"a version of text":   `{"v":"1","client_id":"c","contexts":{}}`,
		"no client":           `{"v":1,"contexts":{}}`,
		"an empty client":     `{"v":1,"client_id":"","contexts":{}}`,
		"a client of numbers": `{"v":1,"client_id":1,"contexts":{}}`,
		"a null client":       `{"v":1,"client_id":null,"contexts":{}}`,
		"a long client":       `{"v":1,"client_id":"` + strings.Repeat("x", 65) + `","contexts":{}}`,
		"no contexts":         `{"v":1,"client_id":"c"}`,
		"null contexts":       `{"v":1,"client_id":"c","contexts":null}`,
		"contexts in a list":  `{"v":1,"client_id":"c","contexts":[]}`,
		"too long":            string(blob(`"a":1`)) + strings.Repeat(" ", MaxBlobIn),
	} {
		if b, err := ParseBlob([]byte(text)); !errors.Is(err, ErrBlob) {
			t.Errorf("%s: %v, %+v", name, err, b)
		}
	}
	long := `{"v":1.0,"client_id":"` + strings.Repeat("😀", 64) + `","contexts":{},"more":true}`
	if _, err := ParseBlob([]byte(long)); err != nil {
		t.Errorf("64 characters: %v", err)
	}
}

// A blob has at most 10,000 keys, read or written. So many do not even fit what can be encrypted.
// covers: RL-560
func TestBlobKeys(t *testing.T) {
	for n, want := range map[int]error{MaxKeys: nil, MaxKeys + 1: ErrCapacity} {
		s := State{Frontiers: map[Key]Time{}}
		for i := range n {
			s.Frontiers[Key(fmt.Sprintf("%x", i))] = 1
		}
		text, err := Blob{ClientID: "c", State: s}.Encode(1 << 20)
		if !errors.Is(err, want) {
			t.Errorf("writing %d keys: %v", n, err)
		}
		if _, err := ParseBlob(text); err == nil {
			t.Errorf("read a blob of %d keys and %d bytes", n, len(text))
		}
	}
}

// What is written has at most the bytes that are allowed.
// covers: RL-557
func TestBlobSize(t *testing.T) {
	s := State{Frontiers: map[Key]Time{}}
	base, err := Blob{ClientID: "c", State: s}.Encode(MaxBlobOut)
	if err != nil {
		t.Fatal(err)
	}
	size := len(base)
	for i := 0; size < MaxBlobOut-250; i++ {
		k := Key(fmt.Sprintf("%0200d", i))
		s.Frontiers[k] = 1
		size += Cost(k, 1)
	}
	size-- // the first has no separator before it
	last := Key(strings.Repeat("x", MaxBlobOut-size-5))
	s.Frontiers[last] = 1
	text, err := Blob{ClientID: "c", State: s}.Encode(MaxBlobOut)
	if err != nil || len(text) != MaxBlobOut {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	s.Frontiers[last] = 10
	if _, err := (Blob{ClientID: "c", State: s}).Encode(MaxBlobOut); !errors.Is(err, ErrCapacity) {
		t.Errorf("%d bytes: %v", MaxBlobOut+1, err)
	}
}

// An entry that is wrong is left out, and nothing else is.
func TestBlobEntries(t *testing.T) {
	for contexts, want := range map[string]map[Key]Time{
		`"a":0,"b":4294967295`: {"a": 0, "b": MaxTime},
		`"a":-1,"b":4294967296,"c":1.5,"d":"1","e":null,"f":true,"g":[1],"h":1`: {"h": 1},
		`"a":1.0,"b":1e3,"c":-0,"d":10e-1,"e":1.50e1,"f":0e99999999999,"g":-0.0`: {
			"a": 1, "b": 1000, "c": 0, "d": 1, "e": 15, "f": 0, "g": 0},
		`"a":1e99999999999,"b":1e-99999999999,"c":1e10,"d":429496729.5e1`:           {"d": 4294967295},
		`"` + strings.Repeat("é", 129) + `":1,"` + strings.Repeat("é", 128) + `":2`: {Key(strings.Repeat("é", 128)): 2},
		`"":1,"esc:":2,"a":3`:                        {"a": 3},
		`"esc:ov_s:x":2,"esc:esc:x":3,"__proto__":4`: {"ov_s:x": 2, "esc:x": 3, "__proto__": 4},
		`"esc:a":5,"a":3`:                            {"a": 5},
		`"esc:a":3,"a":5`:                            {"a": 5},
		`"a":7,"a":3`:                                {"a": 3},
		`"ov_x:a":1,"ov_":1,"ov_s":1,"a":1`:          {"a": 1},
		`"esc:` + strings.Repeat("x", 253) + `":1`:   {},
	} {
		if got := frontiersOf(t, contexts); !maps.Equal(got, want) {
			t.Errorf("%s: %v", contexts, got)
		}
	}
}

// A register is whole, or a floor alone, or it is not there; its frontier stays either way.
func TestBlobRegisters(t *testing.T) {
	for contexts, want := range map[string]Register{
		`"ov_s:room":1,"ov_c:room":2,"ov_b:room":3`: {1, 2, 3},
		`"ov_c:room":7`:                                {0, 7, 0},
		`"ov_s:room":3`:                                {},
		`"ov_b:room":3`:                                {},
		`"ov_c:room":1,"ov_b:room":3`:                  {},
		`"ov_s:room":1,"ov_c:room":-1,"ov_b:room":3`:   {},
		`"ov_s:room":"x","ov_c:room":1`:                {},
		`"ov_s:room":1,"ov_c:room":2,"ov_b:room":null`: {},
		`"ov_c:room":0`:                                {},
	} {
		b, err := ParseBlob(blob(`"room":4,` + contexts))
		if err != nil {
			t.Fatal(err)
		}
		if got := b.State.Overrides["room"]; got != want || len(b.State.Overrides) > 1 || b.State.Frontiers["room"] != 4 {
			t.Errorf("%s: %+v", contexts, b.State)
		}
		if _, there := b.State.Overrides["room"]; there != (want != Register{}) {
			t.Errorf("%s: a register that was never marked", contexts)
		}
	}
	long := strings.Repeat("x", MaxOverrideKey)
	b, err := ParseBlob(blob(`"ov_c:` + long + `":1,"ov_c:` + long + `y":1,"ov_c:":1,"ov_c:ov_s:a":1,"ov_c:esc:a":2`))
	if err != nil {
		t.Fatal(err)
	}
	// The context of a register is never escaped.
	if want := map[Key]Register{Key(long): {0, 1, 0}, "ov_s:a": {0, 1, 0}, "esc:a": {0, 2, 0}}; !maps.Equal(b.State.Overrides, want) {
		t.Errorf("%+v", b.State.Overrides)
	}
}

// Sizes that decide how much fits.
func TestCost(t *testing.T) {
	channel := Key("01234567-89ab-cdef-0123-456789abcdef")
	if got := Cost(channel, 1_700_000_000); got != 50 {
		t.Errorf("the mark of a channel costs %d", got)
	}
	if got := Cost(MessageKey(id(1)), 1_700_000_000); got != 82 {
		t.Errorf("the mark of a message costs %d", got)
	}
}

func FuzzParseBlob(f *testing.F) {
	for _, contexts := range []string{
		``, `"a":1`, `"esc:ov_s:x":2,"esc:esc:x":3`, `"ov_s:r":1,"ov_c:r":2,"ov_b:r":3,"r":9`, `"ov_c:r":1e2`,
		`"a":1.0,"b":-0,"c":1e99999999999`, `"a":1,"a":2`, `"\ud800":1`,
	} {
		f.Add(blob(contexts))
	}
	f.Add([]byte(`{"v":1e0,"client_id":"c","contexts":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := ParseBlob(data)
		if err != nil {
			if !errors.Is(err, ErrBlob) {
				t.Fatalf("another error: %v", err)
			}
			return
		}
		for k := range b.State.Frontiers {
			if err := k.Check(); err != nil {
				t.Fatalf("read %q: %v", k, err)
			}
		}
		text, err := b.Encode(1 << 20)
		if err != nil {
			t.Fatalf("it does not encode: %v", err)
		}
		if len(text) > MaxBlobIn {
			return // shorter on the way in, by escapes
		}
		back, err := ParseBlob(text)
		if err != nil || !back.State.Equal(b.State) || back.ClientID != b.ClientID {
			t.Fatalf("%v: %+v came back as %+v", err, b, back)
		}
	})
}
