package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// route is what is known of an endpoint before any request.
type route struct {
	method, path string // path with {names}
	id           string // names the operation in the document
	tag          string // groups operations
	about        string // one sentence
	public       bool   // no token is needed
	role         Role   // the least one
	stream       bool   // long-lived; the token may stand in the address
	limit        int64  // of the body; zero is MaxBody
	statuses     []int  // of the answer; nil is 200
	management   bool   // any process answers it, whoever owns the workspace
}

// call is one request on its way.
type call struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	path   map[string]string
	who    Principal
	// ws is the workspace that the path names, nil where it names none.
	ws *tidemark.Workspace
	// read is the workspace that an answer is about.
	read readstate.WorkspaceID
	// assumed: a service named no member, so that its token's stands in.
	assumed bool
}

func (c *call) ctx() context.Context { return c.r.Context() }

// replier is an answer that chooses its own status.
type replier interface{ status() int }

// add registers a typed endpoint: P holds its parameters, B its body, R is its answer.
func add[P, B, R any](s *Server, rt route, fn func(*call, *P, *B) (R, error)) {
	params := paramsOf(reflect.TypeFor[P]())
	if rt.limit == 0 {
		rt.limit = MaxBody
	}
	s.document.describe(rt, params, reflect.TypeFor[B](), reflect.TypeFor[R]())
	s.router.add(endpoint{rt, func(c *call) error {
		var p P
		var b B
		err := decodeParams(params, c.path, c.r.URL.RawQuery, reflect.ValueOf(&p).Elem())
		if err != nil {
			return err
		}
		if err := readBody(c.w, c.r, rt.limit, &b); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(c.ctx(), c.server.limits.RequestTimeout)
		defer cancel()
		c.r = c.r.WithContext(ctx)
		answer, err := fn(c, &p, &b)
		if err != nil {
			return err
		}
		if rt.method == http.MethodGet && c.read != "" {
			// What was read may be old by now: the process may have been stopped meanwhile.
			if err := s.checkOwner(c.ctx(), c.read); err != nil {
				return err
			}
		}
		status := http.StatusOK
		if chosen, ok := any(answer).(replier); ok {
			status = chosen.status()
		}
		writeJSON(c.w, "application/json", status, answer)
		return nil
	}})
}

// addStream registers an endpoint that answers by itself once it returns no error.
func addStream[P any](s *Server, rt route, fn func(*call, *P) error) {
	rt.stream = true
	params := paramsOf(reflect.TypeFor[P]())
	s.document.describeStream(rt, params)
	s.router.add(endpoint{rt, func(c *call) error {
		var p P
		err := decodeParams(params, c.path, c.r.URL.RawQuery, reflect.ValueOf(&p).Elem())
		if err != nil {
			return err
		}
		if err := readBody(c.w, c.r, MaxBody, &none{}); err != nil {
			return err
		}
		return fn(c, &p)
	}})
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	answer := &answerWriter{ResponseWriter: w, timeout: s.limits.WriteTimeout}
	s.limitTime(w, r, began)
	pattern := "unknown"
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			s.log.ErrorContext(r.Context(), "panic in a handler", "route", pattern,
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			if answer.code == 0 {
				s.writeProblem(answer, r, fmt.Errorf("panic: %v", p))
			}
		}
		s.meters.request(r.Method, pattern, answer.status(), time.Since(began))
		s.log.DebugContext(r.Context(), "request", "method", r.Method, "route", pattern,
			"status", answer.status(), "duration", time.Since(began))
	}()
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), s.prefix)
	at, values := s.router.find(path)
	if err := s.gate.Check(r); err != nil {
		if at != nil {
			pattern = at.pattern
		}
		s.refuseFrame(answer, r, err)
		return
	}
	if !ok || at == nil {
		if ok && s.app != nil && !strings.HasPrefix(path, "/api/") {
			pattern = "app"
			s.app.ServeHTTP(answer, r)
			return
		}
		s.cors.answer(answer, r)
		s.writeProblem(answer, r, refuse(CodeNotFound, "there is nothing at this path"))
		return
	}
	pattern = at.pattern
	s.cors.answer(answer, r)
	e, ok := at.methods[r.Method]
	switch {
	case !ok && r.Method == http.MethodOptions:
		s.cors.preflight(answer, r, at.allow())
	case !ok:
		answer.Header().Set("Allow", at.allow())
		s.writeProblem(answer, r, refuse(CodeMethodNotAllowed, "allowed are %s", at.allow()))
	default:
		s.serve(answer, r, e, values)
	}
}

