package facts

// slot is what is known of one key: a value, or that the store has none.
type slot[V any] struct {
	value  V
	exists bool
}

// table is the lane's working copy of one kind of row. It remembers committed rows from group to
// group, since nobody else writes them while the lane holds the term, and stages what the
// present group changes. Nothing staged is remembered before the commit.
type table[K comparable, V any] struct {
	committed map[K]slot[V]
	staged    map[K]slot[V]
	dirty     map[K]struct{}
	order     []K // of dirty, so that a group writes the same statements every time
	bound     int // committed rows remembered at most
}

func newTable[K comparable, V any](bound int) *table[K, V] {
	return &table[K, V]{
		committed: map[K]slot[V]{}, staged: map[K]slot[V]{}, dirty: map[K]struct{}{}, bound: bound,
	}
}

// get returns the row as the group sees it; known is false when the store must be asked.
func (t *table[K, V]) get(k K) (v V, exists, known bool) {
	if s, ok := t.staged[k]; ok {
		return s.value, s.exists, true
	}
	s, ok := t.committed[k]
	return s.value, s.exists, ok
}

// loaded records what the store answered. It never hides a staged row.
func (t *table[K, V]) loaded(k K, v V, exists bool) {
	if _, ok := t.committed[k]; !ok {
		t.committed[k] = slot[V]{v, exists}
	}
}

// put stages a changed row.
func (t *table[K, V]) put(k K, v V) {
	t.staged[k] = slot[V]{v, true}
	if _, ok := t.dirty[k]; !ok {
		t.dirty[k] = struct{}{}
		t.order = append(t.order, k)
	}
}

// drop stages the deletion of a row. The caller writes the deletion itself.
func (t *table[K, V]) drop(k K) {
	var zero V
	t.staged[k] = slot[V]{zero, false}
	delete(t.dirty, k)
}

// take appends the rows changed since the last take, in the order of their first change.
func (t *table[K, V]) take(to []V) []V {
	for _, k := range t.order {
		if _, ok := t.dirty[k]; ok {
			to = append(to, t.staged[k].value)
		}
	}
	t.order = t.order[:0]
	clear(t.dirty)
	return to
}

// commit remembers what the group staged. Above the bound everything remembered is dropped:
// the next group loads what it needs, in one statement.
func (t *table[K, V]) commit() {
	if len(t.committed)+len(t.staged) > t.bound {
		clear(t.committed)
	}
	for k, s := range t.staged {
		t.committed[k] = s
	}
	t.reset()
}

// rollback forgets what the group staged. What was loaded within it goes too, since the store
// may have answered with the group's own writes.
func (t *table[K, V]) rollback() {
	clear(t.committed)
	t.reset()
}

func (t *table[K, V]) reset() {
	clear(t.staged)
	clear(t.dirty)
	t.order = t.order[:0]
}

// finals stages rows that come and go: the last word on each key is what a flush writes.
type finals[K comparable, V any] struct {
	rows  map[K]slot[V]
	order []K
}

func newFinals[K comparable, V any]() *finals[K, V] { return &finals[K, V]{rows: map[K]slot[V]{}} }

func (f *finals[K, V]) set(k K, v V, exists bool) {
	if _, ok := f.rows[k]; !ok {
		f.order = append(f.order, k)
	}
	f.rows[k] = slot[V]{v, exists}
}

// take appends the rows to upsert and those to delete, and forgets both.
func (f *finals[K, V]) take(upsert, gone []V) (ups, goners []V) {
	for _, k := range f.order {
		if s := f.rows[k]; s.exists {
			upsert = append(upsert, s.value)
		} else {
			gone = append(gone, s.value)
		}
	}
	f.reset()
	return upsert, gone
}

func (f *finals[K, V]) reset() {
	clear(f.rows)
	f.order = f.order[:0]
}
