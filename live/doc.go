// Package live keeps members up to date over streams: server-sent events and WebSockets that
// begin with a snapshot, or go on where a stream before them broke off, and then carry every
// change of unread state as the whole present value of one scope.
//
// # What it holds
//
// A Hub knows every open stream of the process and can end them all. Stream is one connection
// between Open, which refuses what cannot be served while a plain HTTP answer is still possible,
// and Serve, which runs until the connection ends. SSE and Socket are the two ways to write
// frames; the loop does not know which one it serves. The shapes of rows, pages and deltas on
// the wire (wire.go) live here, and httpapi answers with the same ones.
//
// # The loop
//
//	watch members -> hello -> resumed? deltas since the token : pages of a snapshot
//	               -> wait: unread changes | message changes | client frames | heartbeat |
//	                        memory lost (snapshot again) | token end | drain | client gone
//
// One goroutine a stream runs the loop. It waits nearly all of the time, and what it waits with is
// most of what a connection costs: buffers are shared, timers are one, a feed exists once there is
// a scope to subscribe to, and calls that need room return before it waits. A second goroutine
// reads what the client sends, to notice when it leaves; that of a socket hands frames over one at
// a time.
//
// Unread changes are written by couriers (couriers.go), a few goroutines of the hub that go from
// one stream that has some to the next. Whoever writes to a stream holds its lock; a courier does
// not wait for it, but leaves what there is to the loop.
//
// Server-sent events over HTTP/1 take the connection over from the HTTP server, as sockets do, and
// go on as the rest of an answer where that cannot be had.
//
// # Invariants
//
// The watch is opened before anything is read, so nothing falls between a snapshot and the first
// delta. What waits for a slow client is a set of scopes, not a queue: the value is computed when
// it is taken for writing, so a slow client skips values and never sees an old one after a newer.
// An event id names a commit up to which everything has been written; it stands on the last delta
// of a round and on the last page of a snapshot. A change of a message is written only if the
// member may see its scope at that moment; while memory cannot say, the store is asked, so that
// none is lost. A heartbeat touches no unread state and no store.
//
// # Duties of the caller
//
// Authentication, roles and the existence of the workspace are checked before Open. Every Stream
// that Open returned is given to Serve or Close. Drain the hub before the engine is closed.
//
// # Failures
//
// A write that does not finish within the write timeout ends the stream; until then it holds up one
// courier, which is replaced within milliseconds. A feed of messages that overran ends the stream,
// too, since a client can then only read the messages again, and so does a panic of a writer. The
// client reconnects with the last id and goes on from there. A member whose values cannot be shown
// gets a snapshot event that withholds them, and the real one as soon as they can.
package live
