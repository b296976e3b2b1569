// Package unread is the UnreadRuntime. It answers what members have not read from memory alone,
// exactly, and keeps that memory from committed facts.
//
// # What it holds
//
// Per open workspace: slots of scopes (ranks, revision sets, blocked writers), rows of the
// members who are loaded, each with its effective point, and the LSN at which all of it stands.
// A row's count is computed when it is asked for; nothing is counted up for a reader.
//
// All of this lies in slabs outside the Go heap, without pointers, found through 32-bit indexes.
// The rows of a member are neighbours, in columns of one numbering:
//
//	hot     28 bytes: cursor, join point, own ranks, commit, flags, two small counters
//	scopes   4 bytes: the slot
//	links    8 bytes: neighbours on the list that the row is on
//	cold    for some: the numbers that most rows do not have, or that need more than 32 bits
//
// Only what connected members and blocked writers need beside that is kept in ordinary maps.
//
// # The loop
//
//	Source.Page ----> page of LSN S --(S <= applied?)--> a state of its own
//	  ^  workers           | no: parked                      | replay (S, applied]
//	  |                    +-------- Apply reaches S --------+ from the ring
//	  |                                                      v
//	jobs <-- cold reads, rows that events named          merged: adds what is lacking,
//	                                                     replaces nothing
//	Apply(lsn, events) --> slots, rows --> candidates --> reads: Row, Rows, Summary, ...
//	                           |
//	                           +--> watches: which scopes of which members changed
//	                                 --> Next: their values at the time of asking
//
// Each row is in one place: a candidate of its member, waiting in its scope, on a pending batch,
// or hidden. Whatever may make it unread makes it a candidate; whatever makes it read does
// nothing. A read checks candidates and puts the clean ones back to wait, so that every row that
// an event fires was found clean by a read before. When too many would fire at once, the list
// becomes a batch that the runtime works off in steps; a read takes its member's own rows out of
// batches first, and is exact throughout.
//
// # Invariants
//
//   - A workspace's memory stands at one LSN. Commits are applied in order; a repeated one
//     changes nothing, a gap empties the memory.
//   - A row is served only as Ready, from a page that was brought up to the applied LSN. What is
//     not loaded is never taken for zero: the answer says Hydrating and ErrNotServable. Where
//     pages are hints (Config.Hints), a row says itself whether it is SnapshotServing, Stale or
//     Unavailable, and the latter two are withheld like what is not loaded.
//   - A row in memory is never replaced by a page, only by events.
//   - The source is asked by the workers alone: no read, watch or Apply waits for it, except
//     that a read of a cold member waits for its job, up to HydrateWait.
//   - Dots, and the counts of a member whose rows are all plain, are read without a lock: the
//     workspace's sequence says whether the words read are of one moment. After a few attempts,
//     and for everything else, readers share a lock. One sequence for the whole workspace, rather
//     than one for each row, makes all of a member's numbers those of one LSN.
//   - No lock is held while the source is asked or a watch is woken. Workspaces share no lock
//     on their way: one that is stuck keeps none of the others.
//   - Nothing grows without bound: rows of members without a watch (MaxEntries), jobs, the ring,
//     what one event touches at once, a watch's members, and its changes, each noted once.
//
// # Duties of the caller
//
//  1. Open a workspace at the LSN of its facts, and Apply every commit from there on, in order,
//     by one goroutine at a time, once it is durable, also a commit without events.
//  2. Answer pages from one snapshot of the store, at an LSN whose commits will all be applied.
//  3. Leave events alone after handing them over; they are kept for pages under way.
//  4. Watch first, then take the snapshot; read Next when Ready receives; begin anew when Lost is
//     closed.
//  5. What Lines hands out is memory itself, which cannot change meanwhile: encode it or copy it,
//     keep none of it, and call the runtime afterwards.
//
// # Failures
//
//   - The source fails: the page is read again after HydrateRetry; reads say Hydrating.
//   - The source knows no such member: ErrNoMember.
//   - The ring lost what a page needs: the page is thrown away and read again.
//   - Events contradict memory, or a count falls below zero: nothing is clamped. The workspace's
//     memory is dropped (ErrInvariant, Stats.Alarms) and read again. A hint that does is withheld.
//   - A budget refuses: ErrBudget and Unavailable, never an estimate.
package unread
