package httpapi_test

import (
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/internal/apicheck"
	"github.com/tidemark-im/tidemark/live"
)

// shape is which statements a surface may run when its members are loaded.
type shape struct {
	by     string         // who may run them
	what   *regexp.Regexp // what they are about
	atMost int
}

var (
	silent = shape{}
	// seeks find the messages behind a count, by index and with a limit; they count nothing.
	seeks = regexp.MustCompile(`(?is)^(begin|rollback)|^with blocked as .* limit |\bfrom members\b|join members`)
	// index is the list of a member's tasks, which says where they stand and counts nothing.
	index = regexp.MustCompile(`(?is)^(begin|rollback)|\bfrom im_conversation_index\b|\b(from|join) (members|workspaces)\b`)
	// cursors are the rows that a read writes, and what numbers the commit.
	cursors = regexp.MustCompile(`(?i)^(begin|commit|update workspaces set lsn|insert .* into conversation_member_states)`)
)

// surface is a way on which unread state leaves the server.
type surface struct {
	operation string // of the document
	run       func()
	may       shape
}

func surfaces(h *harness) []surface {
	b := h.member("B")
	get := func(path string) func() { return func() { h.want(200, "GET", path, b, nil) } }
	version := 0
	return []surface{
		{"listWorkspaces", get("/api/v1/workspaces"), shape{"http", aboutNames, 3}},
		{"listUnread", get("W/unread"), silent},
		{"unreadTotals", get("W/unread/totals?groupBy=parent"), silent},
		{"listConversations", get("W/conversations"), shape{"http", index, 6}},
		{"queryUnread", func() {
			h.want(200, "POST", "W/unread:query", h.service(), object{"members": []string{"B"}})
		}, silent},
		{"getReadState", get("W/scopes/c/read-state"), silent},
		{"firstUnread", get("W/scopes/c/unread/first"), shape{"http", seeks, 5}},
		{"explainUnread", get("W/scopes/c/unread/explain"), shape{"http", seeks, 3}},
		{"events", func() { h.sse(b, "", "").snapshot() }, silent},
		{"socket", func() { h.ws(b, "").snapshot() }, silent},
		{"putReadState", func() {
			h.want(200, "PUT", "W/scopes/c/read-state", b,
				object{"type": "unread", "expectedVersion": version})
			version++
		}, shape{"lane", cursors, 4}},
		{"getSessionReadState", get("/api/sessions/m1/read-state"), silent},
		{"sessionEvents", func() { h.events(b, "/api/events", "").next("session-updated") }, silent},
		{"putSessionReadState", func() {
			h.want(200, "PUT", "/api/sessions/m1/read-state", b,
				object{"type": "read", "readRevision": 1, "expectedVersion": 0})
		}, shape{"lane", cursors, 4}},
		{"readAll", func() {
			h.want(200, "POST", "W/read-all", b, object{"scopes": []object{
				{"scope": "c", "readRevision": 2, "expectedVersion": version},
				{"scope": "d", "readRevision": 1, "expectedVersion": 0},
			}})
		}, shape{"lane", cursors, 4}},
	}
}

// aboutUnread are the paths whose answers are unread state.
var aboutUnread = regexp.MustCompile(`/(unread|read-state|read-all|events|socket|conversations)\b|^/api/v1/workspaces$`)

// Every way on which unread state leaves the server has its statements counted, and no way can
// be added without. Heartbeats have a test of their own.
//
// covers: RT-454
func TestEverySurfaceHasAGate(t *testing.T) {
	h := newHarness(t)
	settled(h)
	h.channel("d", "A", "B")
	h.post("d", "A", nil)
	h.want(200, "GET", "W/unread", h.member("B"), nil)
	var gated []string
	for _, s := range surfaces(h) {
		gated = append(gated, s.operation)
		ran := h.probe(s.run)
		if len(ran) > s.may.atMost {
			t.Errorf("%s ran %d statements, at most %d may be: %v", s.operation, len(ran), s.may.atMost, ran)
			continue
		}
		for _, r := range ran {
			if r.by != s.may.by || !s.may.what.MatchString(r.query) || sums.MatchString(r.query) {
				t.Errorf("%s ran %v", s.operation, r)
			}
		}
	}
	surfaces := 0
	h.operations(func(op apicheck.Operation, _ string) {
		if !aboutUnread.MatchString(op.Path) || op.ID == "putWorkspace" {
			return
		}
		if surfaces++; !slices.Contains(gated, op.ID) {
			t.Errorf("nobody counts the statements of %s, %s %s", op.ID, op.Method, op.Path)
		}
	})
	if surfaces != len(gated) {
		t.Errorf("%d surfaces are documented, %d have a gate", surfaces, len(gated))
	}
	h.canary("B")
}