// limitTime sets the deadlines of a request before anything is known of it, since the HTTP
// server itself reads the bodies of those that are refused. A connection without deadlines is
// one of an embedder's own making.
func (s *Server) limitTime(w http.ResponseWriter, r *http.Request, began time.Time) {
	rc := http.NewResponseController(w)
	if r.ContentLength != 0 {
		_ = rc.SetReadDeadline(began.Add(s.limits.BodyTimeout))
	}
	// Up to the first byte of the answer, and in place of what an earlier request left.
	_ = rc.SetWriteDeadline(began.Add(s.limits.BodyTimeout + s.limits.RequestTimeout))
}

// serve runs an endpoint and answers its errors.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, e *endpoint, path map[string]string) {
	c := &call{server: s, w: w, r: r, path: path}
	err := s.admit(c, &e.route)
	switch {
	case err != nil:
	case s.central() && !e.route.public && !e.route.management:
		err = s.forward(c, &e.route)
	default:
		err = e.handle(c)
	}
	if err != nil {
		err = s.whose(r.Context(), c.read, c.unnamed(r.Context(), err))
		if s.writeProblem(w, c.r, err) == CodeOverBudget {
			s.meters.refused.WithLabelValues(e.route.path).Inc()
		}
	}
}

// admit settles who calls and whether they may call this route at all.
func (s *Server) admit(c *call, rt *route) error {
	if rt.public {
		return nil
	}
	if rt.stream {
		c.r = tokenFromAddress(c.r)
	}
	var err error
	if c.who, err = s.auth.Authenticate(c.r); err != nil {
		return err
	}
	if err := c.who.check(); err != nil {
		// Its cause must not be found: this is no request that makes no sense.
		return fmt.Errorf("%w: %s", ErrUnauthenticated, err.Error())
	}
	if id, named := c.path["ws"]; named {
		ws := readstate.WorkspaceID(id)
		if c.who.Workspace != AllWorkspaces && c.who.Workspace != ws {
			return refuse(CodeNotFound, "there is nothing at this path")
		}
		if err := facts.CheckID("workspace", id); err != nil {
			return err
		}
		if s.engine != nil {
			c.ws = s.engine.Workspace(ws)
		}
	}
	if c.who.Role < rt.role {
		return refuse(CodeForbidden, "this needs the role %s", rt.role)
	}
	if ok, after := s.budgets.spend(&c.who, 1); !ok {
		c.w.Header().Set("Retry-After", strconv.Itoa(after))
		return refuse(CodeOverBudget, "too many requests with this token")
	}
	c.read = c.about(rt)
	return s.checkOwner(c.ctx(), c.read)
}

// tokenFromAddress moves a token from the address into the header, where everything else looks
// for it and nothing logs it. A header that is there already counts.
func tokenFromAddress(r *http.Request) *http.Request {
	const name = "access_token"
	if !strings.Contains(r.URL.RawQuery, name+"=") {
		return r
	}
	rest := make([]string, 0, 4)
	token := ""
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			token = value // a token has no character that needs escaping
			continue
		}
		rest = append(rest, pair)
	}
	r = r.Clone(r.Context())
	r.URL.RawQuery = strings.Join(rest, "&")
	r.RequestURI = ""
	if r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

// answerWriter remembers the status of an answer, and gives the client a time to read it.
type answerWriter struct {
	http.ResponseWriter
	timeout time.Duration
	code    int
}

func (a *answerWriter) begin(code int) {
	if a.code != 0 {
		return
	}
	a.code = code
	rc := http.NewResponseController(a.ResponseWriter)
	_ = rc.SetWriteDeadline(time.Now().Add(a.timeout))
}

// WriteHeader implements http.ResponseWriter.
func (a *answerWriter) WriteHeader(code int) {
	a.begin(code)
	a.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (a *answerWriter) Write(b []byte) (int, error) {
	a.begin(http.StatusOK)
	return a.ResponseWriter.Write(b)
}

// Unwrap lets response controllers reach the connection.
func (a *answerWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answerWriter) status() int {
	if a.code == 0 {
		return http.StatusOK
	}
	return a.code
}
