package figures

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/internal/bench"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/intake"
	"github.com/tidemark-im/tidemark/unread/snapshot"
	"github.com/tidemark-im/tidemark/unread/snapshot/sqlsnap"
)

// branch is a library in snapshot mode: it keeps no facts, is told of them, and writes snapshot
// rows to SQLite when it flushes.
type branch struct {
	dir    string
	rows   *countedRows
	engine *tidemark.Engine
	ws     *tidemark.Workspace
	head   readstate.Revision // of the one channel
}

// countedRows counts what a flush writes on its way to the table.
type countedRows struct {
	*sqlsnap.Store
	written atomic.Int64
}

// Upsert implements snapshot.Store.
func (c *countedRows) Upsert(ctx context.Context, rows []snapshot.Row) error {
	err := c.Store.Upsert(ctx, rows)
	if err == nil {
		c.written.Add(int64(len(rows)))
	}
	return err
}

func openBranch(ctx context.Context) (*branch, error) {
	dir, err := os.MkdirTemp("", "tidemark-bench-*")
	if err != nil {
		return nil, err
	}
	b := &branch{dir: dir}
	if err := b.open(ctx); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *branch) open(ctx context.Context) error {
	store, err := sqlsnap.OpenSQLite(ctx, filepath.Join(b.dir, "snapshots.db"), sqlsnap.Options{})
	if err != nil {
		return err
	}
	b.rows = &countedRows{Store: store}
	b.engine, err = tidemark.Open(ctx, tidemark.Options{Snapshots: &tidemark.Snapshots{
		Rows: b.rows,
		// Every flush is one that the figure asked for.
		Intake: intake.Config{Flush: snapshot.Config{FlushInterval: time.Hour}},
	}})
	if err != nil {
		return err
	}
	b.ws = b.engine.Workspace(space)
	return b.engine.Intake().Open(space)
}

// shut closes the engine and the table, and keeps the file.
func (b *branch) shut() (err error) {
	if b.engine != nil {
		err = b.engine.Close()
	}
	if b.rows != nil {
		err = errors.Join(err, b.rows.Close())
	}
	b.engine, b.rows = nil, nil
	return err
}

func (b *branch) close() error { return errors.Join(b.shut(), os.RemoveAll(b.dir)) }

// tell tells of events and waits until all of them are taken in.
func (b *branch) tell(ctx context.Context, events ...intake.Event) error {
	if err := b.ws.Tell(events...); err != nil {
		return err
	}
	return b.engine.Intake().Settle(ctx, space)
}

// flush writes what is dirty and returns how many rows that were.
func (b *branch) flush(ctx context.Context) (float64, time.Duration, error) {
	before := b.rows.written.Load()
	took, err := bench.Time(func() error { return b.engine.Intake().Flush(ctx) })
	return float64(b.rows.written.Load() - before), took, err
}

// post is the next message of the channel's first member.
func (b *branch) post(mentions ...readstate.MemberID) intake.Event {
	b.head++
	return intake.MessageStored{
		Scope: officeChannel(0), Seq: readstate.Seq(b.head), Revision: b.head,
		ID: fmt.Sprint("message-", b.head), At: int64(b.head), Author: officeMember(0),
		Mentions: mentions,
	}
}

// join fills the channel and has every member loaded.
func (b *branch) join(ctx context.Context, members int) error {
	err := b.tell(ctx, intake.ScopeStateChanged{Scope: officeChannel(0), Type: readstate.Channel})
	for m := 0; m < members && err == nil; m++ {
		err = b.tell(ctx, intake.MembershipChanged{
			Scope: officeChannel(0), Member: officeMember(m), Joined: true,
		})
	}
	return err
}

// flushMembers is how many members the channel of the figure has.
const flushMembers = 1_000

// runFlush counts the rows that a flush writes because of one message.
func runFlush(ctx context.Context, r *bench.Run) (err error) {
	b, err := openBranch(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.join(ctx, flushMembers); err != nil {
		return err
	}
	first, _, err := b.flush(ctx)
	if err != nil {
		return err
	}
	many := bench.Pick(r.Scale, 10, 100, 1000)
	f := r.Figure(flushRows)
	f.Note("A channel of %d members in snapshot mode, all of them in memory, with rows in SQLite: "+
		"%.0f were written when they had joined. One message is told of, taken in, and flushed; "+
		"counted is what reaches the table.", flushMembers, first)
	named := 0
	err = r.Each(ctx, func(ctx context.Context, _ int) error {
		one, took, err1 := b.after(ctx, b.post())
		named++
		mention, _, err2 := b.after(ctx, b.post(officeMember(named)))
		messages := make([]intake.Event, many)
		for i := range messages {
			messages[i] = b.post()
		}
		all, _, err3 := b.after(ctx, messages...)
		again, _, err4 := b.after(ctx, b.post())
		nothing, _, err5 := b.after(ctx)
		if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
			return err
		}
		f.Add("one message", bench.Number, one)
		f.Add("one message that names a member", bench.Number, mention)
		f.Add(fmt.Sprintf("%d messages, one flush", many), bench.Number, all)
		f.Add("no message", bench.Number, nothing)
		f.Add("the flush of one message", bench.Nanoseconds, float64(took))
		f.Hold(one)
		f.HoldControl(again / one)
		return nil
	})
	if err != nil {
		return err
	}
	return b.verify(ctx, r, named)
}

// after tells of events and flushes.
func (b *branch) after(ctx context.Context, events ...intake.Event) (float64, time.Duration, error) {
	if err := b.tell(ctx, events...); err != nil {
		return 0, 0, err
	}
	return b.flush(ctx)
}

// verify starts anew from what was flushed: the few rows must be enough for everybody's counts.
// The author has nothing unread, all others have everything.
func (b *branch) verify(ctx context.Context, r *bench.Run, named int) error {
	if err := errors.Join(b.shut(), b.open(ctx)); err != nil {
		return err
	}
	var wrong []string
	for m := range flushMembers {
		want := readstate.Values{}
		if m > 0 {
			want.Unread = uint64(b.head)
		}
		if m > 0 && m <= named {
			want.Attention = 1
		}
		row, err := b.ws.Row(ctx, officeMember(m), officeChannel(0))
		if err != nil {
			return err
		}
		if row.Values != want {
			wrong = append(wrong, fmt.Sprintf("%s: %+v, want %+v", officeMember(m), row.Values, want))
		}
	}
	return r.Check("counts from the flushed rows, after a start", flushMembers, wrong)
}
