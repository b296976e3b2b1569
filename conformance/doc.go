// Package conformance holds the language-neutral cases that say what a server of unread state has
// to answer, and what its clients have to make of it. A case is a JSON file that needs nothing but a
// JSON parser; README.md describes the form, schema.json checks it.
//
// The package runs the cases of servers against any server by its address:
//
//	Load -> cases -> Server.Run -> a result for each case
//
// # Invariants
//
//   - A case stands alone: it makes what it needs under names that nothing else has, so that cases
//     run in any order, again, and beside other users of the server.
//   - Whatever a case expects can fail it: the tests alter each expected answer in turn and demand
//     that the case notices.
//
// # Failures
//
// A case that does not hold is a failed result with the step and what differs. An address that does
// not answer, or a token that it does not take, is an error: nothing is known of the server then.
package conformance
