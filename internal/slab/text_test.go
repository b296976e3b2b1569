package slab

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTextKeepsStrings(t *testing.T) {
	var m Memory
	x := NewText(&m)
	texts := []string{
		"", "a", "seven b", "eight by", "with a \x00 in it", "\xff\xfe no UTF-8", "größer",
		strings.Repeat("x", 126), strings.Repeat("y", 127), strings.Repeat("z", 128),
		strings.Repeat("long ", 4000), strings.Repeat("L", 1<<17),
	}
	refs := map[string]Ref{}
	for _, s := range texts {
		refs[s] = x.Put(s)
	}
	if refs[""] != 0 {
		t.Errorf("the empty text is %d", refs[""])
	}
	for s, r := range refs {
		if got := x.String(r); got != s {
			t.Errorf("text %d is %.20q, want %.20q", r, got, s)
		}
		if got := x.View(r); string(got) != s {
			t.Errorf("text %d in place is %.20q, want %.20q", r, got, s)
		}
		for _, other := range texts {
			if x.Equal(r, other) != (s == other) {
				t.Errorf("%.20q equals %.20q: %t", s, other, s != other)
			}
		}
	}
	if x.Bytes() != m.Bytes() || x.Room() < 15<<30 {
		t.Errorf("Bytes %d of %d, Room %d", x.Bytes(), m.Bytes(), x.Room())
	}
	for _, r := range refs {
		x.Drop(r)
	}
	x.Drop(0)
	mustPanic(t, func() { x.Drop(refs["a"]) })
	mustPanic(t, func() { x.Drop(-1) })
	if x.cells.Len() != 0 {
		t.Errorf("%d cells are in use", x.cells.Len())
	}
}

func TestTextSetKeepsThePlaceWhereItFits(t *testing.T) {
	x := NewText(new(Memory))
	r := x.Put("a text of 23 bytes here") // with its length, three cells
	for _, s := range []string{"shorter text in 3", "twenty-three bytes long"} {
		if got := x.Set(r, s); got != r || x.String(r) != s {
			t.Errorf("Set gave %d %q, want %d %q", got, x.String(got), r, s)
		}
	}
	x.Set(r, "shorter text in 3")
	if rest := octets(x.cells.View(int32(r), 3))[18:]; string(rest) != "\x00\x00\x00\x00\x00\x00" {
		t.Errorf("%q of the old text is left", rest)
	}
	short := x.Set(r, "short")
	if short == r || x.String(short) != "short" {
		t.Errorf("Set gave %d %q", short, x.String(short))
	}
	if got := x.Put("again in three cells"); got != r {
		t.Errorf("the place was not given back, Put gave %d", got)
	}
	if got := x.Set(short, ""); got != 0 || x.cells.InUse(int32(short)) {
		t.Errorf("Set to the empty text gave %d", got)
	}
	if got := x.Set(0, "from none"); x.String(got) != "from none" {
		t.Errorf("Set gave %q", x.String(got))
	}
	mustPanic(t, func() { x.Set(short, "x") })
}

func TestTextIndexSpaceEnds(t *testing.T) {
	x := NewText(new(Memory))
	x.cells.rows.limit = 1 << 12
	r := x.Put("kept")
	mustPanic(t, func() { x.Set(r, strings.Repeat("x", 1<<16)) })
	mustPanic(t, func() { x.Set(r, strings.Repeat("x", 1<<24)) })
	if x.String(r) != "kept" {
		t.Errorf("a refused Set left %q", x.String(r))
	}
}

func TestTextLengthEnds(t *testing.T) {
	x := NewText(new(Memory))
	longest := strings.Repeat("m", MaxText)
	if r := x.Put(longest); !x.Equal(r, longest) {
		t.Error("the longest text was not kept")
	}
	mustPanic(t, func() { x.Put(longest + "12345678") })
}

func TestTextComparesWithoutCopying(t *testing.T) {
	x := NewText(new(Memory))
	s := strings.Repeat("compared in place ", 100)
	r := x.Put(s)
	if n := testing.AllocsPerRun(100, func() {
		if !x.Equal(r, s) {
			t.Fatal("not equal")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTextPropertyEqualsMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := NewText(new(Memory))
		want := map[int32]string{}
		text := rapid.OneOf(
			rapid.StringN(-1, -1, 20),
			rapid.StringN(-1, -1, 300),
			rapid.Map(rapid.IntRange(1, 20_000), func(n int) string { return strings.Repeat("t", n) }),
		)
		add := func(r Ref, s string) {
			if _, twice := want[int32(r)]; twice && r != 0 {
				t.Fatalf("text %d was given twice", r)
			}
			want[int32(r)] = s
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				s := text.Draw(t, "s")
				add(x.Put(s), s)
			},
			"set": func(t *rapid.T) {
				if len(want) == 0 {
					t.Skip("no text")
				}
				old := rapid.SampledFrom(sortedKeys(want)).Draw(t, "old")
				s := text.Draw(t, "s")
				delete(want, old)
				add(x.Set(Ref(old), s), s)
			},
			"drop": func(t *rapid.T) {
				if len(want) == 0 {
					t.Skip("no text")
				}
				r := rapid.SampledFrom(sortedKeys(want)).Draw(t, "r")
				x.Drop(Ref(r))
				delete(want, r)
			},
			"": func(t *rapid.T) {
				cells := 0
				for r, s := range want {
					if x.String(Ref(r)) != s || !x.Equal(Ref(r), s) || x.Equal(Ref(r), s+"x") {
						t.Fatalf("text %d is %q, want %q", r, x.String(Ref(r)), s)
					}
					if s != "" {
						cells += x.cells.Size(cellsFor(s))
					}
				}
				if x.cells.Len() != cells {
					t.Fatalf("%d cells are in use, want %d", x.cells.Len(), cells)
				}
			},
		})
	})
}
