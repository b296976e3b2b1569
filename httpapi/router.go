package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// router finds routes by path segments. It decodes each segment by itself, so that an id may
// hold any character, a slash included, and it never redirects: a path is right or unknown.
type router struct {
	literal map[string]*router
	wild    *router
	name    string             // of the wild segment below
	verbs   map[string]*router // below a wild segment that ends so, as in {id}:requeue
	pattern string
	methods map[string]*endpoint
}

// endpoint is one route with its pattern and method.
type endpoint struct {
	route  route
	handle func(*call) error
}

// add puts an endpoint in. Two for one method and pattern are a mistake of ours.
func (rt *router) add(e endpoint) {
	at := rt
	for _, segment := range strings.Split(strings.TrimPrefix(e.route.path, "/"), "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			name, verb, _ := strings.Cut(name, "}")
			if at.wild == nil {
				at.wild, at.name, at.verbs = &router{}, name, map[string]*router{}
			}
			if at.name != name {
				panic("httpapi: two names for one segment of " + e.route.path)
			}
			switch {
			case verb == "":
				at = at.wild
			case at.verbs[verb] == nil:
				at.verbs[verb] = &router{}
				fallthrough
			default:
				at = at.verbs[verb]
			}
			continue
		}
		if at.literal == nil {
			at.literal = map[string]*router{}
		}
		if at.literal[segment] == nil {
			at.literal[segment] = &router{}
		}
		at = at.literal[segment]
	}
	if at.methods == nil {
		at.methods = map[string]*endpoint{}
	}
	if _, twice := at.methods[e.route.method]; twice {
		panic("httpapi: two routes for " + e.route.method + " " + e.route.path)
	}
	at.methods[e.route.method], at.pattern = &e, e.route.path
}

// find returns what lies at an escaped path, with the decoded values of its wild segments; nil
// for an unknown path.
func (rt *router) find(escaped string) (*router, map[string]string) {
	rest, ok := strings.CutPrefix(escaped, "/")
	if !ok {
		return nil, nil
	}
	if rest == "" {
		return rt.literal[""], nil
	}
	at := rt
	values := map[string]string{}
	for segment := range strings.SplitSeq(rest, "/") {
		text, err := url.PathUnescape(segment)
		if err != nil || text == "" {
			return nil, nil
		}
		if next := at.literal[text]; next != nil {
			at = next
			continue
		}
		if at.wild == nil {
			return nil, nil
		}
		next := at.wild
		for verb, below := range at.verbs {
			// An escaped colon is part of the id.
			if id, found := strings.CutSuffix(segment, verb); found && id != "" {
				text, next = strings.TrimSuffix(text, verb), below
			}
		}
		values[at.name] = text
		at = next
	}
	if at.methods == nil {
		return nil, nil
	}
	return at, values
}

// allow lists the methods of a path.
func (rt *router) allow() string {
	methods := make([]string, 0, len(rt.methods)+1)
	for m := range rt.methods {
		methods = append(methods, m)
	}
	methods = append(methods, http.MethodOptions)
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}
