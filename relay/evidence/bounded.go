package evidence

import "slices"

// bounded is a map that forgets what was put first when it is full.
type bounded[K comparable, V any] struct {
	limit  int
	values map[K]V
	order  []K
}

func (b *bounded[K, V]) get(k K) (V, bool) {
	v, ok := b.values[k]
	return v, ok
}

func (b *bounded[K, V]) put(k K, v V) {
	if b.values == nil {
		b.values = make(map[K]V)
	}
	if _, known := b.values[k]; !known {
		if len(b.order) == b.limit {
			delete(b.values, b.order[0])
			b.order = b.order[1:]
		}
		b.order = append(b.order, k)
	}
	b.values[k] = v
}

func (b *bounded[K, V]) remove(k K) {
	b.drop(func(other K, _ V) bool { return other == k })
}

// drop forgets what a condition holds for.
func (b *bounded[K, V]) drop(match func(K, V) bool) {
	b.order = slices.DeleteFunc(b.order, func(k K) bool {
		gone := match(k, b.values[k])
		if gone {
			delete(b.values, k)
		}
		return gone
	})
}

func (b *bounded[K, V]) clear() { b.values, b.order = nil, nil }
