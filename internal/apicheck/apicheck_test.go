package apicheck

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const document = `{
 "openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "servers": [{"url": "/pre"}],
 "paths": {
  "/things/{id}": {"get": {"operationId": "getThing",
   "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
   "responses": {
    "200": {"description": "OK", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
    "404": {"description": "no", "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}}}},
  "/things/all": {"get": {"operationId": "all", "responses": {"204": {"description": "none"}}}},
  "/events": {"get": {"operationId": "events", "responses": {"200": {"description": "OK", "content": {
   "text/event-stream": {"schema": {"type": "array", "items": {"oneOf": [
    {"type": "object", "properties": {"event": {"type": "string", "enum": ["thing"]}, "id": {"type": "string"},
     "data": {"$ref": "#/components/schemas/Thing"}}},
    {"type": "object", "properties": {"event": {"type": "string", "enum": ["ping"]}}}]}}}}}}}}
 },
 "components": {"schemas": {
  "Thing": {"type": "object", "required": ["n"], "properties": {
   "n": {"type": "integer"}, "at": {"type": "string", "format": "date-time"},
   "inner": {"type": "object", "properties": {"x": {"type": "boolean"}}},
   "by": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Thing"}}}},
  "Problem": {"type": "object", "required": ["code", "status"], "properties": {
   "code": {"type": "string"}, "status": {"type": "integer"}}}
 }}
}`

func TestAnswersAreHeldAgainstTheDocument(t *testing.T) {
	c, err := New([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	const jsonType, problem = "application/json", "application/problem+json"
	for _, x := range []struct {
		method, path string
		status       int
		kind, body   string
		fault        string
	}{
		{"GET", "/pre/things/a%2Fb", 200, jsonType, `{"n":1,"inner":{"x":true},"by":{"k":{"n":2}}}`, ""},
		{"GET", "/pre/things/1", 404, problem, `{"code":"not_found","status":404}`, ""},
		{"GET", "/pre/things/all", 204, "", ``, ""},
		{"GET", "/pre/nothing", 404, problem, `{"code":"not_found","status":404}`, ""},
		{"PUT", "/pre/things/1", 405, problem, `{"code":"method_not_allowed","status":405}`, ""},
		{"OPTIONS", "/pre/things/1", 204, "", ``, ""},
		{"GET", "/pre/openapi.json", 200, jsonType, `{}`, ""},

		{"GET", "/pre/things/1", 200, jsonType, `{"n":1,"extra":1}`, "extra"},
		{"GET", "/pre/things/1", 200, jsonType, `{"n":1,"inner":{"y":1}}`, "y"},
		{"GET", "/pre/things/1", 200, jsonType, `{"n":1,"by":{"k":{}}}`, "n"},
		{"GET", "/pre/things/1", 200, jsonType, `{"n":"1"}`, "integer"},
		{"GET", "/pre/things/1", 200, jsonType, `{"n":1,"at":"yesterday"}`, "date-time"},
		{"GET", "/pre/things/1", 200, jsonType, `{}`, "n"},
		{"GET", "/pre/things/1", 200, jsonType, `nonsense`, "not JSON"},
		{"GET", "/pre/things/1", 418, jsonType, `{"n":1}`, "status is not documented"},
		{"GET", "/pre/things/1", 200, "text/plain", `{"n":1}`, "content type"},
		{"GET", "/pre/things/1", 404, problem, `{"code":"not_found","status":400}`, "problem says"},
		{"GET", "/pre/things/all", 204, "", `x`, "a body"},
		{"GET", "/pre/nothing", 200, jsonType, `{}`, "path is not documented"},
		{"GET", "/things/1", 200, jsonType, `{"n":1}`, "path is not documented"},
		{"PUT", "/pre/things/1", 200, jsonType, `{"n":1}`, "method is not documented"},
	} {
		resp := &http.Response{StatusCode: x.status, Header: http.Header{"Content-Type": {x.kind}, "Allow": {"GET"}}}
		err := c.Exchange(httptest.NewRequest(x.method, x.path, nil), resp, []byte(x.body))
		switch {
		case x.fault == "" && err != nil:
			t.Errorf("%v", err)
		case x.fault != "" && (err == nil || !strings.Contains(err.Error(), x.fault)):
			t.Errorf("%s %s %d %s: got %v, want %s", x.method, x.path, x.status, x.body, err, x.fault)
		}
	}
	if unseen := c.Unseen(); len(unseen) != 1 || unseen[0] != "events" {
		t.Errorf("unseen are %v", unseen)
	}
}

func TestEventsAndFrames(t *testing.T) {
	c, err := New([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	for frame, good := range map[string]bool{
		`{"event":"thing","id":"7","data":{"n":1}}`: true,
		`{"event":"ping"}`:                          true,
		`{"event":"thing","data":{"n":1,"m":2}}`:    false,
		`{"event":"thing","data":{}}`:               false,
		`{"event":"other","data":{}}`:               false,
		`{"event":"ping","id":"7"}`:                 false,
		`{"event":"ping","more":1}`:                 false,
		`{"event":"thing","id":"x","data":{"n":1}}`: false,
	} {
		if err := c.Frame([]byte(frame)); (err == nil) != good {
			t.Errorf("%s: %v", frame, err)
		}
	}
}

func TestDocumentsAreChecked(t *testing.T) {
	for _, wrong := range []string{
		`nonsense`, strings.Replace(document, "3.1.0", "3.0.3", 1),
		strings.Replace(document, `"title": "t", `, "", 1),
		strings.Replace(document, "#/components/schemas/Thing", "#/components/schemas/Missing", 1),
	} {
		if _, err := New([]byte(wrong)); err == nil {
			t.Errorf("taken: %.80s", wrong)
		}
	}
}
