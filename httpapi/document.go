package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tidemark-im/tidemark/live"
	"github.com/tidemark-im/tidemark/live/strict"
)

// document is the OpenAPI description of the routes, collected while they are registered. Types
// of bodies take exactly what they describe; types of answers may gain fields later, so clients
// must ignore what they do not know.
type document struct {
	api     *huma.OpenAPI
	request map[string]bool // names of types that clients send
	once    sync.Once
	bytes   []byte // the served text, made by text
}

const schemaPrefix = "#/components/schemas/"

func newDocument(prefix, version string) *document {
	registry := huma.NewMapRegistry(schemaPrefix, typeName)
	counter := reflect.TypeFor[strict.Counter]()
	registry.RegisterTypeAlias(counter, reflect.TypeFor[wireCounter]())
	registry.RegisterTypeAlias(reflect.TypeFor[strict.Time](), reflect.TypeFor[time.Time]())
	if version == "" {
		version = "development"
	}
	d := &document{
		api: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Tidemark", Version: version, Description: introduction,
				License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
			},
			Components: &huma.Components{
				Schemas: registry,
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"bearer": {Type: "http", Scheme: "bearer", BearerFormat: "JWT"},
					"address": {
						Type: "apiKey", In: "query", Name: "access_token",
						Description: "For streams of browsers, which cannot set headers",
					},
				},
			},
		},
		request: map[string]bool{},
	}
	if prefix != "" {
		d.api.Servers = []*huma.Server{{URL: prefix}}
	}
	return d
}

const introduction = "What has this person not read yet? Counts are exact and come from memory. " +
	"Integers are below 2^53. Times are RFC 3339 in UTC and never order anything. Requests are " +
	"taken literally: an unknown field or parameter is refused. Answers may gain fields."

// wireCounter describes strict.Counter.
type wireCounter struct{}

// Schema implements huma.SchemaProvider.
func (wireCounter) Schema(huma.Registry) *huma.Schema {
	low, high := 0.0, float64(maxCounter)
	return &huma.Schema{Type: huma.TypeInteger, Format: "int64", Minimum: &low, Maximum: &high}
}

// describe adds an operation. R may say more about its statuses with other answers (answerer).
func (d *document) describe(rt route, params []param, body, answer reflect.Type) {
	op := d.operation(rt, params)
	if body != reflect.TypeFor[none]() {
		op.RequestBody = &huma.RequestBody{
			Required: true,
			Content: map[string]*huma.MediaType{
				"application/json": {Schema: d.schema(body, true)},
			},
		}
	}
	statuses := rt.statuses
	if len(statuses) == 0 {
		statuses = []int{http.StatusOK}
	}
	for _, status := range statuses {
		d.answer(op, status, "application/json", d.schema(answer, false))
	}
	for _, status := range refusals(rt) {
		d.answer(op, status, "application/problem+json", d.schema(reflect.TypeFor[Problem](), false))
	}
	d.api.AddOperation(op)
}

func (d *document) operation(rt route, params []param) *huma.Operation {
	op := &huma.Operation{
		Method: rt.method, Path: rt.path, OperationID: rt.id, Summary: rt.about,
		Tags: []string{rt.tag}, Responses: map[string]*huma.Response{},
	}
	if !rt.public {
		op.Security = []map[string][]string{{"bearer": {}}}
		op.Description = "Needs the role `" + rt.role.String() + "`."
	}
	if rt.stream {
		op.Security = append(op.Security, map[string][]string{"address": {}})
	}
	for i := range params {
		op.Parameters = append(op.Parameters, params[i].document())
	}
	return op
}

