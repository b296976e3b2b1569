package sqlstore

import (
	"database/sql"
	"fmt"
)

// record is one row of an answer, read column by column. A value of an unexpected type is a
// damaged database: err keeps the first one.
type record struct {
	values  []any
	targets []any
	next    int
	err     error
}

// size makes the record fit the columns of an answer.
func (r *record) size(rows *sql.Rows) error {
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	r.err = nil
	if n := len(columns); n > len(r.values) {
		r.values = make([]any, n)
		r.targets = make([]any, 0, n)
		for i := range r.values {
			r.targets = append(r.targets, &r.values[i])
		}
	}
	r.targets = r.targets[:cap(r.targets)][:len(columns)]
	return nil
}

func (r *record) take() any {
	v := r.values[r.next]
	r.next++
	return v
}

func (r *record) bad(v any) {
	if r.err == nil {
		r.err = fmt.Errorf("column %d holds a %T", r.next, v)
	}
}

// int returns a number, zero for NULL.
func (r *record) int() int64 {
	switch v := r.take().(type) {
	case int64:
		return v
	case nil:
		return 0
	default:
		r.bad(v)
		return 0
	}
}

func (r *record) uint() uint64 { return uint64(r.int()) }
func (r *record) bool() bool   { return r.int() != 0 }

// null reports that the next column is NULL, without taking it.
func (r *record) null() bool { return r.values[r.next] == nil }

// skip passes over columns.
func (r *record) skip(n int) { r.next += n }

// string returns text or bytes, "" for NULL.
func (r *record) string() string {
	switch v := r.take().(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case nil:
		return ""
	default:
		r.bad(v)
		return ""
	}
}

// bytes returns bytes that the caller owns, nil for NULL.
func (r *record) bytes() []byte {
	switch v := r.take().(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	case nil:
		return nil
	default:
		r.bad(v)
		return nil
	}
}
