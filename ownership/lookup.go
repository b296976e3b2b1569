package ownership

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

const (
	// DefaultLookupAge is how old a picture may be that a lookup answers by.
	DefaultLookupAge = time.Second
	// lookupTimeout bounds one survey of a lookup.
	lookupTimeout = 5 * time.Second
)

// Lookup finds owners for whoever has to send a request on. It asks the registry when it is asked itself
// and what it knows is too old: many who ask at once share one survey. It has no goroutine of its own and
// is safe for concurrent use.
type Lookup struct {
	registry facts.Registry
	age      time.Duration
	clock    Clock
	flight   singleflight.Group
	seen     atomic.Pointer[Picture]
}

// NewLookup makes a lookup whose pictures are at most age old, DefaultLookupAge where it is zero.
func NewLookup(registry facts.Registry, age time.Duration) *Lookup {
	if age == 0 {
		age = DefaultLookupAge
	}
	return &Lookup{registry: registry, age: age, clock: systemClock{}}
}

// Look returns who owns what. Fresh asks the registry in any case, and fails where it does not answer;
// otherwise an older picture is better than none: an owner that is asked knows itself what it owns.
func (l *Lookup) Look(ctx context.Context, fresh bool) (*Picture, error) {
	old := l.seen.Load()
	if !fresh && old != nil && l.clock.Now().Sub(old.At) < l.age {
		return old, nil
	}
	if fresh {
		l.flight.Forget(surveyKey) // one that is under way may have read what is past
	}
	done := l.flight.DoChan(surveyKey, func() (any, error) {
		// Others wait for it, too.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer cancel()
		at := l.clock.Now()
		s, err := l.registry.Survey(ctx)
		if err != nil {
			return nil, fmt.Errorf("survey: %w", err)
		}
		p := picture(&s, at)
		l.seen.Store(p)
		return p, nil
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-done:
		if r.Err != nil && old != nil && !fresh {
			return old, nil
		}
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*Picture), nil
	}
}

const surveyKey = "survey"

// Knows reports that there is such a workspace.
func (p *Picture) Knows(w readstate.WorkspaceID) bool {
	_, ok := p.Terms[w]
	return ok
}

func picture(s *facts.Survey, at time.Time) *Picture {
	p := &Picture{
		Nodes: s.Nodes, Owners: make(map[readstate.WorkspaceID]string, len(s.Workspaces)),
		Terms: make(map[readstate.WorkspaceID]uint64, len(s.Workspaces)), At: at,
	}
	for i := range s.Workspaces {
		w := &s.Workspaces[i]
		p.Terms[w.ID] = w.Term
		if w.Owner != "" {
			p.Owners[w.ID] = w.Owner
		}
	}
	return p
}