// Red dots, badges of the sidebar, the badge of the open scope and what streams say are there
// while the store answers nobody who asks about unread state.
//
// covers: RT-480
func TestWarmSurfacesNeedNoStore(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	h.channel("d", "A", "B")
	h.post("c", "A", nil)
	b, ws := h.member("B"), h.engine.Workspace("W")
	phone, laptop := h.sse(b, "", ""), h.ws(b, "")
	_, id := phone.snapshot()
	laptop.snapshot()
	t.Cleanup(h.block(func(s statement) bool {
		return s.by != "lane" && (s.by != "http" || !aboutNames.MatchString(s.query))
	}))
	h.http.Client().Timeout = patience // a request that asks the store would wait for ever
	defer func() { h.http.Client().Timeout = 0 }()

	see := func(has bool, badge, row int) {
		t.Helper()
		list := h.want(200, "GET", "/api/v1/workspaces", b, nil)
		list.is(t, has, "workspaces", 0, "hasUnread")
		sidebar := h.want(200, "GET", "W/unread", b, nil)
		sidebar.is(t, "ready", "state")
		sidebar.is(t, has, "hasUnread")
		sidebar.is(t, badge, "badge", "messages")
		sidebar.is(t, row, "scopes", "d", "unread")
		h.want(200, "GET", "W/scopes/d/read-state", b, nil).is(t, row, "counts", "unread")
		totals := h.want(200, "GET", "W/unread/totals?groupBy=type", b, nil)
		if n := totals.at("groups", "channel", "messages"); has && n != float64(badge) || !has && n != nil {
			t.Errorf("totals are %v, want %d", totals, badge)
		}
	}
	for range 2 {
		if _, err := ws.Post(t.Context(), facts.Post{Scope: "d", OpID: h.op(), Author: "A"}); err != nil {
			t.Fatal(err)
		}
	}
	see(true, 3, 2)
	for _, s := range []*stream{phone, laptop} {
		for n := any(0.0); n != 2.0; {
			n = s.unread("d").data.at("row", "unread")
		}
	}
	again := h.sse(b, "?resume="+id, "")
	again.next("hello").data.is(t, true, "resumed")
	again.unread("d").data.is(t, 2, "row", "unread")
	rows, _ := h.ws(b, "").snapshot()
	rows["d"].is(t, 2, "unread")
	h.want(200, "PUT", "W/scopes/d/read-state", b, object{"type": "read", "readRevision": 2, "expectedVersion": 0})
	laptop.unread("d").data.is(t, 0, "row", "unread")
	see(true, 1, 0)
	h.want(200, "PUT", "W/scopes/c/read-state", b, object{"type": "read", "readRevision": 1, "expectedVersion": 0})
	laptop.unread("c").data.is(t, false, "hasUnread")
	see(false, 0, 0)
}

// One process answers for all workspaces, each from its own memory.
//
// covers: RT-009
func TestEveryWorkspaceIsAnsweredHere(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	spaces := []string{"W", "V", "U"}
	for i, id := range spaces {
		service := h.token(id, "backend", httpapi.RoleService)
		h.want(200, "PUT", id, h.admin(), object{"name": id})
		h.want(200, "PUT", id+"/scopes/c", service, object{"type": "channel"})
		h.want(200, "POST", id+"/scopes/c/members:batch?create=members", service,
			object{"members": []object{{"id": "A"}, {"id": "B"}}})
		for range i {
			h.want(201, "POST", id+"/scopes/c/messages", service, object{"opId": h.op(), "author": "A"})
		}
	}
	see := func() {
		t.Helper()
		for i, id := range spaces {
			page := h.want(200, "GET", id+"/unread", h.token(id, "B", httpapi.RoleMember), nil)
			page.is(t, "ready", "state")
			page.is(t, i, "badge", "messages")
			page.is(t, i > 0, "hasUnread")
		}
	}
	see() // loads
	if ran := h.probe(see); len(ran) > 0 {
		t.Errorf("warm reads of %v ran %v", spaces, ran)
	}
	list := h.want(200, "GET", "/api/v1/workspaces?member=B", h.admin(), nil)
	for i, id := range []string{"U", "V", "W"} {
		list.is(t, id, "workspaces", i, "id")
		list.is(t, id != "W", "workspaces", i, "hasUnread")
		list.is(t, "ready", "workspaces", i, "state")
	}
	if n := h.engine.Stats().Workspaces; n != len(spaces) {
		t.Errorf("%d workspaces are in memory", n)
	}
	h.canary("B")
}

