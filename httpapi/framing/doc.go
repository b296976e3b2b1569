// Package framing holds chosen routes to one way of saying how long a request is: a single
// Content-Length, a plain decimal number within a bound, and no Transfer-Encoding of any form.
//
// # Why before net/http
//
// Two parsers that disagree about where a request ends are how requests are smuggled past a
// proxy. net/http forgives some of what such disagreements are made of (two equal lengths, lines
// that end in a bare line feed, folded fields) and answers some of it in its own way (an empty
// Transfer-Encoding is a 501 in plain text), and a handler sees neither. So a Gate looks at the
// bytes of each connection, before net/http does:
//
//	listener -> Gate.Listener -> net/http -> handler -> Gate.Check -> route
//
//	      head of a route that is held to the rules, in order:      marked as seen
//	      the same, against the rules:                              replaced by a refusal
//	      any other head:                                           untouched
//
// # The course of a connection
//
//	between -> head -> body -> between ...
//	             |       |
//	             |       +-> lost      chunks that do not read as they should
//	             +-> refused           the refusal goes to net/http, nothing behind it does
//	             +-> lost              a head that is not followed: too long, or ambiguous
//
// The request line goes on to net/http as it comes, so that the http.Server's own times for a
// head count; the fields are held until the head is complete. A refusal is a request of the same
// line whose mark carries the reason: net/http hands it to the handler in its turn, behind the
// answers to whatever was asked before on this connection, and Check returns the reason. A lost
// connection goes through as it is, and no head on it is marked any more; so does one that a handler
// took over, for a web socket or a stream of events.
//
// # Invariants
//
// A request of a route that is held to the rules passes Check over HTTP/1 only when its head was
// seen and found right, on a connection on which every request before it was followed to its end.
// What the Gate misses is refused, never let through: marks carry a key that no client knows. The
// Gate adds no request, answers nothing itself, and changes no byte of requests that it does not
// refuse, but for the mark. At most Config.HeadBytes are held for a connection, and nothing while
// it is idle.
//
// Over HTTP/2, and over HTTP/1 where nobody called Listener, Check looks at what net/http has
// made of the request. HTTP/2 frames say where a body ends, net/http holds them against the
// length, and refuses connection-specific fields; one length within the bound is asked for there,
// too.
//
// # The caller's duties
//
// The http.Server has a ReadHeaderTimeout, and a MaxHeaderBytes not above Config.HeadBytes. Once
// Listener was called, every HTTP/1 connection on which these routes are asked for comes through
// it. The handler calls Check before it looks at anything else of a request, answers its error,
// and closes an HTTP/1 connection then. The routes read their bodies to the end before they do
// anything.
//
// # Failures
//
// Errors of a connection come through as they are. A TLS handshake that fails is left to net/http
// to report. Handshakes that take longer than Config.HandshakeTimeout are given up.
package framing
