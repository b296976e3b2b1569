// Package readstate is the algebra of unread: given ranks, it says what one member has not read
// in one scope, and how every operation changes the few numbers kept about them.
//
// # What is computed
//
// A scope is an append-only log. Each readable entry has a revision, its rank among the readable
// ones. Everything about a member in a scope is kept at one effective point E, below which
// nothing counts. A count is the distance from E to the head, less what does not count for the
// member; each subtrahend is itself a difference of ranks or a number that changes only when a
// message names the member. Nothing is ever incremented for a reader and reset later.
//
// # What may move E
//
// E follows from the cursor, the first effective revision, the floor and the start of a manual
// mark ([Row.EffectivePoint]). A command changes one of those facts and says so; the caller then
// carries out the move:
//
//	command on Row -> E' = EffectivePoint(floor) -> PlanMove(E', head)
//	                                                 | AtHead: MoveToHead(head, writer)
//	                                                 | else: read the span's rows, Move(...)
//
// # Duties of the caller, in order
//
//  1. Hold the row, the writer's heads and the scope's head of one moment.
//  2. Raise Writer and head for a message before or after the rows it touches, but in the same
//     atomic change; touch the rows of its author, its principal and the members it names.
//  3. Remove or edit only what is live and above the floor.
//  4. After any command that reports Applied, move Point to EffectivePoint.
//  5. Give Terms the ranks of the base, max(E, floor), not of E alone.
//
// The package is pure: no input or output, no clock, no locks, no randomness. Its errors are
// refusals of a command, which leave the row untouched, or ErrNegative and ErrSpan, which say
// that the caller's state is broken; neither is ever clamped.
package readstate
