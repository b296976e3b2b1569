package inbox

import (
	"sync"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// pending is the set of inboxes that may be behind, in the order in which they came.
type pending struct {
	mu    sync.Mutex
	in    map[readstate.MemberKey]bool // true: its summary is to be written as a whole
	order []readstate.MemberKey
	rings chan struct{}
}

func (p *pending) init() {
	p.in = map[readstate.MemberKey]bool{}
	p.rings = make(chan struct{}, 1)
}

func (p *pending) add(members ...readstate.MemberKey) { p.put(false, members...) }

func (p *pending) refresh(members ...readstate.MemberKey) { p.put(true, members...) }

func (p *pending) put(whole bool, members ...readstate.MemberKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range members {
		was, known := p.in[m]
		p.in[m] = was || whole
		if !known {
			p.order = append(p.order, m)
		}
	}
	if len(members) > 0 {
		select {
		case p.rings <- struct{}{}:
		default:
		}
	}
}

func (p *pending) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.order)
}

// due is one inbox to be worked on.
type due struct {
	member readstate.MemberKey
	whole  bool
}

// take removes the first inboxes of one workspace: that of the one which came first.
func (p *pending) take(n int) (facts.WorkspaceKey, []due) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.order) == 0 {
		return 0, nil
	}
	w := facts.WorkspaceKey(p.order[0] >> 32)
	var out []due
	left := p.order[:0]
	for i, m := range p.order {
		if len(out) == n {
			left = append(left, p.order[i:]...)
			break
		}
		if facts.WorkspaceKey(m>>32) != w {
			left = append(left, m)
			continue
		}
		out = append(out, due{m, p.in[m]})
		delete(p.in, m)
	}
	if p.order = left; len(left) == 0 {
		p.order = nil
	}
	return w, out
}

func (p *pending) ring() {
	select {
	case p.rings <- struct{}{}:
	default:
	}
}
