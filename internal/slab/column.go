package slab

// Column holds one more item for each item of a Runs, under the same index. What is kept apart from
// the rest of a row can be read apart from it.
type Column[T any] struct {
	rows segments[T]
}

// NewColumn returns a column beside r, whose segments are counted in m. It panics when T holds
// pointers or has no size.
func NewColumn[T, R any](m *Memory, r *Runs[R]) *Column[T] {
	c := &Column[T]{}
	c.rows.init(m, 1, largestItems, 0)
	c.rows.first, c.rows.skip, c.rows.shift = r.rows.first, r.rows.skip, r.rows.shift
	return c
}

// Cover makes room up to, not including, the index that a range which r gave ends at. It is called
// for every range before the column is used there. Items of a range taken anew are as they were left.
func (c *Column[T]) Cover(end int32) {
	for {
		if next, _ := c.rows.bounds(len(*c.rows.bases.Load())); next >= int64(end) {
			return
		}
		c.rows.add()
	}
}

// At returns the item at index i.
func (c *Column[T]) At(i int32) *T { return c.rows.at(i) }

// View returns n items from index at on, all beside one range.
func (c *Column[T]) View(at int32, n int) []T {
	if n == 0 {
		return nil
	}
	return c.rows.view(at, n)
}

// Bytes returns how many bytes are reserved.
func (c *Column[T]) Bytes() int64 { return c.rows.bytes }
