// Command generate writes the conformance cases that are made and not written by hand: histories
// from the oracle. It is run by go generate, in internal/conform.
package main
