package httpapi_test

import (
	"crypto/sha256"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/outbox"
	"github.com/tidemark-im/tidemark/readstate"
)

// filed keeps the path of the harness's database.
func filed(path *string) option {
	return func(o *tidemark.Options, _ *httpapi.Config) {
		*path = strings.TrimPrefix(o.Facts, "sqlite:")
	}
}

func ask(t *testing.T, path, query string) (out [][]any) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		row, at := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			at[i] = &row[i]
		}
		if err := rows.Scan(at...); err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// stored is every row of every table, as one line a table.
func stored(t *testing.T, path string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, table := range ask(t, path, `SELECT name FROM sqlite_schema WHERE type = 'table'`) {
		rows := ask(t, path, fmt.Sprintf("SELECT * FROM %s ORDER BY 1, 2", table[0]))
		out[fmt.Sprint(table[0])] = fmt.Sprintf("%d rows, %x", len(rows), sha256.Sum256(fmt.Append(nil, rows)))
	}
	return out
}

// nothingStored fails where what fn does leaves any trace in the database.
func (h *harness) nothingStored(path string, fn func()) {
	h.t.Helper()
	before := stored(h.t, path)
	fn()
	for table, now := range stored(h.t, path) {
		if before[table] != now {
			h.t.Errorf("%s was %s and is %s", table, before[table], now)
		}
	}
}

// taskSurfaces is what each way of looking says of the unread state of task t.
func taskSurfaces(h *harness, member string) map[string]string {
	h.t.Helper()
	token := h.member(member)
	out := map[string]string{}
	row := func(name string, o object, path ...any) {
		at := func(field string) any { return o.at(append(path[:len(path):len(path)], field)...) }
		out[name] = fmt.Sprint(at("unread"), " ", at("activity"), " ", at("shown"))
	}
	row("sidebar", h.want(200, "GET", "W/unread", token, nil), "scopes", "t")
	row("detail", h.want(200, "GET", "W/scopes/t/read-state", token, nil), "counts")
	list := h.want(200, "GET", "W/conversations?kind=task", token, nil)
	row("inbox", list, "conversations", 0, "row")
	if list.at("conversations", 1) != nil {
		h.t.Errorf("%s has more than one row for one task", member)
	}
	many := h.want(200, "POST", "W/unread:query", h.service(), object{
		"members": []string{member}, "scopes": []string{"t"},
	})
	row("related", many, "members", 0, "scopes", "t")
	s := h.sse(token, "", "")
	first, _ := s.snapshot()
	row("stream", first["t"])
	totals := h.want(200, "GET", "W/unread/totals?groupBy=type", token, nil)
	unread := h.want(200, "GET", "W/scopes/t/unread/explain", token, nil).at("unread")
	dot := h.want(200, "GET", "/api/v1/workspaces", token, nil).at("workspaces", 0, "hasUnread")
	out["sums"] = fmt.Sprint(totals.at("groups", "task", "messages"), " ", unread, " ", dot)
	return out
}

// Red dot, sidebar, the row of the task's list, its detail, related queries and streams all say
// what memory says, also where the store was changed behind its back.
//
// covers: RT-173 RT-174
func TestTaskSurfacesAgree(t *testing.T) {
	var path string
	h := newHarness(t, filed(&path))
	taskWorld(h)
	h.post("t", "A", nil)
	want := func(when, row, sums string) {
		t.Helper()
		for name, got := range taskSurfaces(h, "S") {
			if name == "sums" && got != sums || name != "sums" && got != row {
				t.Errorf("%s: the %s says %s, want %s or %s", when, name, got, row, sums)
			}
		}
	}
	want("after a message", "1 2 true", "1 1 true")
	ask(t, path, `UPDATE conversation_member_states SET targets_above_e = 70,
  activity_targets_above = 80, read_revision = 1, e = 1 RETURNING 1`)
	ask(t, path, `UPDATE message_targets SET live = 0 RETURNING 1`)
	want("with another store", "1 2 true", "1 1 true")
}

