package intake

import (
	"sync"

	"github.com/tidemark-im/tidemark/readstate"
)

// names gives the ids of a workspace numbers, in the order in which they are first heard of. They
// mean nothing beyond this process.
type names struct {
	mu      sync.RWMutex
	members interned[readstate.MemberID]
	scopes  interned[readstate.ScopeID]
}

type interned[T ~string] struct {
	keys map[T]uint64
	ids  []T
}

func newNames() *names {
	return &names{
		members: interned[readstate.MemberID]{keys: map[readstate.MemberID]uint64{}},
		scopes:  interned[readstate.ScopeID]{keys: map[readstate.ScopeID]uint64{}},
	}
}

func (x *interned[T]) id(key uint64) T {
	if key == 0 || key > uint64(len(x.ids)) {
		return ""
	}
	return x.ids[key-1]
}

func intern[T ~string](mu *sync.RWMutex, x *interned[T], id T) uint64 {
	if id == "" {
		return 0
	}
	mu.RLock()
	key, ok := x.keys[id]
	mu.RUnlock()
	if ok {
		return key
	}
	mu.Lock()
	defer mu.Unlock()
	if key, ok = x.keys[id]; !ok {
		x.ids = append(x.ids, id)
		key = uint64(len(x.ids))
		x.keys[id] = key
	}
	return key
}

func (n *names) Member(key readstate.MemberKey) readstate.MemberID {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.members.id(uint64(key))
}

func (n *names) MemberKey(id readstate.MemberID) readstate.MemberKey {
	return readstate.MemberKey(intern(&n.mu, &n.members, id))
}

func (n *names) Scope(key readstate.ScopeKey) readstate.ScopeID {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.scopes.id(uint64(key))
}

func (n *names) ScopeKey(id readstate.ScopeID) readstate.ScopeKey {
	return readstate.ScopeKey(intern(&n.mu, &n.scopes, id))
}

func (n *names) memberKeys(ids []readstate.MemberID) []readstate.MemberKey {
	keys := make([]readstate.MemberKey, 0, len(ids))
	for _, id := range ids {
		key := n.MemberKey(id)
		seen := false
		for _, k := range keys {
			seen = seen || k == key
		}
		if !seen && key != 0 {
			keys = append(keys, key)
		}
	}
	return keys
}
