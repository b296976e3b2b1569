// Package histories makes the histories of conformance cases from the oracle, package model, and
// translates between the operations of both.
//
//	named.txt, seeds -> operations -> model.World -> counts after each -> conformance cases
//
// The files in conformance/cases/readstate are written by internal/conform/generate and never by
// hand; a test of package conform fails when they are not what this package makes.
//
// # Invariants
//
//   - Equal sources give equal files, byte for byte: nothing depends on time, or on the order of a
//     map.
//   - Tasks that find their recipients by themselves are left out: who they are is given to the
//     algebra.
//
// # Failures
//
// An operation or a case that makes no sense is an error with its line. Nothing panics on input.
package histories
