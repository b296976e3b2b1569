// Command rules prints where the requirements and scenarios stand: which ids a test cites, which the
// status page explains, and which are in neither place.
//
//	go run ./internal/tidy/rules [-strict]
//
// It reads the tree it is run in and changes nothing. It exits 0 when it could print its report, with
// -strict 1 when an id is missing, pending or explained without need, and 2 when the tree cannot be
// read.
package main
