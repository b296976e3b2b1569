package intake

import (
	"hash/maphash"
	"sync"

	"github.com/tidemark-im/tidemark/readstate"
)

// names gives the ids of a workspace numbers, which mean nothing beyond this process. Those of
// members are given in the order in which they are first heard of, and stay. There are more scopes
// than anybody looks at, so that a scope may be forgotten: its number follows from its id, and is
// the same when it comes back.
type names struct {
	mu      sync.RWMutex
	members map[readstate.MemberID]readstate.MemberKey
	ids     []readstate.MemberID // by number, from 1
	seed    maphash.Seed
	scopes  map[readstate.ScopeKey]readstate.ScopeID
}

func newNames() *names {
	return &names{
		members: map[readstate.MemberID]readstate.MemberKey{}, seed: maphash.MakeSeed(),
		scopes: map[readstate.ScopeKey]readstate.ScopeID{},
	}
}

func (n *names) Member(key readstate.MemberKey) readstate.MemberID {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if key == 0 || uint64(key) > uint64(len(n.ids)) {
		return ""
	}
	return n.ids[key-1]
}

func (n *names) MemberKey(id readstate.MemberID) readstate.MemberKey {
	if id == "" {
		return 0
	}
	n.mu.RLock()
	key, ok := n.members[id]
	n.mu.RUnlock()
	if ok {
		return key
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if key, ok = n.members[id]; !ok {
		n.ids = append(n.ids, id)
		key = readstate.MemberKey(len(n.ids))
		n.members[id] = key
	}
	return key
}

func (n *names) Scope(key readstate.ScopeKey) readstate.ScopeID {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.scopes[key]
}

func (n *names) ScopeKey(id readstate.ScopeID) readstate.ScopeKey {
	if id == "" {
		return 0
	}
	first := readstate.ScopeKey(max(1, maphash.String(n.seed, string(id))))
	n.mu.RLock()
	found := n.scopes[first]
	n.mu.RUnlock()
	if found == id {
		return first
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for key := first; ; key++ {
		switch n.scopes[key] {
		case id:
			return key
		case "": // two ids of one number are as good as impossible, and told apart all the same
			if key != 0 {
				n.scopes[key] = id
				return key
			}
		}
	}
}

// forget drops the id of a scope that nobody refers to.
func (n *names) forget(key readstate.ScopeKey) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.scopes, key)
}

// count returns how many members and scopes have numbers.
func (n *names) count() (members, scopes int) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return len(n.ids), len(n.scopes)
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
