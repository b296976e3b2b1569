package httpapi

import (
	"container/list"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// budgets remembers what each token has used up. It holds a bounded number of tokens; the one
// that was silent for longest is forgotten first, unless it has streams open.
type budgets struct {
	limits Limits
	now    func() time.Time

	mu     sync.Mutex
	gone   uint64 // tokens forgotten to make room
	tokens map[string]*list.Element
	recent *list.List // of *budget, most recent first
}

type budget struct {
	key      string
	requests *rate.Limiter
	streams  int
}

func newBudgets(l Limits, now func() time.Time) *budgets {
	return &budgets{
		limits: l, now: now, tokens: map[string]*list.Element{}, recent: list.New(),
	}
}

// of finds or makes the budget of a principal. Under the lock.
func (b *budgets) of(p *Principal) *budget {
	key := p.limitKey()
	if e, ok := b.tokens[key]; ok {
		b.recent.MoveToFront(e)
		return e.Value.(*budget)
	}
	// Tokens with streams stay; looking for one without them must not take long.
	const attempts = 16
	e := b.recent.Back()
	for i := 0; e != nil && i < attempts && len(b.tokens) >= b.limits.Tokens; i++ {
		older := e.Prev()
		if old := e.Value.(*budget); old.streams == 0 {
			b.recent.Remove(e)
			delete(b.tokens, old.key)
			b.gone++
		}
		e = older
	}
	perSecond, burst := b.limits.MemberRate, b.limits.MemberBurst
	if p.Role > RoleMember {
		perSecond, burst = b.limits.ServiceRate, b.limits.ServiceBurst
	}
	fresh := &budget{key: key, requests: rate.NewLimiter(rate.Limit(perSecond), burst)}
	b.tokens[key] = b.recent.PushFront(fresh)
	return fresh
}

// spend takes n requests off; otherwise it says after how many seconds to come again.
func (b *budgets) spend(p *Principal, n int) (ok bool, retryAfter int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	r := b.of(p).requests.ReserveN(now, n)
	if !r.OK() { // more than the burst: never
		return false, retrySeconds
	}
	delay := r.DelayFrom(now)
	if delay == 0 {
		return true, 0
	}
	r.CancelAt(now)
	return false, max(1, int(math.Ceil(delay.Seconds())))
}

// openStream counts a stream; false when the token has too many. The returned function gives it
// back.
func (b *budgets) openStream(p *Principal) (release func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	mine := b.of(p)
	if mine.streams >= b.limits.Streams {
		return nil, false
	}
	mine.streams++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		mine.streams--
	}, true
}

// known returns how many tokens are remembered, and how many were forgotten to make room.
func (b *budgets) known() (tokens int, forgotten uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.tokens), b.gone
}
