// Package nostrx speaks to one Nostr relay: events and their signatures, encryption to oneself, the
// relay's document, complete snapshots of read state, and one WebSocket connection that is made anew
// when it ends. Cryptography, serialisation and signatures are go-nostr's; its client is not used,
// since it reads frames of any size into memory and waits for readers without end.
//
// # What comes from a relay
//
// A relay is believed in nothing that can be checked. An event is parsed strictly (no member twice,
// every field of its form), held against the filter that asked for it, and its id and signature are
// verified; whatever fails is dropped and counted ([Client.Refused]), and nobody hears of it. An end of
// stored events is the relay's word and never a proof of completeness; [Web.Snapshot] is the one
// answer that carries one, and [ParseSnapshot] takes it whole or not at all.
//
// # The connection
//
//	Open -> handshake (10 s) -> serve: read, ping, answer challenges -> end
//	  ^                                                                  |
//	  +-------- after 1 s, 2 s, 4 s … 60 s, less up to a half -----------+
//
// Live subscriptions are opened again on every new connection, and their readers are told that there
// was a gap. Queries and publications belong to the connection that they were sent on: when it ends,
// so do they, with ErrLost, and their callers decide. A request that a relay refuses until it is
// authenticated is made once more after its challenge was answered.
//
// # Invariants
//
//   - Every buffer has a limit: frames 1 MiB, an event 96 KiB, a query 8,192 events or 8 MiB, what
//     waits for a reader 1,024 events or 4 MiB, the answer to a snapshot 8 MiB and 4 KiB.
//   - Every wait has an end: a context, or ten seconds.
//   - No secret is in an error, a log or a printed value.
//   - A publication is verified once more before it is sent, and is at most 64 KiB.
//
// # Duties of the caller
//
// Close the Client, or end its context. Read subscriptions, and after SignalGap ask anew for what may
// have been missed: a subscription does not fetch it. Publish again, with the same bytes, what ended
// without a receipt.
//
// # Failures
//
//	the relay cannot be reached      the client goes on trying; calls end by their deadline
//	it sends what it should not      dropped and counted; a frame beyond the limit ends the connection
//	it sends more than is taken      the query fails with ErrTooMuch, a subscription has a gap
//	it refuses                       ErrRefused with its words, or a Receipt that is not Accepted
//	it lies about the end            nothing here notices; callers claim nothing by it
package nostrx
