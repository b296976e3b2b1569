// Package written is the text of files of conformance cases that are made: a step a line, so that a
// change of one number is a change of one line. It does no input or output.
package written
