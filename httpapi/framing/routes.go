package framing

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
)

// route is a method and the segments of a path.
type route struct {
	method   string
	segments []segment
}

// segment is a text, or anything that ends in one.
type segment struct {
	any  bool
	text string // the whole, decoded; the end, as it is written, where the rest may be anything
}

func parseRoute(prefix, text string) (route, error) {
	method, path, ok := strings.Cut(text, " ")
	if !ok || method == "" || !strings.HasPrefix(path, "/") {
		return route{}, fmt.Errorf("framing: route %q is not a method and a path", text)
	}
	r := route{method: method}
	for part := range strings.SplitSeq(strings.TrimPrefix(prefix+path, "/"), "/") {
		s := segment{text: part}
		if name, open := strings.CutPrefix(part, "{"); open {
			_, end, closed := strings.Cut(name, "}")
			if !closed {
				return route{}, fmt.Errorf("framing: route %q has a brace without end", text)
			}
			s = segment{any: true, text: end}
		}
		r.segments = append(r.segments, s)
	}
	return r, nil
}

// guards tells whether requests of a method at an address are held to the rules. It reads paths
// as the router of httpapi does: each segment is decoded by itself, and none is empty.
func (g *Gate) guards(method string, at *url.URL) bool {
	for i := range g.routes {
		if g.routes[i].method == method {
			return g.guardsPath(method, at.EscapedPath())
		}
	}
	return false
}

func (g *Gate) guardsPath(method, escaped string) bool {
	for i := range g.routes {
		if g.routes[i].method == method && g.routes[i].matches(escaped) {
			return true
		}
	}
	return false
}

func (r *route) matches(escaped string) bool {
	rest, ok := strings.CutPrefix(escaped, "/")
	if !ok {
		return false
	}
	i := 0
	for part := range strings.SplitSeq(rest, "/") {
		if i == len(r.segments) || !r.segments[i].matches(part) {
			return false
		}
		i++
	}
	return i == len(r.segments)
}

func (s segment) matches(part string) bool {
	if s.any {
		// An escaped end is part of whatever comes before it.
		return len(part) > len(s.text) && strings.HasSuffix(part, s.text)
	}
	if part == s.text {
		return true
	}
	text, err := url.PathUnescape(part)
	return err == nil && text == s.text
}

// requestLine is the first line of a head, as net/http takes it apart.
type requestLine struct {
	method, target []byte
	known          bool // the version is HTTP/1.1 or HTTP/1.0
	old            bool // it is the latter
	clean          bool // the line ends with CRLF
}

func parseLine(line []byte) requestLine {
	text, _ := bytes.CutSuffix(line, []byte("\n"))
	text, clean := bytes.CutSuffix(text, []byte("\r"))
	l := requestLine{clean: clean}
	var rest, version []byte
	l.method, rest, _ = bytes.Cut(text, []byte(" "))
	l.target, version, _ = bytes.Cut(rest, []byte(" "))
	l.old = string(version) == "HTTP/1.0"
	l.known = l.old || string(version) == "HTTP/1.1"
	return l
}

// guardsLine is guards for a request that nobody has parsed yet.
func (g *Gate) guardsLine(l requestLine) bool {
	for i := range g.routes {
		if g.routes[i].method == string(l.method) {
			return g.guardsTarget(l)
		}
	}
	return false
}

func (g *Gate) guardsTarget(l requestLine) bool {
	method := string(l.method)
	if len(l.target) > 0 && l.target[0] == '/' && bytes.IndexByte(l.target, '%') < 0 {
		// Without an escape a path is what it looks like, or nothing that net/http would take.
		path, _, _ := bytes.Cut(l.target, []byte("?"))
		return g.guardsPath(method, string(path))
	}
	at, err := url.ParseRequestURI(string(l.target))
	return err == nil && g.guards(method, at)
}
