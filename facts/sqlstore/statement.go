package sqlstore

import (
	"regexp"
	"strings"
)

// statement is one SQL statement of the package in all the sizes it is run with. A statement
// over many keys or rows is prepared once for each of a few sizes.
type statement struct {
	name string
	// width is the number of parameters of one key or row, zero for a statement without keys.
	width int
	text  func(d *dialect, n int) string
}

// statements lists every statement of the package, for tests of their plans.
var statements []*statement

func register(st *statement) *statement {
	statements = append(statements, st)
	return st
}

// Marks in the text of a query: the relation of the keys asked for, with the columns k1, k2 and
// so on, and the index to use where a database would choose another.
const keysMark = "{keys}"

var indexMark = regexp.MustCompile(`\{index (\w+)\}`)

func query(name string, width int, text string) *statement {
	return register(&statement{name: name, width: width, text: func(d *dialect, n int) string {
		text := text
		if width > 0 {
			text = strings.Replace(text, keysMark, d.keys(n, width), 1)
		}
		text = indexMark.ReplaceAllStringFunc(text, func(mark string) string {
			return d.index(indexMark.FindStringSubmatch(mark)[1])
		})
		return d.placeholders(text)
	}})
}

// insertion describes the rows an insert or upsert writes. The first keys columns identify a
// row; update lists what an upsert changes, none for a plain insert.
type insertion struct {
	table   string
	columns []string
	keys    int
	update  []string
	ignore  bool // leave an existing row as it is
}

func insert(name string, in insertion) *statement {
	return register(&statement{name: name, width: len(in.columns), text: func(d *dialect, n int) string {
		return d.placeholders(d.insert(in, n))
	}})
}

// change describes an update of rows found by their first keys columns.
type change struct {
	table   string
	columns []string
	keys    int
}

func update(name string, ch change) *statement {
	return register(&statement{name: name, width: len(ch.columns), text: func(d *dialect, n int) string {
		return d.placeholders(d.update(ch, n))
	}})
}

func remove(name, table string, columns ...string) *statement {
	return register(&statement{name: name, width: len(columns), text: func(d *dialect, n int) string {
		return d.placeholders(d.remove(table, columns, n))
	}})
}

func list(s string) []string { return strings.Fields(s) }

// Sizes in which statements are prepared. Keys are padded with NULLs up to a power of two, so
// that most loads are one statement. Rows cannot be padded: up to exactRows a statement is
// prepared for every number, above that for powers of two.
const (
	maxKeys   = 512
	maxRows   = 128
	exactRows = 16
)

// keySize returns how many of n keys go into the next statement, and its padded size.
func keySize(n int) (take, size int) {
	if n >= maxKeys {
		return maxKeys, maxKeys
	}
	size = 1
	for size < n {
		size *= 2
	}
	return n, size
}

// rowSize returns how many of n rows go into the next statement.
func rowSize(n int) int {
	if n <= exactRows {
		return n
	}
	size := maxRows
	for size > n {
		size /= 2
	}
	return size
}