// Where no runtime answers for a member, the list of workspaces shows no dot and does not look
// for one elsewhere; neither does anything else.
//
// covers: RT-019 RT-340 RT-475
func TestWhereNobodyAnswersNothingIsShown(t *testing.T) {
	h := newHarness(t, func(o *tidemark.Options, _ *httpapi.Config) {
		o.Runtime.MaxHydrations, o.Runtime.HydrateWait = 1, time.Millisecond
	})
	h.world("A", "B", "C")
	h.post("c", "A", object{"mentions": []string{"B", "C"}})
	t.Cleanup(h.hold())
	for _, x := range []struct{ member, state string }{
		{"B", "hydrating"},   // its page does not come
		{"C", "unavailable"}, // there is no room for another
	} {
		exactly := fmt.Sprintf(`{"hasUnread":false,"counts":{},"state":%q}`, x.state)
		m := h.member(x.member)
		ran := h.probe(func() {
			for _, who := range []struct{ token, query string }{{m, ""}, {h.service(), "?member=" + x.member}} {
				list := h.want(200, "GET", "/api/v1/workspaces"+who.query, who.token, nil)
				list.is(t, false, "workspaces", 0, "hasUnread")
				list.is(t, x.state, "workspaces", 0, "state")
			}
			for _, path := range []string{"W/unread", "W/unread/totals?groupBy=tag", "W/scopes/c/read-state"} {
				if r := h.call("GET", path, m, nil); r.status != 200 || strings.TrimSpace(string(r.body)) != exactly {
					t.Errorf("%s: %s: %d %s", x.state, path, r.status, r.body)
				}
			}
			h.sse(m, "", "").next("snapshot").data.is(t, "map[]", "counts")
		})
		for _, s := range ran {
			if (s.by != "http" || !aboutNames.MatchString(s.query)) && s.by != "hydrate" || sums.MatchString(s.query) {
				t.Errorf("%s: ran %v", x.state, s)
			}
		}
	}
	h.canary("B")
}

// A read of many scopes names each of them, and not too many: there is no "all that I see".
//
// covers: RT-146
func TestReadingEverythingHasToNameIt(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	h.channel("d", "A", "B")
	h.post("c", "A", nil)
	h.post("d", "A", nil)
	b := h.member("B")
	list := func(n int) []object {
		items := make([]object, n)
		for i := range items {
			items[i] = object{"scope": fmt.Sprint("s", i), "readRevision": 1, "expectedVersion": 0}
		}
		return items
	}
	ran := h.probe(func() {
		for _, body := range []any{
			object{}, object{"scopes": nil}, object{"scopes": "*"}, object{"all": true},
			object{"scopes": []object{}, "all": true}, object{"scopes": []object{{"readRevision": 1, "expectedVersion": 0}}},
			object{"scopes": []object{{"scope": "*", "readRevision": 1, "expectedVersion": 0}}},
			object{"scopes": list(httpapi.MaxReadAll + 1)}, nil,
		} {
			h.refused(httpapi.CodeInvalidRequest, "POST", "W/read-all", b, body)
		}
		h.want(200, "POST", "W/read-all", b, object{"scopes": []object{}}).is(t, "[]", "results")
	})
	if len(ran) > 0 {
		t.Errorf("what names no scope ran %v", ran)
	}
	h.want(200, "GET", "W/unread", b, nil).is(t, 2, "badge", "messages")
	h.want(200, "POST", "W/read-all", b, object{"scopes": list(httpapi.MaxReadAll)})
	h.want(200, "POST", "W/read-all", b, object{"scopes": []object{
		{"scope": "d", "readRevision": 1, "expectedVersion": 0},
	}}).is(t, "applied", "results", 0, "status")
	page := h.want(200, "GET", "W/unread", b, nil)
	page.is(t, 1, "scopes", "c", "unread")
	page.is(t, 0, "scopes", "d", "unread")
	h.canary("B")
}

