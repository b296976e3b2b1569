package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// ErrDeferred is wrapped by every failure of Barrier: the delivery has to be tried again, and
// nobody may be told of it before.
var ErrDeferred = errors.New("delivery is deferred")

// MaxRecipients is how many members one delivery may have.
const MaxRecipients = 1_000

// Delivery is a message or an activity of a targeted scope whose recipients were frozen with it.
type Delivery struct {
	Scope readstate.ScopeID
	// Revision is the message's, Activity the activity's; the other one is zero.
	Revision   readstate.Revision
	Activity   readstate.Seq
	Recipients []readstate.MemberID // people; nothing is kept for agents
}

// Barrier makes the unread of a delivery durable that was told before: once it returns nil, the
// rows of its recipients survive a crash of the process and of the machine. It is for outboxes
// that may wake agents, and call a delivery delivered, only then. It writes the rows of the
// recipients in the scope and nothing else; what is dirty apart from them waits for the interval
// as ever. Until the delivery is taken in, and whenever the table does not take the rows, it fails
// with ErrDeferred and may be called again, any number of times.
func (f *Intake) Barrier(ctx context.Context, id readstate.WorkspaceID, d Delivery) error {
	if err := f.barrier(ctx, id, d); err != nil {
		return fmt.Errorf("delivery in %s: %w: %w", d.Scope, ErrDeferred, err)
	}
	return nil
}

var errNotTaken = errors.New("it is not taken in yet, or the scope does not count deliveries")

// barrierTries bounds how often rows are read again that were let go before they were written.
const barrierTries = 5

func (f *Intake) barrier(ctx context.Context, id readstate.WorkspaceID, d Delivery) error {
	s, err := f.space(id)
	if err != nil {
		return err
	}
	if d.Scope == "" || len(d.Recipients) > MaxRecipients {
		return fmt.Errorf("%w: scope %q, %d recipients, at most %d", ErrInvalid, d.Scope,
			len(d.Recipients), MaxRecipients)
	}
	for range barrierTries {
		scope, members, missing, err := s.delivery(d)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			if err := s.book.Fetch(ctx, f.cfg.Store, missing); err != nil {
				return err
			}
			continue
		}
		err = f.flusher.Barrier(ctx, s.book, scope, members)
		if errors.Is(err, snapshot.ErrConflict) {
			err = s.book.Reconsider(ctx, f.cfg.Store, scope, members)
			f.flushed(s.book) // what it brought in is shown
			if err != nil {
				return err
			}
			continue
		}
		if !errors.Is(err, snapshot.ErrNotLoaded) {
			return err
		}
	}
	return fmt.Errorf("after %d reads: %w", barrierTries, snapshot.ErrNotLoaded)
}

// delivery says which rows a delivery is about, and which of them have to be read first. It fails
// where the scope does not count the delivery yet.
func (s *space) delivery(
	d Delivery,
) (scope readstate.ScopeKey, members []readstate.MemberKey, missing []snapshot.Key, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	scope = s.names.ScopeKey(d.Scope)
	members = s.names.memberKeys(d.Recipients)
	keys := []snapshot.Key{{Scope: scope}}
	for _, m := range members {
		keys = append(keys, snapshot.Key{Member: m}, snapshot.Key{Scope: scope, Member: m})
	}
	for _, key := range keys {
		if !s.book.Has(key) {
			missing = append(missing, key)
		}
	}
	if !slices.Contains(missing, keys[0]) && !s.book.Taken(scope, d.Revision, d.Activity, members) {
		return 0, nil, nil, errNotTaken
	}
	return scope, members, missing, nil
}
