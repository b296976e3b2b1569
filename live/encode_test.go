package live

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// awkward texts have everything that JSON escapes, and much that it does not.
var awkward = []string{
	"", "plain", "a\"b\\c", "<b>&amp;</b>", "\u2028\u2029", "é日本\U0001f600", "tab\tline\n\x00\x1f\x7f",
	"not utf-8 \xff\xc0", strings.Repeat("x", 300),
}

type chance struct{ *rand.Rand }

func (r chance) text() string   { return awkward[r.IntN(len(awkward))] }
func (r chance) yes() bool      { return r.IntN(2) == 0 }
func (r chance) number() uint64 { return r.Uint64N(1<<53) >> r.IntN(53) }

func (r chance) time() time.Time {
	return time.UnixMilli(r.Int64N(4_000_000_000_000)).UTC()
}

func (r chance) row() Row {
	row := Row{
		Type: r.text(), Name: r.text(), Parent: r.text(), Notification: r.text(),
		Archived: r.yes(), Unread: r.number(), Attention: r.number(), Activity: r.number(),
		ManualUnread: r.yes(), Shown: r.yes(), ShownUnread: r.number(), State: r.text(),
		ContentRevision: r.number(), ReplyCount: r.number(),
		ReadState: ReadState{r.number(), r.yes(), r.number(), r.number(), r.number()},
	}
	for range r.IntN(3) {
		row.Tags = append(row.Tags, r.text())
	}
	if r.yes() {
		row.LatestMessage = &LatestMessage{r.text(), r.time()}
	}
	if at := r.time(); r.yes() {
		row.LastActivityAt = &at
	}
	return row
}

// What is written by hand is what encoding/json writes, to the byte.
func TestEncodedByHandAsByTheLibrary(t *testing.T) {
	r := chance{rand.New(rand.NewPCG(3, 1))}
	for range 5_000 {
		badge := Badge{r.number(), r.number(), r.number(), r.number()}
		page := Page{
			Member: r.text(), HasUnread: r.yes(), State: r.text(), Badge: badge,
			Complete: r.yes(), LSN: r.number(), Next: r.text(),
		}
		if n := r.IntN(4); n > 0 {
			page.Scopes = map[string]Row{}
			for range n {
				page.Scopes[r.text()] = r.row()
			}
		}
		delta := Delta{
			Member: r.text(), Scope: r.text(), Removed: r.yes(), HasUnread: r.yes(), Badge: badge,
			LSN: r.number(),
		}
		if row := r.row(); r.yes() {
			delta.Row = &row
		}
		for _, v := range []any{page, delta, Expired{}} {
			got, err := Encode(v)
			if err != nil {
				t.Fatal(err)
			}
			if want := marshal(t, v); string(got) != want {
				t.Fatalf("by hand %s\nby the library %s", got, want)
			}
			frame := Frame{Event: Event(r.text()), ID: r.text(), Data: v}
			if got, err = frame.encode(); err != nil || string(got) != marshal(t, frame) {
				t.Fatalf("by hand %s, %v\nby the library %s", got, err, marshal(t, frame))
			}
		}
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
