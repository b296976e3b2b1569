package sqlstore

import "strings"

// dialect is all that differs between databases apart from the migrations: how a statement
// over many keys is spelled, and what an error of the driver means.
type dialect struct {
	name string
	// begin, beginRead, commit and rollback frame a transaction.
	begin, beginRead, commit, rollback string
	keys                               func(n, width int) string
	// index makes the table named before it use an index.
	index func(name string) string
	// placeholders turns ? into the database's own parameter marks.
	placeholders func(text string) string
	insert       func(in insertion, n int) string
	update       func(ch change, n int) string
	remove       func(table string, columns []string, n int) string
	// classify names the kind of failure.
	classify func(err error) failure
}

// failure is what an error of the driver means to the store.
type failure uint8

const (
	failureOther failure = iota // nobody knows what became of a commit
	failureFull                 // no space left; a commit that fails so did not happen
	failureTaken                // a unique key exists
	failureWrite
	failureBusy    // locked by somebody else; likewise
	failureCorrupt // damaged, or no database at all
	failureReadOnly
)

// tuples renders n lists of width parameters.
func tuples(n, width int) string {
	one := "(" + strings.TrimSuffix(strings.Repeat("?,", width), ",") + ")"
	return strings.TrimSuffix(strings.Repeat(one+",", n), ",")
}
