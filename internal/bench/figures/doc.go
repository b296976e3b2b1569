// Package figures measures Tidemark: every figure of the catalogue, through the doors that the
// server itself uses.
//
// # What it holds
//
//	catalogue.go  the figures with their bounds
//	hall.go       two channels, one of them big: what a message costs
//	lobby.go      the same through the library, on the real store
//	crowd.go      millions of read states: bytes, counts, dots, garbage collection
//	office.go     a library on SQLite: one writer against two
//	web.go        a server: counts over HTTP
//	streams.go    a server with thousands of event streams
//	start.go      the program itself, from exec to the first page
//	redis.go, postgres.go  the same work done by what people use instead
//
// # What is measured
//
// Memory is loaded through unread.Source, a member at a time, as the server loads it, and changed
// through Runtime.Apply, which the commit lane calls. Where durability belongs to the figure the
// library writes to SQLite with its usual settings; requests over HTTP are authenticated by
// signed tokens and limited like any other, with limits an operator could set.
//
// # Invariants
//
//   - What a group loads is described by plain functions of small numbers (see crowd), so that the
//     oracle can be told the same history and asked for the same counts.
//   - Each group compares counts served under its load with the oracle before it ends.
//
// # Failures
//
// A state that cannot be served fails the group: nothing slow is measured as if it were an answer.
// Temporary directories are removed in every case, processes started here are ended.
package figures
