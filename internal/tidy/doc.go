// Package tidy holds the rules that this repository keeps about itself, as functions over a file
// tree and as tests that run them.
//
// # What it holds
//
// [Load] reads a tree once: every text file, and the syntax tree of every Go file. A [Rule] looks at
// what was read and answers with findings, each a file, a line and one sentence that says what to do.
// [Rules] lists them all: who may import whom, sizes, names, package comments, tests that sleep,
// packages whose goroutines nobody watches, TypeScript that no type checker sees, requirement ids, and
// text that belongs to one machine.
//
// [Survey] counts which requirement and scenario ids a test cites and which the status page explains.
// The program in internal/tidy/rules prints it.
//
// # Invariants
//
// Rules read and never write, need no network, no go command and no version control, and take well
// under a second for the whole tree, so they run with every go test. They judge text and syntax only:
// what needs types is left to the linters.
//
// Each rule has a fixture in this package's tests that breaks it. A rule without one fails the tests,
// since a rule that cannot fail protects nothing.
//
// # Caller duties and failures
//
// Load needs a go.mod at the root of the tree and Go files that parse; otherwise it returns an error
// that names the file. A package that is new to the tree has no place in the import table and is a
// finding until somebody decides where it belongs.
package tidy
