// Package filelock locks files among processes. The operating system gives a lock up with the file
// that holds it, at the latest with the process.
package filelock
