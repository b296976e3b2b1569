// Package httpapi is the public face of an engine: routes, authentication, roles, limits, the
// one table of errors, streams, health, metrics, and the OpenAPI document that all of this
// describes itself in.
//
// # What it holds
//
// Server is an http.Handler. A request passes, in this order, through
//
//	framing -> route -> CORS -> method -> authentication -> namespace -> role -> rate -> parameters -> body
//	      -> handler -> engine -> answer, or a row of the error table
//
// so that nothing is read or changed before namespace and access are settled. Handlers are typed
// functions; the same types describe parameters, bodies and answers in the document served at
// /openapi.json (document.go), so that the two cannot drift apart. What they mean, and an example
// of every body, stands in describe.txt. Everything about huma stays in this package.
//
// # Invariants
//
// A path of another workspace answers not_found, whatever is in it. What a body may hold is what
// its Go type says, to the letter (live/strict). An error reaches the wire through errors.go or
// not at all; what no row matches is internal, and its text stays in the log. Tokens are never
// logged, and a token in an address is taken out before anything else sees the request. Answers
// about unread state come from memory: no route computes one from messages.
//
// # The caller's duties
//
// New is given an open engine and an authenticator. Serve it with read and idle timeouts, but
// without a write timeout, which would end streams, on the listener that Server.Listener makes of
// yours: routes that write to inboxes take the length of a request in one form only, which can be
// told for certain only before net/http has read it. A proxy in front must send them a length, and
// may frame its clients' requests anew. To stop: Drain, then http.Server.Shutdown,
// then the engine. AdminHandler shows metrics and profiles and belongs on an address that only
// operators reach.
//
// # Failures
//
// Whatever cannot be answered exactly is refused with a code that says whether it is worth
// trying again; Retry-After says when. Values that cannot be shown are withheld, with a state. A
// panic in a handler is logged, answered as internal, and ends nothing but its request.
package httpapi
