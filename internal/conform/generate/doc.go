// Command generate writes the conformance cases that are made and not written by hand: histories
// from the oracle, and of the hub from
// scenarios. It is run by go generate, in internal/conform.
package main
