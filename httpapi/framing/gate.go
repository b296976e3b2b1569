package framing

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Config says what is held to the rules. Routes and MaxBody are required.
type Config struct {
	// Routes are a method and a path each, as in "POST /boxes/{id}/letters". A segment in braces
	// is any one segment, and may end in a word of its own, as in {id}:open.
	Routes []string
	// Prefix stands before every path. It begins with a slash and does not end with one.
	Prefix string
	// MaxBody is the largest length in bytes.
	MaxBody int64
	// HeadBytes bounds the head of a request. Default 1 MiB, as in net/http.
	HeadBytes int
	// HandshakeTimeout bounds the handshake of a TLS connection. Default 10 s.
	HandshakeTimeout time.Duration
}

// Gate holds routes to the rules. It is safe for concurrent use.
type Gate struct {
	routes    []route
	maxBody   int64
	headBytes int
	handshake time.Duration
	key       string      // begins what marks say
	listens   atomic.Bool // somebody called Listener
}

// headSlack is what net/http reads beyond its own bound, before it refuses a head as too long.
const headSlack = 4 << 10

// New makes a gate.
func New(cfg Config) (*Gate, error) {
	if cfg.MaxBody < 0 || cfg.HeadBytes < 0 || cfg.HandshakeTimeout < 0 {
		return nil, errors.New("framing: bounds must not be negative")
	}
	if cfg.HeadBytes == 0 {
		cfg.HeadBytes = http.DefaultMaxHeaderBytes
	}
	if cfg.HandshakeTimeout == 0 {
		cfg.HandshakeTimeout = 10 * time.Second
	}
	var key [16]byte
	_, _ = rand.Read(key[:]) // never fails; see crypto/rand
	g := &Gate{
		maxBody: cfg.MaxBody, headBytes: cfg.HeadBytes + headSlack,
		handshake: cfg.HandshakeTimeout, key: hex.EncodeToString(key[:]),
	}
	for _, text := range cfg.Routes {
		r, err := parseRoute(cfg.Prefix, text)
		if err != nil {
			return nil, err
		}
		g.routes = append(g.routes, r)
	}
	return g, nil
}

// Error says which rule a request breaks, in words for its sender.
type Error struct{ Reason string }

// Error implements error.
func (e *Error) Error() string { return e.Reason }

func fault(format string, args ...any) *Error { return &Error{fmt.Sprintf(format, args...)} }

// markName is the field that the gate puts first into heads of routes that are held to the rules.
// Its value is the key, a space, and a reason or nothing.
const markName = "Tidemark-Framing"

// Check returns an *Error when a request breaks the rules, nil for requests that are not held to
// them. It takes the mark out of the request's header.
func (g *Gate) Check(r *http.Request) error {
	if !g.guards(r.Method, r.URL) {
		return nil
	}
	marks := r.Header[markName]
	delete(r.Header, markName)
	if r.ProtoMajor == 1 && g.listens.Load() {
		return g.seen(marks)
	}
	if err := g.parsed(r); err != nil {
		return err
	}
	return nil
}

// seen returns what the gate found when it saw the head of a request.
func (g *Gate) seen(marks []string) error {
	if len(marks) > 0 {
		key, reason, _ := strings.Cut(marks[0], " ")
		if subtle.ConstantTimeCompare([]byte(key), []byte(g.key)) == 1 {
			if reason == "" {
				return nil
			}
			return &Error{reason}
		}
	}
	return fault("it is not certain where this request begins: use another connection")
}

// parsed holds what net/http has made of a request against the rules.
func (g *Gate) parsed(r *http.Request) *Error {
	f := fields{length: -1}
	for range r.TransferEncoding {
		f.encodings++
	}
	for _, value := range r.Header["Content-Length"] {
		f.addLength([]byte(value))
	}
	return f.breach(g.maxBody)
}