// Memory is right because every change is fed to it, not because something looks again: a store
// that was changed behind its back stays unseen, however often a stream's heart beats.
//
// covers: RT-250
func TestHeartbeatsCorrectNothing(t *testing.T) {
	clock, path := newHandClock(), ""
	h := newHarness(t, func(o *tidemark.Options, c *httpapi.Config) {
		c.Live.Clock, path = clock, strings.TrimPrefix(o.Facts, "sqlite:")
	})
	h.world("A", "B")
	h.post("c", "A", nil)
	h.post("c", "A", nil)
	b := h.tokenUntil("W", "B", httpapi.RoleMember, clock.Now().Add(1000*time.Hour))
	s, w := h.sse(b, "", ""), h.ws(b, "")
	s.snapshot()
	w.snapshot()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, change := range []string{
		`UPDATE scopes SET archived = 1`,
		`UPDATE conversation_member_states SET read_revision = 2, e = 2`,
	} {
		if _, err := db.ExecContext(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	before := h.engine.Stats()
	ran := h.probe(func() {
		for beats := 0; beats < 10; {
			select {
			case <-clock.set: // a stream waits again
				clock.advance(live.DefaultHeartbeat)
			case e := <-w.events:
				if e.name != "ping" || len(e.data) > 0 {
					t.Fatalf("a heartbeat is %+v", e)
				}
				beats++
			}
		}
	})
	after := h.engine.Stats()
	if len(ran) > 0 || after.Pages != before.Pages || after.CandidateChecks != before.CandidateChecks {
		t.Errorf("heartbeats ran %v, %+v became %+v", ran, before, after)
	}
	page := h.want(200, "GET", "W/unread", b, nil)
	page.is(t, "ready", "state")
	page.is(t, 2, "badge", "messages")
	page.is(t, 2, "scopes", "c", "unread")
	page.is(t, false, "scopes", "c", "archived")
	select {
	case e := <-s.events:
		t.Errorf("the stream says %+v", e)
	default:
	}
	h.canary("B")
}

// What a member who is not in memory costs is a page of rows, on whatever way they come, and no
// heartbeat costs anything: nothing is added up and no message is read, however many there are.
//
// covers: RT-344
func TestColdPathsAddNothingUp(t *testing.T) {
	ways := map[string]func(h *harness, b string){
		"first paint": func(h *harness, b string) {
			h.want(200, "GET", "W/unread", b, nil).is(h.t, true, "hasUnread")
		},
		"open page": func(h *harness, b string) {
			h.want(200, "GET", "W/scopes/c/read-state", b, nil).is(h.t, true, "counts", "shown")
		},
		"refresh": func(h *harness, b string) {
			for range 3 {
				h.want(200, "GET", "W/unread", b, nil)
				h.want(200, "GET", "/api/v1/workspaces", b, nil)
			}
		},
		"heartbeat": func(h *harness, b string) {
			w := h.ws(b, "")
			w.snapshot()
			for range 3 {
				w.next("ping")
			}
		},
	}
	for way, walk := range ways {
		counted := map[int]int{}
		for _, messages := range []int{2, 60} {
			h := newHarness(t, func(_ *tidemark.Options, c *httpapi.Config) {
				c.Live.Heartbeat = time.Millisecond
			})
			h.world("A", "B")
			for range messages {
				h.post("c", "A", object{"mentions": []string{"B"}})
			}
			if s := h.engine.Stats(); s.Members > 0 {
				t.Fatalf("somebody is loaded: %+v", s)
			}
			ran := h.probe(func() { walk(h, h.member("B")) })
			for _, s := range ran {
				unread := s.by == "http" && !aboutNames.MatchString(s.query)
				if unread || sums.MatchString(s.query) || messageTables.MatchString(s.query) ||
					strings.Contains(s.query, "runtime_snapshots") {
					t.Errorf("%s ran %v", way, s)
				}
			}
			counted[messages] = len(ran)
		}
		if counted[2] != counted[60] || counted[2] == 0 {
			t.Errorf("%s: statements by messages: %v", way, counted)
		}
	}
}