// What is not known of a task yet is shown nowhere: no number, no dot, and no question to the
// store in place of it.
//
// covers: RT-195
func TestTaskSurfacesAreWithheld(t *testing.T) {
	h := newHarness(t, func(o *tidemark.Options, _ *httpapi.Config) {
		o.Runtime.HydrateWait = time.Millisecond
	})
	taskWorld(h)
	h.post("t", "A", nil)
	release := h.hold()
	t.Cleanup(release)
	token := h.member("S")
	const exactly = `{"hasUnread":false,"counts":{},"state":"hydrating"}`
	ran := h.probe(func() {
		for _, path := range []string{
			"W/unread", "W/scopes/t/read-state", "W/conversations?kind=task",
			"W/unread/totals?groupBy=type",
		} {
			if r := h.call("GET", path, token, nil); r.status != 200 || strings.TrimSpace(string(r.body)) != exactly {
				t.Errorf("%s: %d %s", path, r.status, r.body)
			}
		}
		list := h.want(200, "GET", "/api/v1/workspaces", token, nil)
		list.is(t, false, "workspaces", 0, "hasUnread")
	})
	for _, s := range ran {
		if s.by == "http" && sums.MatchString(s.query) {
			t.Errorf("a withheld task fell back to %v", s)
		}
	}
	release()
}

// Whatever is wrong with a request about tasks, activities or wakes has its row of the error
// table, and leaves no trace in any table.
func TestBadTaskRequestsStoreNothing(t *testing.T) {
	var path string
	h := makeHarness(t, &outbox.Network{}, filed(&path))
	taskWorld(h)
	service, admin := h.service(), h.token("W", "root", httpapi.RoleAdmin)
	h.want(200, "PUT", "W/members/far", service, object{"kind": "human"})
	h.settleOutbox(path)
	many := make([]string, 1001)
	for i := range many {
		many[i] = fmt.Sprint("m", i)
	}
	long := strings.Repeat("x", 64<<10+1)
	hook := func(more object) object {
		body := object{
			"url": "https://example.com/", "secret": wakeSecret, "on": []string{"unread.threshold"},
			"members": []string{"B"}, "threshold": 3,
		}
		for k, v := range more {
			body[k] = v
		}
		return body
	}
	const invalid, missing = httpapi.CodeInvalidRequest, httpapi.CodeNotFound
	for name, c := range map[string]struct {
		code         httpapi.Code
		method, path string
		token        string
		body         any
	}{
		"an assignee nobody knows": {missing, "PUT", "W/tasks/t?member=A", service, object{"assignee": "nobody"}},
		"an assignee without access": {
			httpapi.CodeForbidden, "PUT", "W/tasks/t?member=A", service, object{"assignee": "far"},
		},
		"a long title": {invalid, "PUT", "W/tasks/t?member=A", service, object{"title": long}},
		"a watcher nobody knows": {
			missing, "PUT", "W/scopes/t/follow?member=nobody", service, object{"following": true},
		},
		"a watcher without access": {
			missing, "PUT", "W/scopes/t/follow?member=far", service, object{"following": true},
		},
		"everyone in a task": {
			invalid, "POST", "W/scopes/t/messages", service,
			object{"opId": "x", "author": "A", "mentionsEveryone": true},
		},
		"too many named": {
			invalid, "POST", "W/scopes/t/messages", service, object{"opId": "x", "author": "A", "mentions": many},
		},
		"a large message": {
			invalid, "POST", "W/scopes/t/messages", service, object{"opId": "x", "author": "A", "payload": long},
		},
		"a larger one": {
			httpapi.CodeBodyTooLarge, "POST", "W/scopes/t/messages", service,
			object{"opId": "x", "author": "A", "payload": strings.Repeat("x", 300<<10)},
		},
		"a large activity": {
			invalid, "POST", "W/scopes/t/activities", service,
			object{"opId": "x", "actor": "A", "type": "task_due_changed", "payload": long},
		},
		"an actor nobody knows": {
			missing, "POST", "W/scopes/t/activities", service,
			object{"opId": "x", "actor": "nobody", "type": "task_due_changed"},
		},
		"telemetry": {
			invalid, "POST", "W/scopes/t/activities", service, object{"opId": "x", "actor": "bot", "type": "agent:activity"},
		},
		"presence": {
			invalid, "POST", "W/scopes/t/activities", service, object{"opId": "x", "actor": "A", "type": "presence"},
		},
		"a wake to nowhere": {
			invalid, "PUT", "W/members/bot/wake", service, object{"url": "no address", "secret": wakeSecret},
		},
		"a wake inside": {
			invalid, "PUT", "W/members/bot/wake", service, object{"url": "https://10.1.2.3/", "secret": wakeSecret},
		},
		"a wake to this machine": {
			invalid, "PUT", "W/members/bot/wake", service, object{"url": "https://[::1]:8481/", "secret": wakeSecret},
		},
		"a wake of a human": {
			invalid, "PUT", "W/members/A/wake", service, object{"url": "https://example.com/", "secret": wakeSecret},
		},
		"a webhook to nowhere": {invalid, "PUT", "W/webhooks/x", admin, hook(object{"url": "no address"})},
		"a webhook inside": {
			invalid, "PUT", "W/webhooks/x", admin, hook(object{"url": "https://169.254.169.254/latest"}),
		},
		"a webhook without TLS": {invalid, "PUT", "W/webhooks/x", admin, hook(object{"url": "http://example.com/"})},
		"a webhook of nobody":   {missing, "PUT", "W/webhooks/x", admin, hook(object{"members": []string{"nobody"}})},
		"a webhook of too many": {invalid, "PUT", "W/webhooks/x", admin, hook(object{"members": many})},
	} {
		t.Run(name, func(t *testing.T) {
			h.nothingStored(path, func() { h.refused(c.code, c.method, c.path, c.token, c.body) })
		})
	}
}

