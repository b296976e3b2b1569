package live

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// awkward texts have everything that JSON escapes, and much that it does not.
var awkward = []string{
	"", "plain", "a\"b\\c", "<b>&amp;</b>", "\u2028\u2029", "é日本\U0001f600", "tab\tline\n\x00\x1f\x7f",
	"not utf-8 \xff\xc0", "\b\f\r/", "more than eight plain bytes", strings.Repeat("x", 300),
}

type chance struct{ *rand.Rand }

func (r chance) text() string   { return awkward[r.IntN(len(awkward))] }
func (r chance) yes() bool      { return r.IntN(2) == 0 }
func (r chance) number() uint64 { return r.Uint64N(1<<53) >> r.IntN(54) }

// millis is a time in a few days, or at any other time, with any number of trailing zeros.
func (r chance) millis() int64 {
	const step = 1000
	ms := 1_796_000_000_000 + r.Int64N(300_000_000)
	if r.IntN(3) == 0 {
		ms = r.Int64N(253_402_300_800_000) - r.Int64N(2)*62_135_596_800_000
	}
	return ms - ms%[]int64{1, 10, 100, step}[r.IntN(4)]
}

func (r chance) state() unread.State {
	return []unread.State{unread.Ready, unread.SnapshotServing}[r.IntN(2)]
}

func (r chance) row() unread.Row {
	row := unread.Row{
		Scope: readstate.ScopeInfo{
			ID: readstate.ScopeID(r.text()), Type: readstate.Channel + readstate.ScopeType(r.IntN(5)),
			Name: r.text(), ParentID: readstate.ScopeID(r.text()),
		},
		Ranks: readstate.ScopeRanks{Head: readstate.Revision(r.number()), Replies: r.number()},
		Row: readstate.Row{
			Read: readstate.Revision(r.number()),
			Manual: readstate.Manual{
				Set: r.yes(), Version: r.number(), From: readstate.Revision(r.number()),
			},
			Activity: readstate.ActivityPoint{Read: readstate.Seq(r.number())},
			Follow:   readstate.Follow(r.IntN(3)),
		},
		Level: readstate.Level(r.IntN(4)), Archived: r.yes(), State: r.state(),
		Values: readstate.Values{Unread: r.number(), Attention: r.number(), Activity: r.number()},
	}
	row.Presented.Shown, row.Presented.Unread = r.yes(), r.number()
	for range r.IntN(3) {
		row.Scope.Tags = append(row.Scope.Tags, r.text())
	}
	if r.yes() {
		row.Ranks.Latest = readstate.Latest{ID: "m" + r.text(), At: r.millis()}
		row.Ranks.LastActivityAt = row.Ranks.Latest.At
	}
	if r.yes() {
		row.Ranks.LastActivityAt = r.millis()
	}
	return row
}

func (r chance) summary() unread.Summary {
	return unread.Summary{
		HasUnread: r.yes(), State: r.state(), Complete: r.yes(),
		Badge: readstate.Badge{
			Messages: r.number(), Conversations: r.number(), Attention: r.number(),
		},
		Display: readstate.BadgeDisplay(r.IntN(3)), LSN: readstate.LSN(r.number()),
	}
}

// rowOf describes a row by the type that clients know.
func rowOf(r *unread.Row) Row {
	row := Row{
		Type: r.Scope.Type.String(), Name: r.Scope.Name, Parent: string(r.Scope.ParentID),
		Tags: r.Scope.Tags, Notification: r.Level.String(), Archived: r.Archived,
		Unread: r.Values.Unread, Attention: r.Values.Attention, Activity: r.Values.Activity,
		ManualUnread: r.Row.Manual.Set, Shown: r.Presented.Shown, ShownUnread: r.Presented.Unread,
		State: string(r.State), ContentRevision: uint64(r.Ranks.Head),
		LastActivityAt: instant(r.Ranks.LastActivityAt), ReadState: NewReadState(&r.Row),
	}
	if r.Scope.Type == readstate.Thread {
		row.ReplyCount = r.Ranks.Replies
	}
	row.Follow = []string{"", "following", "stopped"}[r.Row.Follow]
	if l := r.Ranks.Latest; l.ID != "" {
		row.LatestMessage = &LatestMessage{l.ID, time.UnixMilli(l.At).UTC()}
	}
	return row
}

