package ownership

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// ledger is a registry by the letter of its contract, with the time of a simulated store.
type ledger struct {
	now    time.Duration // of the store
	nodes  map[string]*entry
	spaces []*facts.OwnedRow
}

type entry struct {
	facts.NodeInfo
	epoch uint64
	until time.Duration
}

func newLedger(workspaces int) *ledger {
	l := &ledger{nodes: map[string]*entry{}}
	for i := range workspaces {
		l.spaces = append(l.spaces, &facts.OwnedRow{
			Key: facts.WorkspaceKey(i + 1), ID: readstate.WorkspaceID(fmt.Sprint("w", i)), Term: 1,
		})
	}
	return l
}

func (l *ledger) Enroll(_ context.Context, n facts.NodeInfo, ttl time.Duration) (uint64, error) {
	e := l.nodes[n.Node]
	if e == nil {
		e = &entry{}
		l.nodes[n.Node] = e
	}
	e.NodeInfo, e.epoch, e.until = n, e.epoch+1, l.now+ttl
	return e.epoch, nil
}

// seat checks the caller's epoch, and with lasting its lease.
func (l *ledger) seat(n facts.Seat, lasting bool) (*entry, error) {
	e := l.nodes[n.Node]
	if e == nil || e.epoch != n.Epoch || lasting && e.until <= l.now {
		return nil, facts.ErrNotOwner
	}
	return e, nil
}

func (l *ledger) Renew(_ context.Context, n facts.Seat, ttl time.Duration) error {
	e, err := l.seat(n, false)
	if err == nil {
		e.until = l.now + ttl
	}
	return err
}

func (l *ledger) Survey(context.Context) (s facts.Survey, err error) {
	for _, e := range l.nodes {
		s.Nodes = append(s.Nodes, facts.NodeRow{NodeInfo: e.NodeInfo, Epoch: e.epoch, Left: e.until - l.now})
	}
	slices.SortFunc(s.Nodes, func(a, b facts.NodeRow) int { return strings.Compare(a.Node, b.Node) })
	for _, w := range l.spaces {
		s.Workspaces = append(s.Workspaces, *w)
	}
	return s, nil
}

func (l *ledger) each(claims []facts.Claim, do func(w *facts.OwnedRow)) {
	for _, c := range claims {
		if w := l.spaces[c.Key-1]; w.Term == c.Term {
			do(w)
		}
	}
}

func (l *ledger) Claim(
	_ context.Context, n facts.Seat, claims []facts.Claim,
) (out []facts.WorkspaceRow, err error) {
	if _, err := l.seat(n, true); err != nil {
		return nil, err
	}
	l.each(claims, func(w *facts.OwnedRow) {
		if owner := l.nodes[w.Owner]; owner == nil || w.Owner == n.Node || owner.until <= l.now {
			w.Owner = n.Node
			w.Term++
			out = append(out, facts.WorkspaceRow{Key: w.Key, ID: w.ID, Term: w.Term})
		}
	})
	return out, nil
}

func (l *ledger) Release(_ context.Context, n facts.Seat, claims []facts.Claim) error {
	if _, err := l.seat(n, true); err != nil {
		return err
	}
	l.each(claims, func(w *facts.OwnedRow) {
		if w.Owner == n.Node {
			w.Owner = ""
		}
	})
	return nil
}

func (l *ledger) Retire(_ context.Context, n facts.Seat) error {
	e, err := l.seat(n, false)
	if err != nil {
		return err
	}
	e.until = l.now
	for _, w := range l.spaces {
		if w.Owner == n.Node {
			w.Owner = ""
		}
	}
	return nil
}

// PutWorkspace implements facts.Registry.
func (l *ledger) PutWorkspace(
	_ context.Context, o facts.PutWorkspace,
) (row facts.WorkspaceRow, created bool, err error) {
	for i := range l.spaces {
		if w := l.spaces[i]; w.ID == o.ID {
			return facts.WorkspaceRow{Key: w.Key, ID: w.ID, Term: w.Term, Name: o.Name}, false, nil
		}
	}
	key := facts.WorkspaceKey(len(l.spaces) + 1)
	l.spaces = append(l.spaces, &facts.OwnedRow{Key: key, ID: o.ID, Term: 1})
	return facts.WorkspaceRow{Key: key, ID: o.ID, Term: 1, Name: o.Name}, true, nil
}

// errLost is what a caller sees whose request or answer was lost on the way.
var errLost = errors.New("lost on the way")

// way is what lies between a process and the ledger: it is slow, and loses requests and answers.
type way struct {
	*ledger
	rng   *rand.Rand
	kind  bool
	slow  func(d time.Duration) // lets time pass, for everybody
	patch time.Duration
}

func (y *way) pass(do func() error) error {
	if y.kind {
		return do()
	}
	y.slow(time.Duration(y.rng.Int64N(int64(y.patch))))
	if y.rng.IntN(8) == 0 {
		return errLost
	}
	err := do()
	y.slow(time.Duration(y.rng.Int64N(int64(y.patch))))
	if y.rng.IntN(8) == 0 {
		return errLost
	}
	return err
}

func (y *way) Enroll(ctx context.Context, n facts.NodeInfo, ttl time.Duration) (epoch uint64, err error) {
	err = y.pass(func() (err error) { epoch, err = y.ledger.Enroll(ctx, n, ttl); return err })
	return epoch, err
}

func (y *way) Renew(ctx context.Context, n facts.Seat, ttl time.Duration) error {
	return y.pass(func() error { return y.ledger.Renew(ctx, n, ttl) })
}

func (y *way) Survey(ctx context.Context) (s facts.Survey, err error) {
	err = y.pass(func() (err error) { s, err = y.ledger.Survey(ctx); return err })
	return s, err
}

func (y *way) Claim(
	ctx context.Context, n facts.Seat, claims []facts.Claim,
) (rows []facts.WorkspaceRow, err error) {
	err = y.pass(func() (err error) { rows, err = y.ledger.Claim(ctx, n, claims); return err })
	return rows, err
}

func (y *way) Release(ctx context.Context, n facts.Seat, claims []facts.Claim) error {
	return y.pass(func() error { return y.ledger.Release(ctx, n, claims) })
}

func (y *way) Retire(ctx context.Context, n facts.Seat) error {
	return y.pass(func() error { return y.ledger.Retire(ctx, n) })
}
