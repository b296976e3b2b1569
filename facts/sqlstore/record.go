package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
)

// record is one row of an answer, read column by column. A value of an unexpected type is a
// damaged database: err keeps the first one.
type record struct {
	values []driver.Value
	next   int
	err    error
}

// all hands every row of an answer to f.
func (r *record) all(ctx context.Context, rows driver.Rows, f func(r *record) error) error {
	if n := len(rows.Columns()); n > cap(r.values) {
		r.values = make([]driver.Value, n)
	} else {
		r.values = r.values[:n]
	}
	r.err = nil
	for {
		err := rows.Next(r.values)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		r.next = 0
		if err := f(r); err != nil {
			return err
		}
		if r.err != nil {
			return r.err
		}
	}
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

// int returns a number, zero for NULL. What is compared in a select is a truth value in some
// databases.
func (r *record) int() int64 {
	switch v := r.take().(type) {
	case int64:
		return v
	case bool:
		if v {
			return 1
		}
		return 0
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
		return slices.Clone(v) // the driver's until the next row
	case string:
		return []byte(v)
	case nil:
		return nil
	default:
		r.bad(v)
		return nil
	}
}