func badgeOf(s *unread.Summary) Badge {
	b := Badge{s.Badge.Messages, s.Badge.Conversations, s.Badge.Attention, s.Badge.Messages}
	switch s.Display {
	case readstate.DisplayConversations:
		b.Display = b.Conversations
	case readstate.DisplayAttention:
		b.Display = b.Attention
	}
	return b
}

// What is written by hand is what encoding/json writes, to the byte.
func TestPagesByHandAsByTheLibrary(t *testing.T) {
	r := chance{rand.New(rand.NewPCG(3, 1))}
	for range 5_000 {
		s := r.summary()
		want := Page{
			Member: r.text(), HasUnread: s.HasUnread, State: string(s.State), Badge: badgeOf(&s),
			Complete: s.Complete, LSN: uint64(s.LSN), Scopes: map[string]Row{},
		}
		byID := map[readstate.ScopeID]unread.Row{}
		for range r.IntN(6) {
			row := r.row()
			row.Scope.ID += readstate.ScopeID(r.text())
			byID[row.Scope.ID] = row
			want.Scopes[string(row.Scope.ID)] = rowOf(&row)
		}
		if strings.Contains(strings.Join(slices.Collect(maps.Keys(want.Scopes)), ""), "\xff") {
			continue // the library sorts what it has made of such a key, and ids are never so
		}
		var rows []unread.Row
		for _, id := range slices.Sorted(maps.Keys(byID)) {
			rows = append(rows, byID[id])
		}
		same(t, AppendRows(nil, &s, rows, want.Member), want)
	}
}

func TestDeltasByHandAsByTheLibrary(t *testing.T) {
	r := chance{rand.New(rand.NewPCG(3, 2))}
	for range 5_000 {
		d := unread.Delta{Removed: r.yes(), Summary: r.summary(), Row: r.row()}
		d.Scope = d.Row.Scope.ID
		got := &change{LSN: uint64(d.Summary.LSN), delta: &d}
		got.Member = r.text()
		want := Delta{
			Member: got.Member, Scope: string(d.Scope), Removed: d.Removed,
			HasUnread: d.Summary.HasUnread, Badge: badgeOf(&d.Summary), LSN: uint64(d.Summary.LSN),
		}
		if row := rowOf(&d.Row); !d.Removed {
			want.Row = &row
		}
		same(t, got.AppendJSON(nil), want)
		for _, v := range []struct{ got, want any }{{got, want}, {Expired{}, Expired{}}} {
			frame := Frame{Event: Event(r.text()), ID: r.text(), Data: v.got}
			data, err := frame.encode()
			if err != nil {
				t.Fatal(err)
			}
			frame.Data = v.want
			same(t, data, frame)
		}
	}
}

func TestTextsAndTimesByHandAsByTheLibrary(t *testing.T) {
	r := chance{rand.New(rand.NewPCG(3, 3))}
	var times instants
	for range 50_000 {
		text := make([]byte, r.IntN(30))
		for i := range text {
			text[i] = byte(' ' + r.IntN(95))
			if r.IntN(20) == 0 {
				text[i] = byte(r.IntN(256))
			}
		}
		same(t, appendQuoted(nil, text), string(text))
		ms := r.millis()
		for range r.IntN(3) {
			same(t, times.append(nil, ms), time.UnixMilli(ms).UTC())
		}
		n := r.number()
		same(t, appendUint(nil, n), n)
	}
}

// same fails where what was written is not what the library writes for the value.
func same(t *testing.T, got []byte, v any) {
	t.Helper()
	want, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Fatalf("by hand %s\nby the library %s", got, want)
	}
}
