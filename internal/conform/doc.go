// Package conform holds this repository's server, client and counting against the conformance cases,
// and the cases against ones that are wrong. It has tests only; what makes the cases that are not
// written by hand is below it.
package conform

//go:generate go run ./generate -cases ../../conformance/cases -scenarios ../../testdata/scenarios
