// Package conformance holds the language-neutral cases that say what a server of unread state has
// to answer, what its clients have to make of it, and what is counted. A case is a JSON file that
// needs nothing but a JSON parser; README.md describes the forms, the schemas check them.
//
// The package has the cases, and what runs each kind of them against anything that can be asked:
//
//	Load, LoadHub  -> Server.Run  -> a server by its address, with tokens
//	LoadClient     -> RunClient   -> a Client: what decides in a client; NewReadsync is this repository's
//	LoadNetwork    -> RunNetwork  -> an App: a whole client, beside a Script; NewGoApp is this repository's
//	LoadHistories  -> RunHistory  -> a Counter: an implementation of the counting rules
//
// # Invariants
//
//   - A case stands alone: it makes what it needs under names that nothing else has, so that cases
//     run in any order, again, and beside other users of a server.
//   - Whatever a case expects can fail it: the tests alter what is expected and demand that the case
//     notices.
//
// # Failures
//
// A case that does not hold is a failed result with the step and what differs. An address that does
// not answer, a token that it does not take, a step that makes no sense and an implementation that
// fails in itself are errors: nothing is known then.
//
// # Duties of the caller
//
// RunNetwork is given what waits until a client does nothing any more, and what lets time pass: the
// tests of this repository use testing/synctest. Runners are not safe for concurrent use of one
// subject; different subjects do not know of each other.
package conformance
