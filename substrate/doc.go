// Package substrate carries red dots from the process that owns a workspace to those that do not: a
// central process whose lists show them, and whoever follows a member from elsewhere.
//
// # What it holds
//
// A [Dot] is what is unread of one member in one workspace, with the owner's term and the commit that
// it is of. A [Publisher] runs beside an engine, a [Reader] wherever dots are shown. Between them is a
// [Store], which is Redis or Valkey in package redisdots. No process asks another one, and nobody asks
// the facts.
//
//	reader:     want a member's dot -> the store notes it for a while -> owners hear of it
//	publisher:  wanted and owned here -> watch -> changed -> coalesce -> the store, and who follows
//	reader:     read the store, or hear the change
//
// A dot is published because somebody wants it. So a message in a scope of a million members costs one
// write for each of them whose dot is on somebody's screen, and nothing for the others.
//
// # Invariants
//
//   - A dot of a lower term never replaces one of a higher term, and within a term none of an earlier
//     commit one of a later commit. The store decides that, in one step with the write.
//   - A publisher says only what memory holds for certain, and only while the engine's lease lasts.
//   - What is not known is absent. It is never a dot that is off.
//   - A dot lasts for [Limits.Keep]; its owner renews it. Without an owner nothing can change it, and
//     then it is gone.
//
// # Failures
//
//   - The store is out of reach, slow or empty: readers know nothing, and followers are told that they
//     know nothing. Commits and reads of owners do not notice.
//   - It is back: readers want again what is on screen, publishers write again all that is wanted.
//   - Somebody else has written into it: what is not understood is counted and is not known.
//   - A process was paused and writes late: refused by its term.
//
// # Duties of the caller
//
// Run the publisher and the reader until the process ends. Close what was followed.
package substrate
