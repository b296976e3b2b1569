// Package factstest is what every store of facts has to pass, whatever it is built on.
//
//	TestStore      rows in, rows out: keys, fences, snapshots, hostile ids, seeks against a scan
//	TestOutbox     leases, order and queues of what facts cause, for a store that keeps an outbox
//	TestLane       a lane over the store while commits abort, get lost or are fenced off
//	TestHistories  random histories: after every operation the durable rows, evaluated by the
//	               algebra alone, equal the oracle that scans all messages
//
// TestFarStore and TestFarLane are for stores on servers, where statements take their time. Nothing is left
// out of the first but repetitions with other random content; parts of the second are shared among the
// kinds of servers. With TIDEMARK_SOAK both are whole.
//
// A store's own test calls them with a function that opens a fresh, empty store; the suite closes
// it. Driver runs one operation on the oracle and on the real thing and says how they differ; it
// serves other packages that have an engine instead of a lane.
//
// Parts of TestLane run in bubbles of testing/synctest, to know that an answer will not come. A
// store that keeps goroutines waiting for a network would never let a bubble come to rest; one that only
// waits for the answers to its statements does.
//
// Everything here is real but the faults: a faulty store hands its transactions on to the one
// below until a test asks it to lose an answer.
package factstest
