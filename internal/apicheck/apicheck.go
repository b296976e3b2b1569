package apicheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
)

// Checker knows one document, and which of its answers it has seen.
type Checker struct {
	*contract

	mu   sync.Mutex
	seen map[string]bool // "operationId status"
}

// contract is what a document says. It does not change any more.
type contract struct {
	doc    *openapi3.T
	prefix string
	paths  map[string]*openapi3.PathItem
	events map[string][]*openapi3.Schema // data by event name, of each stream; none without data
	ids    map[string]bool               // events that may carry an id
}

// contracts are what was read before, since all servers of a test binary have the same document
// and reading it takes longer than most of what they are asked.
var contracts sync.Map // of func() (*contract, error) by text

// New reads a document and checks that it is valid itself.
func New(document []byte) (*Checker, error) {
	read, _ := contracts.LoadOrStore(string(document), sync.OnceValues(func() (*contract, error) {
		return readContract(document)
	}))
	c, err := read.(func() (*contract, error))()
	if err != nil {
		return nil, err
	}
	return &Checker{contract: c, seen: map[string]bool{}}, nil
}

func readContract(document []byte) (*contract, error) {
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(document)
	if err != nil {
		return nil, fmt.Errorf("read document: %w", err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1.") {
		return nil, fmt.Errorf("the document is of OpenAPI %s, not 3.1", doc.OpenAPI)
	}
	err = doc.Validate(context.Background(), openapi3.IsOpenAPI31OrLater())
	if err != nil {
		return nil, fmt.Errorf("the document is not valid: %w", err)
	}
	c := &contract{
		doc: doc, paths: doc.Paths.Map(), events: map[string][]*openapi3.Schema{},
		ids: map[string]bool{},
	}
	if len(doc.Servers) > 0 {
		c.prefix = doc.Servers[0].URL
	}
	for _, s := range doc.Components.Schemas {
		closeSchema(s)
	}
	for _, item := range c.paths {
		for _, op := range item.Operations() {
			for _, r := range op.Responses.Map() {
				for kind, media := range r.Value.Content {
					closeSchema(media.Schema)
					if kind == "text/event-stream" {
						c.readEvents(media.Schema.Value.Items.Value)
					}
				}
			}
		}
	}
	return c, nil
}

// closeSchema refuses fields that the schema does not name.
func closeSchema(ref *openapi3.SchemaRef) {
	if ref == nil || ref.Ref != "" || ref.Value == nil {
		return
	}
	s := ref.Value
	extra := &s.AdditionalProperties
	if len(s.Properties) > 0 && extra.Has == nil && extra.Schema == nil {
		no := false
		extra.Has = &no
	}
	closeSchema(extra.Schema)
	closeSchema(s.Items)
	for _, p := range s.Properties {
		closeSchema(p)
	}
	for _, list := range []openapi3.SchemaRefs{s.OneOf, s.AnyOf, s.AllOf} {
		for _, p := range list {
			closeSchema(p)
		}
	}
}

func (c *contract) readEvents(s *openapi3.Schema) {
	for _, one := range s.OneOf {
		p := one.Value.Properties
		name, _ := p["event"].Value.Enum[0].(string)
		if p["data"] != nil {
			c.events[name] = append(c.events[name], p["data"].Value)
		} else if _, known := c.events[name]; !known {
			c.events[name] = nil
		}
		c.ids[name] = c.ids[name] || p["id"] != nil
	}
}

// Exchange checks one answer. The body of a stream is left out (nil).
func (c *Checker) Exchange(req *http.Request, resp *http.Response, body []byte) error {
	err := c.exchange(req, resp, body)
	if err != nil {
		return fmt.Errorf("%s %s -> %d %s: %w", req.Method, req.URL.Path, resp.StatusCode,
			brief(body), err)
	}
	return nil
}

func (c *Checker) exchange(req *http.Request, resp *http.Response, body []byte) error {
	path, ok := strings.CutPrefix(req.URL.EscapedPath(), c.prefix)
	if ok && slices.Contains([]string{"/openapi.json", "/docs", "/"}, path) {
		return nil
	}
	item := c.find(path)
	if !ok || item == nil {
		return c.outside(resp, body, http.StatusNotFound, "the path is not documented")
	}
	op := item.GetOperation(req.Method)
	if op == nil {
		if req.Method == http.MethodOptions && resp.StatusCode == http.StatusNoContent {
			return nil
		}
		if resp.Header.Get("Allow") == "" {
			return errors.New("the method is not documented, and Allow is missing")
		}
		return c.outside(resp, body, http.StatusMethodNotAllowed, "the method is not documented")
	}
	c.note(op.OperationID, resp.StatusCode)
	if err := checkRequest(op, req, resp.StatusCode); err != nil {
		return err
	}
	r := op.Responses.Status(resp.StatusCode)
	if r == nil {
		return errors.New("the status is not documented")
	}
	if len(r.Value.Content) == 0 {
		if len(body) > 0 {
			return errors.New("a body is not documented")
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("content type: %w", err)
	}
	media := r.Value.Content[kind]
	switch {
	case media == nil:
		return fmt.Errorf("the content type %s is not documented", kind)
	case kind == "text/event-stream":
		return nil // events are checked one by one
	}
	if kind == "application/problem+json" {
		if err := checkProblem(resp, body); err != nil {
			return err
		}
	}
	return visit(media.Schema.Value, body)
}

// checkRequest holds a body that the server took against what the document says it takes: whoever
// follows the document must be able to say all of it. It needs a request that can be read again.
func checkRequest(op *openapi3.Operation, req *http.Request, status int) error {
	if status >= http.StatusBadRequest || op.RequestBody == nil || req.GetBody == nil {
		return nil
	}
	media := op.RequestBody.Value.Content["application/json"]
	if media == nil {
		return errors.New("the request's body is not documented")
	}
	body, err := req.GetBody()
	if err != nil {
		return fmt.Errorf("read the request again: %w", err)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return fmt.Errorf("read the request again: %w", err)
	}
	if err := visit(media.Schema.Value, text, openapi3.VisitAsRequest()); err != nil {
		return fmt.Errorf("request %s: %w", brief(text), err)
	}
	return nil
}

// outside checks an answer to what no operation describes.
func (c *Checker) outside(resp *http.Response, body []byte, status int, why string) error {
	if resp.StatusCode != status {
		return errors.New(why)
	}
	if err := checkProblem(resp, body); err != nil {
		return err
	}
	return visit(c.doc.Components.Schemas["Problem"].Value, body)
}

func checkProblem(resp *http.Response, body []byte) error {
	var p struct {
		Status int    `json:"status"`
		Code   string `json:"code"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return fmt.Errorf("a problem must be JSON: %w", err)
	}
	if p.Status != resp.StatusCode || p.Code == "" {
		return fmt.Errorf("the problem says status %d, code %q", p.Status, p.Code)
	}
	return nil
}

// find returns the documented path that an escaped path matches. A literal segment wins.
func (c *Checker) find(escaped string) *openapi3.PathItem {
	have := strings.Split(escaped, "/")
	var best *openapi3.PathItem
	most := -1
	for pattern, item := range c.paths {
		want := strings.Split(pattern, "/")
		if literals := matches(want, have); literals > most {
			best, most = item, literals
		}
	}
	return best
}

// matches counts the literal segments that agree; -1 when the path is another one.
func matches(want, have []string) int {
	if len(want) != len(have) {
		return -1
	}
	literals := 0
	for i, segment := range want {
		text, err := url.PathUnescape(have[i])
		switch {
		case err != nil:
			return -1
		case strings.HasPrefix(segment, "{"):
			if text == "" {
				return -1
			}
		case segment != text:
			return -1
		default:
			literals++
		}
	}
	return literals
}

// Event checks one server-sent event: it must be as some stream has it.
func (c *Checker) Event(name string, data []byte) error {
	schemas, known := c.events[name]
	if !known {
		return fmt.Errorf("event %q is not documented", name)
	}
	var failed error
	for _, s := range schemas {
		err := visit(s, data)
		if err == nil {
			return nil
		}
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		return fmt.Errorf("event %s %s: %w", name, brief(data), failed)
	}
	return nil
}

// Frame checks one message of a socket.
func (c *Checker) Frame(data []byte) error {
	var f struct {
		Event string          `json:"event"`
		ID    string          `json:"id"`
		Data  json.RawMessage `json:"data"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return fmt.Errorf("frame %s: %w", brief(data), err)
	}
	if f.ID != "" {
		if _, err := strconv.ParseUint(f.ID, 10, 64); err != nil || !c.ids[f.Event] {
			return fmt.Errorf("frame %s: the id is not documented", brief(data))
		}
	}
	return c.Event(f.Event, f.Data)
}

// visit checks a JSON text against a schema, as a response unless told otherwise.
func visit(s *openapi3.Schema, data []byte, as ...openapi3.SchemaValidationOption) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	if len(as) == 0 {
		as = []openapi3.SchemaValidationOption{openapi3.VisitAsResponse()}
	}
	return s.VisitJSON(v, append(as, openapi3.EnableFormatValidation())...)
}

func (c *Checker) note(operation string, status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[operation+" "+strconv.Itoa(status)] = true
}

// Unseen lists the documented operations that no exchange had an answer below 400 from.
func (c *Checker) Unseen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, item := range c.paths {
		for _, op := range item.Operations() {
			good := false
			for status := range op.Responses.Map() {
				good = good || status < "400" && c.seen[op.OperationID+" "+status]
			}
			if !good {
				out = append(out, op.OperationID)
			}
		}
	}
	slices.Sort(out)
	return out
}

// Operations lists every documented method and path pattern.
func (c *Checker) Operations() []Operation {
	var out []Operation
	for path, item := range c.paths {
		for method, op := range item.Operations() {
			out = append(out, Operation{
				ID: op.OperationID, Method: method, Path: path, Body: op.RequestBody != nil,
				Public: op.Security == nil,
			})
		}
	}
	slices.SortFunc(out, func(a, b Operation) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// Operation is one documented operation.
type Operation struct {
	ID, Method, Path string
	Body             bool // a body is required
	Public           bool // no token is needed
}

func brief(body []byte) string {
	const most = 400
	if len(body) > most {
		return string(body[:most]) + "…"
	}
	return string(body)
}
