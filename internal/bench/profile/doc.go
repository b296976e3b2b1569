// Package profile says which share of the processor's time a function takes.
//
// It takes a CPU profile of some work, repeated until there are enough samples to speak of, and
// reads just what it needs of it: samples, locations, functions and names. The work runs in the
// caller's goroutine; the profiler is the process's one, so that a second profile at the same
// time is an error. A profile that cannot be read is an error, never a share of zero.
package profile
