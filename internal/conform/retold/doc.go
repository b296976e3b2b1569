// Package retold makes conformance cases of the hub from the scenarios in testdata: it plays each
// block against this repository's server and keeps the requests, and of the answers what the block
// looks at.
//
//	testdata/scenarios -> scenario.Runner -> server
//	                           each exchange -> a step: request, status, the fields that tell counts
//
// Blocks that need more than requests and answers are left out: streams, random operations, and
// parts that do not exist yet. A restart of the server leaves no trace in a case.
//
// # Invariants
//
//   - The block's own expectations hold while it is kept, so that no case says what a scenario denies.
//   - Equal scenarios and servers give equal files, byte for byte.
//
// # Failures
//
// A block that does not hold is an error, and nothing is written.
package retold
