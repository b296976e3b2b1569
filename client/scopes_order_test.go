package client

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/tidemark-im/tidemark/client/readsync"
)

func newHub() *hub { return &hub{scopes: map[string]*scope{}, gone: map[string]uint64{}} }

func wireOf[T any](t *testing.T, text string) *T {
	t.Helper()
	var x T
	if err := json.Unmarshal([]byte(text), &x); err != nil {
		t.Fatal(err)
	}
	return &x
}

// row is the row of a channel with so much unread.
func row(t *testing.T, unread int) *wireRow {
	t.Helper()
	return wireOf[wireRow](t, fmt.Sprintf(`{"type":"channel","notification":"all","state":"ready",
		"unread":%d,"shownUnread":%d,"shown":true,"contentRevision":9,"readState":{"readRevision":1}}`, unread, unread))
}

// Statements are of commits: an older one changes nothing, in whatever order they come.
func TestScopesGoByCommits(t *testing.T) {
	h := newHub()
	h.put("a", row(t, 5), 10)
	h.put("a", row(t, 4), 9)
	if h.scopes["a"].row.Unread != 5 {
		t.Error("an older row counts")
	}
	h.answered("a", []byte(`{"lsn":9,"contentRevision":9,"readState":{"readRevision":8},"counts":{"unread":1}}`))
	if h.scopes["a"].row.Unread != 5 {
		t.Error("an older answer counts")
	}
	h.answered("a", []byte(`{"lsn":12,"contentRevision":9,"readState":{"readRevision":9},"counts":{"unread":0}}`))
	if x := h.scopes["a"]; x.row.Unread != 0 || x.said.ReadRevision != 9 || x.row.Shown {
		t.Error("the answer does not count")
	}
	h.remove("a", 11)
	if h.scopes["a"] == nil {
		t.Error("an older removal counts")
	}
	h.remove("a", 13)
	h.page(wireOf[wireScopes](t, `{"lsn":12,"complete":true,"scopes":{"a":{"type":"channel"}}}`), true)
	if h.scopes["a"] != nil {
		t.Error("an older list brings back what is gone")
	}
	h.put("a", row(t, 2), 14)
	h.put("b", row(t, 1), 15)
	h.page(wireOf[wireScopes](t, `{"lsn":14,"complete":true,"scopes":{}}`), true)
	if h.scopes["a"] != nil || h.scopes["b"] == nil || !h.listed {
		t.Error("the list takes out what is newer, or leaves what is older")
	}
	h.forget()
	h.put("b", row(t, 7), 1)
	if h.scopes["b"].row.Unread != 7 {
		t.Error("the first statement of another database does not count")
	}
}

// Numbers that the server withholds, or counts as a hint, are not exact; a conflict's are.
func TestScopesThatAreNotCounted(t *testing.T) {
	h := newHub()
	show := func() Scope {
		x := h.scopes["a"]
		return x.show("a", readsync.View{State: x.said}, h.withheld)
	}
	h.put("a", row(t, 5), 10)
	if !show().Exact {
		t.Error("a count is not exact")
	}
	h.page(wireOf[wireScopes](t, `{"hasUnread":false,"counts":{},"state":"hydrating"}`), true)
	if s := show(); s.Exact || s.Unread == 0 {
		t.Errorf("withheld, it shows %+v", s)
	}
	h.page(wireOf[wireScopes](t, `{"lsn":10,"complete":true,"scopes":{"a":{"type":"channel","state":"snapshot_serving",
		"contentRevision":9,"readState":{"readRevision":1}}}}`), true)
	if show().Exact {
		t.Error("a hint is exact")
	}
	h.answered("a", []byte(`{"lsn":11,"contentRevision":9,"readState":{"readRevision":8},"counts":{},"state":"hydrating"}`))
	if show().Exact {
		t.Error("an answer without counts is exact")
	}
	h.answered("a", []byte(`{"status":"conflict","lsn":12,"contentRevision":9,"readState":{"readRevision":8},"counts":{"unread":1}}`))
	if s := show(); !s.Exact || s.Unread != 1 {
		t.Errorf("after a conflict it shows %+v", s)
	}
}

// What is shown before the server has answered follows from what it said, or is not exact.
func TestScopesWithOperationsOnTop(t *testing.T) {
	for _, c := range []struct {
		name          string
		level         string
		read          readsync.Revision
		manual        bool
		from          readsync.Revision
		unread, shown uint64
		dot, exact    bool
	}{
		{"read to the head", "all", 9, false, 0, 0, 0, false, true},
		{"read to somewhere", "all", 5, false, 0, 8, 8, true, false},
		{"read to the head under a mark from 3", "all", 9, true, 3, 8, 8, true, false},
		{"marked", "all", 1, true, 0, 8, 8, true, true},
		{"marked where only names count", "mentions", 1, true, 0, 8, 2, true, true},
		{"marked where nothing counts", "none", 1, true, 0, 8, 0, false, true},
	} {
		x := &scope{
			row:  wireRow{Notification: c.level, Unread: 8, Attention: 2},
			said: readsync.State{ContentRevision: 9, ReadRevision: 1, FromRevision: c.from}, counted: true,
		}
		v := readsync.View{State: readsync.State{
			ContentRevision: 9, ReadRevision: c.read, ManualUnread: c.manual, Version: 1, FromRevision: c.from,
		}}
		s := x.show("a", v, false)
		if s.Unread != c.unread || s.ShownUnread != c.shown || s.Shown != c.dot || s.Exact != c.exact {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
}
