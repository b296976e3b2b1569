package tidemark_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// A page has a bounded weight: large messages come in more pages, and none is left out.
func TestPagesOfLargeMessages(t *testing.T) {
	h := newHub(t)
	const n, size = 150, 60_000
	payload := json.RawMessage(`"` + strings.Repeat("x", size-2) + `"`)
	batch := h.Batch()
	for i := range n {
		batch.Post(facts.Post{Scope: "c", OpID: fmt.Sprint(i), Author: "a", Payload: payload})
	}
	if _, err := batch.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	page := func(f tidemark.MessageFilter) tidemark.MessagePage {
		t.Helper()
		f.Scope, f.Limit, f.Viewer = "c", 400, "b"
		p, err := h.Messages(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Messages) == 0 || len(p.Messages)*size > 4<<20 {
			t.Fatalf("%d messages of %d bytes in a page", len(p.Messages), size)
		}
		return p
	}
	first := page(tidemark.MessageFilter{})
	if first.ReadThrough != n || !first.HasMore || first.Messages[len(first.Messages)-1].Seq != n {
		t.Errorf("the newest page: read through %d, more %t", first.ReadThrough, first.HasMore)
	}
	if before := first.UnreadBefore; before == nil || *before != uint64(n-len(first.Messages)) {
		t.Errorf("unread before the newest page: %v", before)
	}
	want := readstate.Seq(n - len(first.Messages))
	for p := first; p.HasMore; {
		p = page(tidemark.MessageFilter{Before: p.Messages[0].Seq})
		for i := len(p.Messages) - 1; i >= 0; i-- {
			if p.Messages[i].Seq != want {
				t.Fatalf("backwards: got %d, want %d", p.Messages[i].Seq, want)
			}
			want--
		}
	}
	if want != 0 {
		t.Errorf("backwards: %d messages are left out", want)
	}
	want = 2
	for p := (tidemark.MessagePage{HasMore: true}); p.HasMore; {
		p = page(tidemark.MessageFilter{After: want - 1})
		for i := range p.Messages {
			if p.Messages[i].Seq != want {
				t.Fatalf("forwards: got %d, want %d", p.Messages[i].Seq, want)
			}
			want++
		}
		if last := want == n+1; last != (p.ReadThrough == n) {
			t.Errorf("forwards: read through %d at %d", p.ReadThrough, want-1)
		}
	}
	if want != n+1 {
		t.Errorf("forwards: ended at %d", want-1)
	}
}
