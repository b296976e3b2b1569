// Package bench is how Tidemark is measured: rounds, statistics, verdicts and the report. What is
// measured lies in the packages below it.
//
// # What it holds
//
// A suite is a list of groups. A group prepares what it measures once, then measures it in
// rounds, and fills the figures it is named for:
//
//	Suite.Run ---> for each group that fills a wanted figure
//	                 prepare; for each round { side A, side B, control }; clean up
//	           ---> Report: figures in the order of the catalogue, checks, machine
//
// The sides of a figure are measured one right after the other in every round, in the opposite
// order in every second one, so that whatever slows the machine slows both. A figure keeps what
// each round gave. Its ratio is made in each round from that round's values and is shown as the
// median with the least and the greatest; the verdict goes by the median.
//
// Beside a ratio stands a control: the same thing measured twice in the same round, so that a
// reader sees how far apart two equal things are on this machine. Beside a latency stands the
// same loop doing nothing. Latencies are taken from the moment at which an operation was meant to
// start, by a clock that does not wait for the one before it: an operation that is held up
// counts its waiting, and so do those behind it.
//
// # Invariants
//
//   - A figure that was not measured says why; it is never shown as met.
//   - Every round of a series gives one value, or the figure fails.
//   - Counts that were served under the load are compared with the oracle; one that differs fails
//     the run.
//
// # Duties of the caller
//
// Give a group the machine to itself. Close what a group prepared within it: the next one starts
// with what is left of the memory.
//
// # Failures
//
// A group that fails leaves its figures not measured, with the error as the reason, and the run
// goes on; Run then returns all such errors joined beside the report.
package bench
