// Package frontier is the algebra of read state on a Nostr relay: what a signed, encrypted blob of
// frontiers says, how blobs of several devices join, which messages are unread given all of that, and
// what each way of reading changes.
//
// # What is computed
//
// A frontier is the second up to which a context has been read. A [State] is a map of frontiers, and of
// the registers of synchronised manual marks. Devices never agree on an order: each publishes what it
// knows, and [Join] takes the greater of everything. A message is unread when it may count for the
// viewer, is later than every frontier that reads it, and is younger than [Horizon]:
//
//	frontier of a message = the greatest that is known of
//	    msg:<id>   its channel   thread:<root>   thread-activity:<root>
//	    activity:<channel>, for ordinary top-level messages only
//
// What is not known stays unknown: a missing frontier is not zero, and no count is made of a channel
// without evidence.
//
// # What may move a frontier
//
//	Observe          rows that stayed in view       msg: of each; in a dm the channel
//	CatchUp          the bottom of a channel        activity:, msg: of mentions and broadcasts
//	                 the bottom of a thread         thread-activity:
//	MarkThrough      an explicit prefix             the target's key
//	MarkChannelRead  the whole channel, by clock    the channel
//
// Each returns a [Plan], to be saved whole or not at all. Values come from signed events; only
// MarkChannelRead uses the clock, since it is an explicit act. No key that covers more than one message
// is ever raised beyond the present: a message from the future is read by a key of its own, and
// silences nobody.
//
// # Invariants
//
//   - Join is commutative, associative and idempotent. Nothing ever lowers a frontier or a part of a
//     register.
//   - A blob that is read is read the same way by everybody: registers as a whole before anything is
//     left out, the key on the wire before it is unescaped, a number by its value.
//   - Where a message belongs is known from signed events and from nothing else.
//   - Catch-up keys take no part in [State.Effective], which is what marks of other clients are
//     measured by.
//   - A local mark is shown and adds to no count.
//
// # Duties of the caller
//
// Verify messages and access before making a [Message] of them. Give a [View] the state of journal and
// reserve together. Save a plan in one transaction, which checks the lease inside ([Leases.Check]) and
// raises frontiers by maximum. Never publish keys of messages, registers, or what is not one's own.
//
// # Failures
//
// Errors are refusals, and leave everything as it was. A wrong entry of a blob is left out; a wrong blob
// is ErrBlob and never an empty state. The package is pure: no input or output, no clock, no locks.
package frontier
