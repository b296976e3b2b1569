package unread

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/tidemark-im/tidemark/internal/slab"
	"github.com/tidemark-im/tidemark/readstate"
)

// linesOf reads a page, and copies its lines.
func (d *desk) linesOf(m readstate.MemberID, cursor string, limit int) (s Summary, next string, all []Line) {
	d.t.Helper()
	state, err := d.r.Lines(cold(), testSpace, m, cursor, limit, func(p *LinePage) {
		s, next = p.Summary, p.Next
		for i := range p.Len() {
			var l Line
			p.Line(i, &l)
			for _, text := range []*[]byte{&l.ID, &l.Name, &l.ParentID, (*[]byte)(&l.Tags), &l.Latest} {
				*text = bytes.Clone(*text)
			}
			all = append(all, l)
		}
	})
	if err != nil || state != s.State {
		d.t.Fatalf("lines of %s: %s, %v", m, state, err)
	}
	return s, next, all
}

// Lines are the rows of the same page, whatever kind of row it is, in the order of scope ids.
func TestLinesAreRows(t *testing.T) {
	d := newDesk(t, Config{}, append(room, "create s2 dm", "join s2 A", "join s2 B", "post s1 A",
		"create s3 thread s1 root=1", "post s3 B", "post s3 A", "post s1 A @B", "post s2 A",
		"create s10 channel", "join s10 A", "join s10 B", "post s10 A", "level s10 B none",
		"create s4 channel", "join s4 A", "join s4 B", "post s4 A", "archive s4",
		"post s1 A", "remove s1 1", "unread s2 B v=0", "read s1 B 2 v=0")...)
	d.load("A", "B", "C")
	for _, m := range []readstate.MemberID{"A", "B", "C"} {
		for _, limit := range []int{1, 2, 100} {
			for cursor := ""; ; {
				page, err := d.r.Rows(cold(), testSpace, m, cursor, limit)
				if err != nil {
					t.Fatal(err)
				}
				var want []Line
				for i := range page.Rows {
					want = append(want, page.Rows[i].Line(nil))
				}
				slices.SortFunc(want, func(a, b Line) int { return bytes.Compare(a.ID, b.ID) })
				s, next, got := d.linesOf(m, cursor, limit)
				if s != page.Summary || next != page.Next || !sameLines(got, want) {
					t.Fatalf("lines of %s are %+v\nand not %+v", m, got, want)
				}
				if cursor = next; cursor == "" {
					break
				}
			}
		}
	}
	state, err := d.r.Lines(cold(), testSpace, "B", "x.1.1.1", 10, func(*LinePage) { t.Error("read") })
	if !errors.Is(err, ErrCursor) || state != Unavailable {
		t.Errorf("a cursor that is none: %s, %v", state, err)
	}
}

// sameLines compares lines, for whose texts it is the same to be empty or nil.
func sameLines(a, b []Line) bool {
	return slices.EqualFunc(a, b, func(a, b Line) bool {
		for _, l := range []*Line{&a, &b} {
			for _, text := range []*[]byte{&l.ID, &l.Name, &l.ParentID, (*[]byte)(&l.Tags), &l.Latest} {
				*text = append([]byte{}, *text...)
			}
		}
		return reflect.DeepEqual(a, b)
	})
}

// A function that panics leaves the workspace as usable as before.
func TestLinesWhoseReaderPanics(t *testing.T) {
	d := newDesk(t, Config{}, append(room, "post s1 A")...)
	d.load("B")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = d.r.Lines(cold(), testSpace, "B", "", 10, func(*LinePage) { panic("reader") })
	}()
	d.do("post s1 A")
	if _, _, lines := d.linesOf("B", "", 10); len(lines) != 1 || lines[0].Values.Unread != 2 {
		t.Errorf("lines %+v", lines)
	}
}

// Lines come in the order of ids, whether or not the beginnings of these tell it.
func TestLinesAreSorted(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	alphabets := []string{"01", "abcdefghijklmnop", "é日\U0001f600z"}
	for range 2000 {
		prefix := "channel-"[:r.IntN(9)]
		letters := []rune(alphabets[r.IntN(len(alphabets))])
		var p LinePage
		var want []string
		for i := range r.IntN(40) {
			id := prefix
			for range r.IntN(12) {
				id += string(letters[r.IntN(len(letters))])
			}
			if slices.Contains(want, id) {
				id += fmt.Sprint("-", i)
			}
			want = append(want, id)
			p.ids = append(p.ids, []byte(id))
		}
		slices.Sort(want)
		p.sort()
		var got []string
		for i := range p.Len() {
			got = append(got, string(p.ids[indexOf(p.order[i])]))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("sorted %q, want %q", got, want)
		}
	}
}

func TestTagsAsTheyLie(t *testing.T) {
	text := slab.NewText(new(slab.Memory))
	for _, want := range [][]string{nil, {}, {""}, {"a"}, {"a", "", "b:c", "3:x", "日本"}} {
		ref := text.Put(packTags(want))
		var got []string
		for tag := range Tags(text.View(ref)).All() {
			got = append(got, string(tag))
		}
		if !slices.Equal(got, want) {
			t.Errorf("tags %q, want %q", got, want)
		}
	}
}
