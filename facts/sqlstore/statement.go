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
	// keys names the columns that the parameters of one key are compared with or written to, ""
	// where a query does neither; nil for an insertion.
	keys []string
	text func(d *dialect, n int) string
}

// statements lists every statement of the package, for tests of their plans.
var statements []*statement

func register(st *statement) *statement {
	statements = append(statements, st)
	return st
}

// Marks in the text of a query: the relation of the keys asked for, with the columns k1, k2 and
// so on, the database's present, the index to use where a database would choose another, and the
// rows to hold where others write meanwhile.
const (
	keysMark = "{keys}"
	nowMark  = "{now}"
)

var (
	indexMark = regexp.MustCompile(`\{index (\w+)\}`)
	lockMark  = regexp.MustCompile(`\{lock (\w+)\}`)
	keyed     = regexp.MustCompile(`\w\.(\w+) = k\.k(\d)`)
)

func query(name string, width int, text string) *statement {
	st := &statement{name: name, width: width, keys: make([]string, width)}
	for _, m := range keyed.FindAllStringSubmatch(text, -1) {
		st.keys[m[2][0]-'1'] = m[1]
	}
	st.text = func(d *dialect, n int) string {
		text := text
		if own, ok := d.texts[name]; ok {
			text = own
		}
		if width > 0 {
			text = strings.Replace(text, keysMark, d.keys(n, st.keys), 1)
		}
		text = strings.ReplaceAll(text, nowMark, d.now)
		text = indexMark.ReplaceAllStringFunc(text, func(mark string) string {
			return d.index(indexMark.FindStringSubmatch(mark)[1])
		})
		text = lockMark.ReplaceAllStringFunc(text, func(mark string) string {
			return d.lock(lockMark.FindStringSubmatch(mark)[1])
		})
		return d.spell(text)
	}
	return register(st)
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
		return d.spell(d.insert(in, n))
	}})
}

// change describes an update of rows found by their first keys columns.
type change struct {
	table   string
	columns []string
	keys    int
}

func update(name string, ch change) *statement {
	st := &statement{name: name, width: len(ch.columns), keys: ch.columns}
	st.text = func(d *dialect, n int) string { return d.spell(d.update(ch, n)) }
	return register(st)
}

func remove(name, table string, columns ...string) *statement {
	st := &statement{name: name, width: len(columns), keys: columns}
	st.text = func(d *dialect, n int) string { return d.spell(d.remove(table, columns, n)) }
	return register(st)
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
