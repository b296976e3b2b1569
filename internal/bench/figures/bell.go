package figures

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/redis/rueidis"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/inbox"
	"github.com/tidemark-im/tidemark/inbox/redisset"
	"github.com/tidemark-im/tidemark/internal/bench"
	"github.com/tidemark-im/tidemark/readstate"
)

const (
	bellSenders = 10  // who have sent something new, in both inboxes
	bellReads   = 300 // of a round
	bellSmall   = 10
)

// bell is a store with two inboxes of the same senders: a small one and a large one, both projected.
type bell struct {
	dir   string
	store *sqlstore.Store
	inbox *inbox.Inbox
}

const bellSpace facts.WorkspaceKey = 1

func openBell(ctx context.Context, items int, summary inbox.Summary) (*bell, error) {
	dir, err := os.MkdirTemp("", "tidemark-bench-*")
	if err != nil {
		return nil, err
	}
	b := &bell{dir: dir}
	if err := b.open(ctx, items, summary); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bell) open(ctx context.Context, items int, summary inbox.Summary) (err error) {
	b.store, err = sqlstore.OpenSQLite(ctx, filepath.Join(b.dir, "facts.db"), sqlstore.Options{Unsafe: true})
	if err != nil {
		return err
	}
	c := &facts.Changes{NewWorkspaces: []facts.WorkspaceRow{{Key: bellSpace, ID: space, Term: 1}}}
	for i := range 2 + bellSenders {
		c.Members = append(c.Members, facts.MemberChange{MemberInfo: readstate.MemberInfo{
			Key: facts.MemberKeyOf(bellSpace, uint32(i+1)), ID: officeMember(i), Active: true,
		}})
	}
	if err := b.write(ctx, c); err != nil {
		return err
	}
	for i, n := range []int{bellSmall, items} {
		if err := b.fill(ctx, facts.MemberKeyOf(bellSpace, uint32(i+1)), n); err != nil {
			return err
		}
	}
	b.inbox, err = inbox.New(inbox.Options{
		Store: b.store, Summary: summary,
		Terms: func(facts.WorkspaceKey) (uint64, bool) { return 1, true },
	})
	if err != nil {
		return err
	}
	b.inbox.Poke(facts.MemberKeyOf(bellSpace, 1), facts.MemberKeyOf(bellSpace, 2))
	_, err = b.inbox.Work(ctx)
	return err
}

// fill gives an inbox items of all senders in turn.
func (b *bell) fill(ctx context.Context, m readstate.MemberKey, n int) error {
	const batch = 10_000
	for at := 0; at < n; {
		c := &facts.Changes{}
		for ; at < n && len(c.InboxItems) < batch; at++ {
			c.InboxItems = append(c.InboxItems, facts.InboxItem{
				Member: m, Position: facts.Position(at + 1), Live: true,
				Sender: facts.MemberKeyOf(bellSpace, uint32(3+at%bellSenders)),
			})
		}
		c.Inboxes = []facts.InboxRow{{Member: m, Accepted: facts.Position(at)}}
		if err := b.write(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (b *bell) write(ctx context.Context, c *facts.Changes) error {
	tx, err := b.store.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if err := tx.Write(ctx, c); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

func (b *bell) close() error {
	var err error
	if b.store != nil {
		err = b.store.Close()
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}

// read returns how long one badge takes, over many.
func (b *bell) read(ctx context.Context, member int) (time.Duration, error) {
	id := officeMember(member)
	a := inbox.Access{Workspace: space, Member: id, By: id}
	took, err := bench.Time(func() error {
		for range bellReads {
			badge, err := b.inbox.Badge(ctx, a)
			if err != nil {
				return err
			}
			if badge.TailRows != 0 || len(badge.Senders) != bellSenders {
				return fmt.Errorf("a badge of %d senders with a tail of %d", len(badge.Senders), badge.TailRows)
			}
		}
		return nil
	})
	return took / bellReads, err
}

func runBell(ctx context.Context, r *bench.Run) error { return measureBell(ctx, r, inboxBadge, nil) }

func runRedisBell(ctx context.Context, r *bench.Run) error {
	opts, err := rueidis.ParseURL(r.Against["redis"])
	if err != nil {
		return err
	}
	opts.DisableCache = true
	client, err := rueidis.NewClient(opts)
	if err != nil {
		return err
	}
	defer client.Close()
	return measureBell(ctx, r, inboxBadgeRedis, redisset.New(client))
}

func measureBell(ctx context.Context, r *bench.Run, figure string, summary inbox.Summary) (err error) {
	items := bench.Pick(r.Scale, 20_000, 200_000, 1_000_000)
	b, err := openBell(ctx, items, summary)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	for m := range 2 { // what is prepared on the first read is prepared now
		if _, err := b.read(ctx, m); err != nil {
			return err
		}
		if _, err := b.inbox.Work(ctx); err != nil {
			return err
		}
	}
	f := r.Figure(figure)
	f.Note("The large inbox retains %d items, the small one %d, of %d senders each.",
		items, bellSmall, bellSenders)
	for range r.Rounds {
		var took [3]time.Duration
		for i, member := range []int{0, 1, 0} {
			if took[i], err = b.read(ctx, member); err != nil {
				return err
			}
		}
		f.Add("small inbox", bench.Nanoseconds, float64(took[0]))
		f.Add("large inbox", bench.Nanoseconds, float64(took[1]))
		f.Hold(float64(took[1]) / float64(took[0]))
		f.HoldControl(float64(took[2]) / float64(took[0]))
	}
	return nil
}
