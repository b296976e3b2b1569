package intake

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

var (
	// ErrNoFacts refuses to repair or compare without Config.Facts.
	ErrNoFacts = errors.New("no facts to read")
	// ErrNoComparison refuses to compare unless Config.Comparison is set.
	ErrNoComparison = errors.New("comparison is off")
	// ErrBusy is the failure of a member whose scope did not come to rest while facts were read.
	ErrBusy = errors.New("events keep coming")
)

// MaxRepair is how many members one repair or comparison may name.
const MaxRepair = 1_000

// factsTries bounds how often facts are read again because an event came meanwhile.
const factsTries = 3

// Bounds are the rows that a repair or a comparison is about: members of one scope, named one by
// one. There is no other way to ask for either, and nothing but a caller ever does.
type Bounds struct {
	Scope   readstate.ScopeID
	Members []readstate.MemberID
}

func (b *Bounds) check() error {
	if b.Scope == "" || len(b.Members) == 0 || len(b.Members) > MaxRepair {
		return fmt.Errorf("%w: want one scope and 1 to %d members of it", ErrInvalid, MaxRepair)
	}
	return nil
}

// Repair makes rows what the program's facts say, exactly; it is for an operator. The facts are to
// be at rest: what was told and is not in them, or is in them and told later without a generation,
// counts wrongly. Members are repaired one by one, and whoever fails is counted and named in the
// error. What the facts tell of the scope beside that changes the counts of others, who may have
// written it themselves: they are hints until they are repaired as well. Memory of the workspace is
// read again afterwards.
func (f *Intake) Repair(ctx context.Context, id readstate.WorkspaceID, b Bounds) error {
	s, err := f.bounded(id, &b)
	if err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	var failed []error
	for _, m := range b.Members {
		err := s.withFacts(ctx, b.Scope, m, func() {},
			func(key snapshot.Key, t snapshot.Truth) error { return s.book.Repair(key, m, t) })
		if err != nil {
			f.metrics.failedRepairs.Add(1)
			failed = append(failed, fmt.Errorf("repair %s in %s: %w", m, b.Scope, err))
			continue
		}
		f.metrics.repairs.Add(1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reread()
	return errors.Join(failed...)
}

// Compare holds what is served against a recount of the program's facts, in comparison mode, and
// returns how many rows differ. Rows that are withheld are left out. It changes nothing.
func (f *Intake) Compare(
	ctx context.Context, id readstate.WorkspaceID, b Bounds,
) (differ int, err error) {
	if !f.cfg.Comparison {
		return 0, fmt.Errorf("compare: %w", ErrNoComparison)
	}
	s, err := f.bounded(id, &b)
	if err != nil {
		return 0, fmt.Errorf("compare: %w", err)
	}
	var failed []error
	for _, m := range b.Members {
		var row unread.Row
		var withheld error
		err := s.withFacts(ctx, b.Scope, m, func() {
			row, withheld = f.runtime.Row(ctx, id, m, b.Scope)
		}, func(key snapshot.Key, t snapshot.Truth) error {
			want, err := s.book.Recount(key, t)
			if err != nil || withheld != nil {
				return err
			}
			f.metrics.comparisons.Add(1)
			if row.Values != want {
				differ++
				f.metrics.mismatches.Add(1)
				f.cfg.Log.Warn("a served row differs from its facts", "workspace", id,
					"served", row.Values, "facts", want, "state", row.State)
			}
			return nil
		})
		if err != nil {
			failed = append(failed, fmt.Errorf("compare %s in %s: %w", m, b.Scope, err))
		}
	}
	return differ, errors.Join(failed...)
}

func (f *Intake) bounded(id readstate.WorkspaceID, b *Bounds) (*space, error) {
	if f.cfg.Facts == nil {
		return nil, ErrNoFacts
	}
	if err := b.check(); err != nil {
		return nil, err
	}
	return f.space(id)
}

// withFacts reads a member's facts and calls use with them, under the workspace's lock and while
// nothing was told since they were asked for, nor since look was called.
func (s *space) withFacts(
	ctx context.Context, id readstate.ScopeID, m readstate.MemberID, look func(),
	use func(key snapshot.Key, t snapshot.Truth) error,
) error {
	for range factsTries {
		before, err := s.atRest(ctx, id, m)
		if err != nil {
			return err
		}
		look()
		facts, err := s.intake.cfg.Facts.Facts(ctx, FactsQuery{
			Workspace: s.id, Member: m, Scope: id,
		})
		if err != nil {
			return fmt.Errorf("read facts: %w", err)
		}
		done, err := func() (bool, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.moment(id, m) != before {
				return false, nil
			}
			return true, use(before.key, s.truth(&facts))
		}()
		if done || err != nil {
			return err
		}
	}
	return ErrBusy
}

// moment tells whether anything was told of a row since.
type moment struct {
	key    snapshot.Key
	scope  *scope
	taken  uint64 // events of the scope
	blocks uint64 // changes of anybody's blocks
	loaded bool
	waits  bool
}

func (s *space) moment(id readstate.ScopeID, m readstate.MemberID) moment {
	sc := s.scope(id)
	key := snapshot.Key{Scope: sc.key, Member: s.names.MemberKey(m)}
	return moment{
		key: key, scope: sc, taken: sc.taken, blocks: s.people.taken,
		loaded: s.book.Has(snapshot.Key{Scope: key.Scope}) && s.book.Has(key) &&
			s.book.Has(snapshot.Key{Member: key.Member}),
		waits: !sc.resting() || !s.people.resting(),
	}
}

// atRest has everything of a row in memory, and nothing of it waiting.
func (s *space) atRest(
	ctx context.Context, id readstate.ScopeID, m readstate.MemberID,
) (moment, error) {
	for range factsTries {
		s.mu.Lock()
		now := s.moment(id, m)
		s.mu.Unlock()
		if now.waits {
			return now, ErrBusy
		}
		if now.loaded {
			return now, nil
		}
		keys := []snapshot.Key{{Scope: now.key.Scope}, {Member: now.key.Member}, now.key}
		if err := s.book.Fetch(ctx, s.intake.cfg.Store, keys); err != nil {
			return now, err
		}
	}
	return moment{}, fmt.Errorf("scope %s: %w", id, snapshot.ErrNotLoaded)
}

// truth translates facts into numbers.
func (s *space) truth(x *MemberFacts) snapshot.Truth {
	t := snapshot.Truth{
		Row: readstate.Row{
			Joined: x.Joined, Visible: !x.Hidden, Epoch: 1,
			Notification: readstate.Notification{Level: x.Level, Until: x.Until},
			Effective:    x.EffectiveFrom, Read: x.Read,
			Manual: readstate.Manual{Set: x.Manual, From: x.ManualFrom},
		},
		Head: x.Head, LatestActivity: x.LatestActivity,
	}
	t.Row.Activity.Read = x.ActivityRead
	for i := range x.Entries {
		m := s.entry(&x.Entries[i].MessageFacts)
		m.Removed = x.Entries[i].Removed
		t.Entries = append(t.Entries, m)
	}
	for _, a := range x.Activities {
		t.Activity = append(t.Activity, snapshot.Act{
			Seq: a.Seq, Actor: s.names.MemberKey(a.Actor), High: true,
			Recipients: s.names.memberKeys(a.Recipients),
		})
	}
	return t
}

// reread has memory read every member of the workspace again, from what the book says now.
func (s *space) reread() {
	s.lsn++
	if _, err := s.book.Apply(s.lsn, nil); err != nil {
		s.intake.metrics.failures.Add(1)
	}
	s.intake.runtime.Open(s.id, s.lsn)
}