// settleOutbox waits until no row of the outbox is under way, so that nobody writes.
func (h *harness) settleOutbox(path string) {
	h.t.Helper()
	for patience := time.Now().Add(30 * time.Second); ; {
		left := ask(h.t, path, `SELECT count(*) FROM outbox o LEFT JOIN outbox_state s USING (workspace, event)
  WHERE s.settled_at IS NULL`)
		if fmt.Sprint(left[0][0]) == "0" {
			return
		}
		if time.Now().After(patience) {
			h.t.Fatal("the outbox does not come to its end")
		}
	}
}

// The actor of whatever happens is not told of it, also where they have the task, watch it and are
// named.
//
// covers: RT-162
func TestActorIsNeverToldOfTheirOwn(t *testing.T) {
	h := newHarness(t)
	taskWorld(h)
	h.want(200, "PUT", "W/tasks/t?member=B", h.service(), object{"assignee": "B"})
	unread, activity := h.counts("t", "B")
	h.post("t", "B", object{"mentions": []string{"B"}})
	h.want(200, "PUT", "W/tasks/t?member=B", h.service(), object{"status": "closed"})
	if u, a := h.counts("t", "B"); u != unread || a != activity {
		t.Errorf("B had %v and %v, and has %v and %v", unread, activity, u, a)
	}
}

// A thousand may watch a task; one more is refused clearly, and watches nothing.
//
// covers: RT-202
func TestWatchersAreBounded(t *testing.T) {
	var path string
	h := newHarness(t, filed(&path))
	taskWorld(h)
	var items []object
	for i := range 1000 {
		items = append(items, object{"id": fmt.Sprint("w", i)})
	}
	h.want(200, "POST", "W/scopes/t/members:batch?create=members", h.service(), object{"members": items})
	var all sync.WaitGroup
	for i := range 998 { // B and the agent watch already
		all.Go(func() {
			_, err := h.engine.Workspace("W").SetFollow(t.Context(), facts.SetFollow{
				Scope: "t", Member: readstate.MemberID(fmt.Sprint("w", i)), Following: true, Trusted: true,
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	h.nothingStored(path, func() {
		r := h.call("PUT", "W/scopes/t/follow?member=w998", h.service(), object{"following": true})
		if r.status != 400 || !strings.Contains(string(r.body), "at most 1000 members watch a task") {
			t.Errorf("%d %s", r.status, r.body)
		}
	})
	h.post("t", "A", nil)
	if got := ask(t, path, `SELECT count(*) FROM message_targets`); fmt.Sprint(got[0][0]) != "1000" {
		t.Errorf("delivered to %v, want 999 watchers who are human and the assignee", got)
	}
}
