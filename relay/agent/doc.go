// Package agent is the relay agent: it holds the identity's key, reads a Nostr relay, keeps what it has
// verified, and answers what is unread. It ties evidence, frontier, journal and nostrx together; the
// broker serves it to windows.
//
// # The way of a message
//
//	relay -> nostrx verifies -> evidence.Window -> frontier.View, with the journal's record -> Snapshot
//
// and of a read:
//
//	Observe, MarkThrough … -> a plan, inside journal.Book.Act -> saved -> journal.Sync, after a quiet period
//
// # The observation
//
// One goroutine reads, in this order and one thing after the other: the relay's document, the markers,
// the roster, the messages of all channels in batches of 128, the homes of receipts once a session, and
// then what lookups want to know. Callers of Ensure share the one that runs; Refresh waits for it and has
// everything read again. Another goroutine takes what the subscription delivers. What failed is stale and
// waits for a refresh, a reconnection or the next period.
//
// # Decisions
//
// The wire leaves some points open. Here they are decided so:
//
//   - A channel of the roster is an event of kind 39000 with its type in a t tag, its members one of kind
//     39002 with p tags, both with the channel in a d tag and signed by the key that the relay's document
//     names as its own. Nothing of it is believed from another key, and without such a key nobody is a
//     member of anything.
//   - A quiet message has exactly one audience tag of exactly two elements with the value agents.
//   - A state that holds registers of other clients' manual marks is shown, and its publication refused
//     as a whole; the local marks of this device go on.
//   - The partition of the journal is the relay's address: a relay's host is bound to one community.
//   - A removed member hears of it with the next roster that is read whole, at the latest after Period.
//
// # Invariants
//
//   - Nothing is unknown and shown as zero: a Count that is not Known is null on the wire.
//   - Access that is lost is lost for all targets before anybody is told of one of them, and readings that
//     were open then stay ended when it comes back.
//   - What a reading covers is what was here when it began; the lease is checked inside the transaction.
//   - No lock is held across input or output.
//
// # Duties of the caller
//
// Close the Agent, and the Journal after it. Call Observe only for rows that a person looks at.
//
// # Failures
//
// ErrDenied and ErrExpired refuse and change nothing; errors of the journal are returned as they are.
// Errors of the relay are shown by Diagnostics and Sync, and never end the Agent.
package agent