// refusals are the statuses that a route may refuse with.
func refusals(rt route) []int {
	if rt.public {
		return []int{400, 500, 503}
	}
	out := []int{400, 401, 403, 404, 421, 429, 500, 503}
	switch {
	case rt.method == http.MethodGet && strings.HasPrefix(rt.path, sessionPath):
		out = append(out, 409, 413, 415)
	case rt.method != http.MethodGet, rt.tag == "inbox": // which a gap may make impossible to answer
		out = append(out, 409, 413, 415)
	default:
		out = append(out, 413, 415) // a GET with a body is one, too
	}
	slices.Sort(out)
	return out
}

func (d *document) answer(op *huma.Operation, status int, contentType string, s *huma.Schema) {
	key := strconv.Itoa(status)
	r := op.Responses[key]
	if r == nil {
		r = &huma.Response{
			Description: http.StatusText(status), Content: map[string]*huma.MediaType{},
		}
		op.Responses[key] = r
	}
	r.Content[contentType] = &huma.MediaType{Schema: s}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		r.Headers = map[string]*huma.Param{"Retry-After": {
			Description: "Seconds to wait", Schema: &huma.Schema{Type: huma.TypeInteger},
		}}
	}
}

// schema describes a type, and remembers who sends it.
func (d *document) schema(t reflect.Type, sent bool) *huma.Schema {
	s := d.api.Components.Schemas.Schema(t, true, t.Name())
	if sent {
		d.markSent(s)
	}
	return s
}

func (d *document) markSent(s *huma.Schema) {
	if s == nil {
		return
	}
	if name, ok := strings.CutPrefix(s.Ref, schemaPrefix); ok && !d.request[name] {
		d.request[name] = true
		d.markSent(d.api.Components.Schemas.Map()[name])
	}
	d.markSent(s.Items)
	for _, p := range s.Properties {
		d.markSent(p)
	}
}

// describeStream adds a stream: its events, and on a socket the frames of the client.
func (d *document) describeStream(rt route, params []param) {
	op := d.operation(rt, params)
	events := d.events()
	if rt.path == sessionEventsPath {
		events = d.sessionEvents()
	}
	if strings.HasSuffix(rt.path, "/events") {
		op.Parameters = append(op.Parameters, &huma.Param{
			Name: "Last-Event-ID", In: "header", Schema: &huma.Schema{Type: huma.TypeString},
			Description: "Resumes after that event",
		})
		d.answer(op, http.StatusOK, "text/event-stream", &huma.Schema{
			Type: huma.TypeArray, Items: events,
			Description: "Each event with its name, id and the JSON of its data.",
		})
	} else {
		op.Responses["101"] = &huma.Response{
			Description: "A WebSocket. Each message is one JSON frame.",
			Extensions: map[string]any{
				"x-server-frame": events,
				"x-client-frame": d.schema(reflect.TypeFor[live.ClientFrame](), true),
			},
		}
	}
	for _, status := range refusals(rt) {
		d.answer(op, status, "application/problem+json", d.schema(reflect.TypeFor[Problem](), false))
	}
	d.api.AddOperation(op)
}

// event describes a frame by its name and the types that its data may have.
func (d *document) event(
	name live.Event, id bool, about string, data ...reflect.Type,
) *huma.Schema {
	s := &huma.Schema{
		Type: huma.TypeObject, Description: about, Required: []string{"event"},
		Properties: map[string]*huma.Schema{
			"event": {Type: huma.TypeString, Enum: []any{string(name)}},
		},
	}
	if id {
		s.Properties["id"] = &huma.Schema{
			Type: huma.TypeString, Pattern: "^[0-9]+$", Description: "Resumes after this event",
		}
	}
	var bodies []*huma.Schema
	for _, t := range data {
		bodies = append(bodies, d.schema(t, false))
	}
	switch len(bodies) {
	case 0:
		return s
	case 1:
		s.Properties["data"] = bodies[0]
	default:
		s.Properties["data"] = &huma.Schema{OneOf: bodies}
	}
	s.Required = append(s.Required, "data")
	return s
}

