// Package progress shows how far a long piece of work is.
//
// On a terminal a [Bar] is one line that is drawn anew, ten times a second at most. Elsewhere, in
// a log or a pipe, it is a plain line for every tenth of the work. It has no goroutine: it draws
// when it is told of progress. A bar belongs to one goroutine at a time.
//
// Errors of the output are ignored, since the work matters more than its display.
package progress
