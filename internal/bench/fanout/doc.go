// Package fanout counts unread messages the way that most people would write it first: every
// message adds one to a counter of every member of its channel, and a read sets the reader's
// counter to zero. It is what Tidemark is compared with, not a part of it.
//
// # What it holds
//
// Ids are interned to numbers once, as Tidemark does. A channel has the list of its members'
// counters, a member has a map from channel to counter; both refer to the same counter, so that
// a message walks one list and adds, and a read is one look into a small map. Channels are
// locked one by one, counters are atomic: two messages in different channels share no lock.
//
// # What it can do
//
// Join, Post, Read to the head, Count, Counts and HasUnread, for channels. Nothing is removed,
// edited, moved or blocked: with counters, each of these needs the list of those for whom the
// message still counts, which counters do not know.
//
// # Invariants and failures
//
// For the operations it has, its counts are the oracle's. Unknown ids are reported by false.
// Nothing is durable. It starts no goroutine.
package fanout
