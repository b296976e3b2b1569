package httpapi

import (
	"crypto/sha256"
	"sync"
	"time"
)

// MaxVerified is how many tokens a JWT remembers as verified. They take about 4 MB.
const MaxVerified = 10_000

// verified remembers what tokens say that were verified with a secret, by the digest of their
// text: the same text says the same to the same secrets, within the time that it names. What a
// key set verified is not remembered, since its keys may be withdrawn.
//
// New tokens are put beside the recent ones. When these are half of all that may be remembered,
// the older ones are forgotten and the recent ones become the older; a token that is used comes
// back to the recent ones.
type verified struct {
	mu     sync.Mutex
	recent map[tokenDigest]proof
	older  map[tokenDigest]proof
}

type tokenDigest = [sha256.Size]byte

// proof is what a token says.
type proof struct {
	who       Principal
	notBefore time.Time // zero for none
}

// good reports that the token counts at a time.
func (p *proof) good(now time.Time) bool {
	return now.Before(p.who.Expires) && !now.Before(p.notBefore)
}

// get finds a token that was verified and counts now.
func (v *verified) get(d tokenDigest, now time.Time) (Principal, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p, found := v.recent[d]
	if !found {
		if p, found = v.older[d]; found {
			delete(v.older, d)
			v.add(d, p)
		}
	}
	return p.who, found && p.good(now)
}

// put remembers a token.
func (v *verified) put(d tokenDigest, p proof) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.older, d)
	v.add(d, p)
}

// add puts a token beside the recent ones. Under the lock.
func (v *verified) add(d tokenDigest, p proof) {
	if len(v.recent) >= MaxVerified/2 {
		v.recent, v.older = nil, v.recent
	}
	if v.recent == nil {
		v.recent = map[tokenDigest]proof{}
	}
	v.recent[d] = p
}

// count is how many are remembered.
func (v *verified) count() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.recent) + len(v.older)
}
