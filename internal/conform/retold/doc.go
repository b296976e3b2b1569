// Package retold makes conformance cases of the hub from the scenarios in testdata: it plays each
// block against this repository's server and keeps the requests, and of the answers what the block
// looks at.
//
//	testdata/scenarios -> scenario.Runner -> server
//	                           each exchange -> a step: request, status, the fields that tell counts
//
// What needs more than requests and answers is left out: of a block what devices hear and restarts of
// the server, and whole blocks of random operations, of many messages, or of parts that do not exist
// yet.
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
