// Package settings holds every budget that an operator may change: one table that says of each
// its variable, kind, default, bounds and what happens beyond it.
//
// The table repeats no number of the code: a default is read out of the package that has the
// budget, and [Load] starts from those before it looks at anything else. A variable is called
// TIDEMARK_ and a name; the flag of the command line and the key of a configuration file are that
// name in small letters with dashes.
//
// # Caller duties
//
// Call [Load] before anything is opened and end the process with its error: a value that is not
// understood never becomes the default in silence. Call [CheckNames] with the environment, so
// that a misspelt variable is no silence either. Hand the parts of [Values] on to the packages
// that they configure.
//
// The package is pure: the environment comes in as arguments.
package settings
