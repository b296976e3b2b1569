package sqlstore

import (
	"fmt"
	"strings"

	"github.com/pressly/goose/v3"
)

// dialect is all that differs between databases apart from the migrations: how a statement
// over many keys is spelled, how its parameters travel, and what an error of the driver means.
type dialect struct {
	name    string
	version goose.Dialect // of the table of migrations
	table   string        // its name
	// begin, beginRead, commit and rollback frame a transaction.
	begin, beginRead, commit, rollback string
	// keys spells the relation of n keys, whose columns are compared with those named.
	keys func(n int, columns []string) string
	// index makes the table named before it use an index.
	index func(name string) string
	// lock makes a query that reads rows of the named alias hold them until its transaction ends,
	// where somebody else may write meanwhile.
	lock func(alias string) string
	// now is the time by the database's clock, in milliseconds since 1970.
	now string
	// texts are the statements that this database needs in other words, by name.
	texts map[string]string
	// spell turns a text with ? and CROSS JOIN into the database's own.
	spell  func(text string) string
	insert func(in insertion, n int) string
	update func(ch change, n int) string
	remove func(table string, columns []string, n int) string
	// arrays: keys travel as one array a column, so that one text serves any number of them.
	arrays bool
	// direct: statements are sent as they are, their parameters within the text.
	direct bool
	// bytes: there is no column of text that could hold every text.
	bytes bool
	// frees: a connection cannot be closed before its statements are.
	frees bool
	// remote: a session may be ended from the other side while nobody uses it, and what becomes of
	// a commit that failed cannot be told from the session.
	remote bool
	// parameters is how many a statement may have.
	parameters int
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
	failureAborted // rolled back in favour of another transaction; may be run again
	failureCorrupt // damaged, or no database at all
	failureReadOnly
)

// tuples renders n lists of width parameters.
func tuples(n, width int) string {
	one := "(" + strings.TrimSuffix(strings.Repeat("?,", width), ",") + ")"
	return strings.TrimSuffix(strings.Repeat(one+",", n), ",")
}

// onConflict is an insertion for databases that name the key of the row that is there.
func onConflict(verb string, in insertion, n int) string {
	text := verb + " INTO " + in.table + " (" + strings.Join(in.columns, ", ") + ") VALUES " +
		tuples(n, len(in.columns))
	if in.ignore {
		text += " ON CONFLICT DO NOTHING"
	}
	if len(in.update) == 0 {
		return text
	}
	sets := make([]string, len(in.update))
	for i, c := range in.update {
		sets[i] = c + " = excluded." + c
	}
	return text + " ON CONFLICT (" + strings.Join(in.columns[:in.keys], ", ") + ") DO UPDATE SET " +
		strings.Join(sets, ", ")
}

// updateFrom is an update for databases that join the table with the keys.
func updateFrom(verb string, ch change, keys string) string {
	return verb + " " + ch.table + " AS t SET " + assignments(ch, "") + " FROM " + keys +
		" AS k WHERE " + matches(ch.columns[:ch.keys])
}

// assignments sets the columns behind the keys, each with a prefix, to those of k.
func assignments(ch change, prefix string) string {
	sets := make([]string, 0, len(ch.columns)-ch.keys)
	for i, c := range ch.columns[ch.keys:] {
		sets = append(sets, fmt.Sprintf("%s%s = k.k%d", prefix, c, ch.keys+i+1))
	}
	return strings.Join(sets, ", ")
}

// matches compares columns of t with those of k.
func matches(columns []string) string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = fmt.Sprintf("t.%s = k.k%d", c, i+1)
	}
	return strings.Join(all, " AND ")
}
