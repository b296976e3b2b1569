// Package conform holds this repository's server against the conformance cases, and the cases
// against servers that are wrong. It has tests only.
package conform