// events describes the frames of a stream of unread state.
func (d *document) events() *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		d.event(live.EventHello, false, "The first event.", reflect.TypeFor[live.Hello]()),
		d.event(live.EventSnapshot, true, "A page of the member's scopes, at the beginning or after a gap. "+
			"The last page has complete and the id.",
			reflect.TypeFor[live.Page](), reflect.TypeFor[live.Withheld]()),
		d.event(live.EventUnread, true, "A scope has changed for the member.",
			reflect.TypeFor[live.Delta]()),
		d.event(live.EventMessage, false, "A message of a scope in ?messages= or a subscribe frame has "+
			"changed. Not resumed: read the messages again after a gap.",
			reflect.TypeFor[live.MessageEvent]()),
		d.event(live.EventInbox, false, "The member's inbox has changed: a hint to read its badge.",
			reflect.TypeFor[live.InboxHint]()),
		d.event(live.EventRefused, false, "Something that was asked for is not followed.",
			reflect.TypeFor[live.Refused]()),
		d.event(live.EventExpired, false, "The last event of a stream whose token ended.",
			reflect.TypeFor[live.Expired]()),
		d.event(live.EventPing, false, "Nothing but a sign of life; on server-sent events a comment line."),
	}}
}

// sessionEvents describes the frames of a stream of sessions.
func (d *document) sessionEvents() *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		d.event(live.EventHello, false, "The first event.", reflect.TypeFor[live.Hello]()),
		d.event(live.EventSession, true, "A session as it is now: each of them at the beginning or "+
			"after a gap, and one that has changed.", reflect.TypeFor[live.SessionUpdate](),
			reflect.TypeFor[live.SessionGone]()),
		d.event(live.EventMessage, false, "A message of a session has changed. Not resumed: read "+
			"the messages again after a gap.", reflect.TypeFor[live.SessionMessage]()),
		d.event(live.EventExpired, false, "The last event of a stream whose token ended.",
			reflect.TypeFor[live.Expired]()),
	}}
}

// finish settles the schemas.
func (d *document) finish() error {
	if err := d.describeTypes(); err != nil {
		return err
	}
	for name, s := range d.api.Components.Schemas.Map() {
		d.settle(s, d.request[name])
	}
	for _, item := range d.api.Paths {
		for _, op := range []*huma.Operation{
			item.Get, item.Put, item.Post, item.Patch, item.Delete,
		} {
			if op == nil {
				continue
			}
			for _, r := range op.Responses {
				for _, m := range r.Content {
					d.settle(m.Schema, false)
				}
				if frame, ok := r.Extensions["x-server-frame"].(*huma.Schema); ok {
					d.settle(frame, false)
				}
			}
		}
	}
	return nil
}

// text is the served text. It is made when somebody asks for it: that takes longer than everything
// else that a server does to begin.
func (d *document) text() []byte {
	d.once.Do(func() {
		var err error
		if d.bytes, err = json.MarshalIndent(d.api, "", " "); err != nil {
			panic(fmt.Sprintf("openapi document: %v", err)) // it is made of our own types
		}
	})
	return d.bytes
}

// settle removes what huma assumes and we do not do: lists are never null, and only what clients
// send is closed against unknown fields.
func (d *document) settle(s *huma.Schema, sent bool) {
	if s == nil || s.Ref != "" {
		return
	}
	if s.Type == huma.TypeArray {
		s.Nullable = false
	}
	if s.Type == huma.TypeObject {
		if closed, ok := s.AdditionalProperties.(bool); ok && !closed && !sent {
			s.AdditionalProperties = nil
		}
		if inner, ok := s.AdditionalProperties.(*huma.Schema); ok {
			d.settle(inner, sent)
		}
	}
	d.settle(s.Items, sent)
	for _, p := range s.Properties {
		d.settle(p, sent)
	}
	for _, list := range [][]*huma.Schema{s.OneOf, s.AnyOf, s.AllOf} {
		for _, p := range list {
			d.settle(p, sent)
		}
	}
}
