package httpapi_test

import (
	"encoding/json"
	"errors"
	"html"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/outbox"
)

// schemaText is what a reader sees of a schema.
type schemaText struct {
	Ref         string                `json:"$ref"`
	Description string                `json:"description"`
	Properties  map[string]schemaText `json:"properties"`
	Examples    []json.RawMessage     `json:"examples"`
}

// served is the document as far as it is read here.
type served struct {
	Paths map[string]map[string]struct {
		OperationID string `json:"operationId"`
		Parameters  []struct {
			Name, In, Description string
		} `json:"parameters"`
		RequestBody struct {
			Content map[string]struct {
				Schema schemaText `json:"schema"`
			} `json:"content"`
		} `json:"requestBody"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]schemaText `json:"schemas"`
	} `json:"components"`
}

func readDocument(t *testing.T, h *harness) served {
	t.Helper()
	var doc served
	if err := json.Unmarshal(h.api.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestEverythingIsDescribed(t *testing.T) {
	h := newHarness(t)
	doc := readDocument(t, h)
	for name, s := range doc.Components.Schemas {
		if s.Description == "" {
			t.Errorf("type %s is not described", name)
		}
		for field, p := range s.Properties {
			if p.Description == "" {
				t.Errorf("field %s.%s is not described", name, field)
			}
		}
	}
	for path, item := range doc.Paths {
		for method, op := range item {
			for _, p := range op.Parameters {
				if p.Description == "" && p.In != "path" {
					t.Errorf("%s %s: parameter %s is not described", method, path, p.Name)
				}
			}
		}
	}
}

// Each example is sent as it is printed, to a server of its own: the harness holds the accepted
// request against the schema.
func TestExamplesAreAccepted(t *testing.T) {
	type example struct{ method, path, body string }
	var examples []example
	doc := readDocument(t, newHarness(t))
	for path, item := range doc.Paths {
		for method, op := range item {
			body, ok := op.RequestBody.Content["application/json"]
			if !ok {
				continue
			}
			name := strings.TrimPrefix(body.Schema.Ref, "#/components/schemas/")
			if list := doc.Components.Schemas[name].Examples; len(list) == 1 {
				examples = append(examples, example{strings.ToUpper(method), path, string(list[0])})
			} else {
				t.Errorf("%s has %d examples", op.OperationID, len(list))
			}
		}
	}
	for _, x := range examples {
		h := withOutbox(t, outbox.Network{})
		h.want(200, "PUT", "acme", h.admin(), object{"name": ""})
		service := h.token("acme", "backend", httpapi.RoleAdmin)
		members := object{"members": []object{{"id": "ada"}, {"id": "bob"}}}
		for _, scope := range []string{"general", "random"} {
			h.want(200, "PUT", "acme/scopes/"+scope, service, object{"type": "channel"})
			h.want(200, "POST", "acme/scopes/"+scope+"/members:batch?create=members", service, members)
		}
		h.want(201, "POST", "acme/scopes/general/messages", service,
			object{"opId": "1", "author": "bob", "messageId": "hello"})
		h.want(200, "PUT", "acme/scopes/talk", service,
			object{"type": "thread", "parent": "general", "rootMessage": "hello"})
		if strings.HasSuffix(x.path, ":move") { // what has a thread stays
			h.want(201, "POST", "acme/scopes/random/messages", service,
				object{"opId": "2", "author": "bob", "messageId": "other"})
			x.body = strings.NewReplacer("hello", "other", "random", "general").Replace(x.body)
			x.path = strings.Replace(x.path, "{s}", "random", 1)
		}
		if strings.HasSuffix(x.path, "/follow") {
			x.path = strings.Replace(x.path, "{s}", "talk", 1)
		}
		if strings.Contains(x.path, "/tasks/") {
			h.want(200, "PUT", "acme/scopes/job", service, object{"type": "task"})
			h.want(200, "POST", "acme/scopes/job/members:batch", service, members)
			x.path = strings.Replace(x.path, "{s}", "job", 1) + "?member=ada"
		}
		if strings.Contains(x.path, "/inbox/") {
			who := "bob"
			if strings.HasSuffix(x.path, "/acks") {
				who = "ada"
				opened := h.want(200, "POST", "acme/members/ada/inbox:open?member=ada", service, nil)
				id, _ := opened.at(t, "snapshotId").(string)
				x.body = strings.Replace(x.body, "q0Jq0J3mU8q2J3mU8q2J3g", id, 1)
			}
			x.path += "?member=" + who
		}
		if strings.HasSuffix(x.path, "/wake") {
			h.want(200, "PUT", "acme/members/ada", service, object{"kind": "agent"})
		}
		path := strings.NewReplacer("{ws}", "acme", "{m}", "ada", "{s}", "general", "{id}", "hello").
			Replace(x.path)
		if strings.Contains(path, "/api/sessions") {
			for _, id := range []string{"hello", "refactoring"} {
				if x.path != "/api/sessions" {
					h.want(201, "POST", "/api/sessions?member=ada", service, object{"id": id})
					h.want(201, "POST", "/api/sessions/"+id+"/messages?member=ada", service,
						object{"opId": id, "payload": "an answer"})
				}
			}
			path = strings.TrimSuffix(path, "?member=ada") + "?member=ada"
		} else if strings.HasSuffix(path, "/follow") || strings.HasSuffix(path, "/read-state") ||
			strings.HasSuffix(path, "/read-all") {
			path += "?member=ada"
		}
		r := h.call(x.method, path, service, x.body)
		if r.status >= 300 || strings.Contains(string(r.body), `"error"`) {
			t.Errorf("%s %s %s: %d %s", x.method, path, x.body, r.status, r.body)
		}
	}
}

func TestDocsShowStreamsAndExamples(t *testing.T) {
	h := newHarness(t)
	page := html.UnescapeString(string(h.call("GET", "/docs", "", nil).body))
	for _, want := range []string{
		"event hello", "event unread", "event expired", "received snapshot", "received ping",
		`<td>sent</td><td><a href="#type-ClientFrame">`, `{"subscribe":["general"]}`,
		"unread = head - base - removed - own - blocked", "keeps the manual mark",
	} {
		if !strings.Contains(strings.ReplaceAll(page, `": [`, `":[`), want) {
			t.Errorf("the page does not show %s", want)
		}
	}
	doc := readDocument(t, h)
	for _, p := range doc.Paths["/api/v1/workspaces/{ws}/scopes/{s}/members/{m}"]["delete"].Parameters {
		if p.Name == "create" {
			t.Error("leaving a scope creates members")
		}
	}
}

func TestTheRootPointsToTheDocs(t *testing.T) {
	h := newHarness(t)
	r := h.call("GET", "/", "", nil)
	if r.status != 200 || !strings.Contains(string(r.body), `href="/docs"`) {
		t.Errorf("got %d %s", r.status, r.body)
	}
	h.refused(httpapi.CodeMethodNotAllowed, "POST", "/", "", nil)
}

func TestAnswersEndWithANewline(t *testing.T) {
	h := newHarness(t)
	for _, path := range []string{"/healthz", "/nothing"} {
		if r := h.call("GET", path, "", nil); !strings.HasSuffix(string(r.body), "}\n") {
			t.Errorf("%s: %q", path, r.body)
		}
	}
}

// What a service has to do differently is said where a path or an id is not to blame.
func TestServicesNameTheMember(t *testing.T) {
	h := newHarness(t)
	settled(h)
	const says = "a service names the member: ?member=ID"
	for _, path := range []string{
		"W/unread", "W/events", "W/unread/totals?groupBy=type", "W/scopes/c/read-state",
		"W/scopes/c/unread/explain",
	} {
		h.want(400, "GET", path, h.service(), nil).is(t, says, "detail")
		h.refused(httpapi.CodeNotFound, "GET", path+sep(path)+"member=nobody", h.service(), nil)
	}
	h.want(200, "GET", "W/unread", h.token("W", "A", httpapi.RoleService), nil)
	h.refused(httpapi.CodeNotFound, "GET", "W/scopes/nope", h.service(), nil)
	h.refused(httpapi.CodeNotFound, "GET", "W/scopes/nope/messages", h.service(), nil)
	h.refused(httpapi.CodeNotFound, "GET", "nope/unread", h.admin(), nil)
}

func sep(path string) string {
	if strings.Contains(path, "?") {
		return "&"
	}
	return "?"
}

func TestRefusalsSayWhatIsWrong(t *testing.T) {
	h := newHarness(t)
	settled(h)
	for _, x := range []struct{ method, path, token, body, says string }{
		{"POST", "W/read-all", h.member("B"), `{"scopes":[{"scope":"c","readRevision":1}]}`,
			"scopes[0].expectedVersion is missing"},
		{"PUT", "W/scopes/c/read-state", h.member("B"),
			`{"type":"read","readRevision":1,"expectedVersion":0,"threads":[{"scope":"t","readRevision":1}]}`,
			"threads[0].expectedVersion is missing"},
		{"GET", "nope/unread?member=A", h.admin(), "", `unknown workspace "nope"`},
		{"GET", "W/scopes/nope/unread/explain", h.member("B"), "", "unknown or not visible"},
	} {
		var body any
		if x.body != "" {
			body = x.body
		}
		var p httpapi.Problem
		r := h.call(x.method, x.path, x.token, body)
		if err := json.Unmarshal(r.body, &p); err != nil || !strings.Contains(p.Detail, x.says) {
			t.Errorf("%s %s: %s", x.method, x.path, r.body)
		}
	}
}

func TestExplanationAddsUp(t *testing.T) {
	h := newHarness(t)
	settled(h)
	h.post("c", "B", nil)
	x := h.want(200, "GET", "W/scopes/c/unread/explain", h.member("B"), nil)
	n := func(name string) float64 { v, _ := x.at(name).(float64); return v }
	if sum := n("head") - n("base") - n("removed") - n("own") - n("blocked"); n("unread") != 1 || sum != 1 {
		t.Errorf("got %v", x)
	}
}

func TestClosedSocketsSayWhy(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	for frame, why := range map[string]string{
		`{"foo":["c"]}`:     `invalid_request: unknown field "foo"`,
		`{"watch":["A"]}`:   "invalid_request: this stream is of one member",
		`{"subscribe":["…"`: "invalid_request: ",
		`{"subscribe":["` + strings.Repeat("é", 200) + `"]}`: "invalid_request: ",
	} {
		s := h.ws(h.member("B"), "")
		s.snapshot()
		s.send(frame)
		s.over()
		err := <-s.ended
		var closed websocket.CloseError
		if !errors.As(err, &closed) || !strings.HasPrefix(closed.Reason, why) {
			t.Errorf("%.40s: ended with %v, want %s", frame, err, why)
		}
	}
}
