// Package readsync is what a client knows of read states, as values and transitions: how answers
// and events are merged, what a window of messages has a receipt for, and what becomes of a read
// from the moment it is wanted to the moment the server has decided on it.
//
// # What is computed
//
//	State    what the server has said of one session; Merge takes two of them in any order
//	Outbox   operations that the server has not decided on, in the order they were made
//	View     State with the outbox on top: what may be shown before the server has answered
//	Window   messages around the tail of a session, with the revision they were seen through
//
// Nothing in here reads a clock, a disk or a network. A caller that keeps operations on disk asks
// for a Change, writes it, and only then applies it:
//
//	change := outbox.Add(op, seen)   -> write change   -> outbox.Apply(change)   -> show
//	outbox.Next                      -> write Begin    -> send
//	answer                           -> Settle         -> write change -> Apply
//
// # Invariants
//
//   - Revisions never fall; the manual flag is that of the highest version.
//   - An operation names exactly what was observed when it was made: a revision, and a version.
//     Nothing that happens later raises either.
//   - A version that an earlier operation of the same outbox is to bring about is worth something
//     only if that one came out as it was meant to (Operation.After). If it did not, a read that
//     builds on it keeps its revision and gives up the flag, and a mark is lost.
//   - An answer settles the operation of its own id, or nothing.
//   - A receipt is never higher than what the window holds without a gap.
//
// # Duties of the caller
//
// Hand in every answer and every event, in the order in which they come, or in another; call
// Interrupted when events may have been missed; call Replaced when a session's id leads to another
// session. Write every change before applying it. Methods are not safe for concurrent use.
package readsync
