// Package relaytest is a Nostr relay for development and tests: a real server on real sockets, in
// memory, with the parts that the relay agent needs and switches for what goes wrong with relays. It is
// no relay to keep anything on.
//
// # What it speaks
//
//	GET  /          its document (NIP-11), with the descriptor of read-state snapshots
//	GET  /          as a WebSocket: EVENT, REQ, CLOSE, AUTH (NIP-01, NIP-42)
//	POST /query     one answer to filters, or a complete snapshot of the own application data
//	POST /events    a publication
//	POST /faults    switches faults, with Options.Control only
//
// The POST routes want an authorisation of exactly that request (NIP-98), and each one once.
//
// Who is nobody's member sees nothing. Channels are announced as NIP-29 groups are, by events of the
// relay's own key: kind 39000 with the name and the type (["t","dm"]), kind 39002 with the members. A
// member of the community sees the channels that they are members of, and the own application data.
//
// # Invariants
//
//   - A page of stored events is the newest that match, in a second the lower id first. Its limit
//     counts rows that are returned; auxiliary events (Filter.Aux) come on top of it.
//   - An event that is accepted is pushed to every subscription that it matches, before the end of
//     stored events of any later request of that connection.
//   - A snapshot is one cut, complete or not given.
//   - Of a coordinate, the newer event stays, in a second the one with the lower id, whatever the order
//     in which they come.
//   - A time further than 900 s from the relay's clock is refused.
//
// # Faults
//
// A [Fault] that is switched on works until it is switched off. [Relay.Intercept] decides case by case,
// and may hold an occasion for as long as it likes: it is called without a lock.
//
// # Duties of the caller
//
// Serve the Relay over HTTP, and Close it: connections outlive the server's own shutdown otherwise.
package relaytest
