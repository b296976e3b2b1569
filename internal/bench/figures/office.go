package figures

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/internal/bench"
	"github.com/tidemark-im/tidemark/readstate"
)

// office is a library on an SQLite file of its own, with one workspace.
type office struct {
	engine *tidemark.Engine
	ws     *tidemark.Workspace
	dir    string
}

// openOffice makes an office in a temporary directory.
func openOffice(ctx context.Context, opts tidemark.Options) (*office, error) {
	dir, err := os.MkdirTemp("", "tidemark-bench-*")
	if err != nil {
		return nil, err
	}
	o := &office{dir: dir}
	opts.Facts = "sqlite:" + o.path()
	if o.engine, err = tidemark.Open(ctx, opts); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if _, err := o.engine.CreateWorkspace(ctx, space, "Bench"); err != nil {
		return nil, errors.Join(err, o.close())
	}
	o.ws = o.engine.Workspace(space)
	return o, nil
}

func (o *office) path() string { return filepath.Join(o.dir, "facts.db") }

// shut closes the engine and keeps the file.
func (o *office) shut() error {
	if o.engine == nil {
		return nil
	}
	err := o.engine.Close()
	o.engine = nil
	return err
}

func (o *office) close() error { return errors.Join(o.shut(), os.RemoveAll(o.dir)) }

// fill runs operations in batches of a size that shares commits without holding all at once.
func (o *office) fill(ctx context.Context, n int, add func(b *facts.Batch, i int), done func(int)) error {
	const batch = 5_000
	for from := 0; from < n; from += batch {
		b := o.ws.Batch()
		for i := from; i < min(n, from+batch); i++ {
			add(b, i)
		}
		results, err := b.Run(ctx)
		for i := range results {
			err = errors.Join(err, results[i].Err)
		}
		if err != nil {
			return fmt.Errorf("fill: %w", err)
		}
		done(min(n, from+batch))
	}
	return nil
}

func officeChannel(i int) readstate.ScopeID { return readstate.ScopeID("channel-" + strconv.Itoa(i)) }
func officeMember(i int) readstate.MemberID { return readstate.MemberID("member-" + strconv.Itoa(i)) }

// payload is a message of about the usual length.
var payload = []byte(`{"text":"a message of about the usual length, give or take a few words"}`)

// runOffice measures one and two goroutines that write through the library, each waiting for
// every answer.
func runOffice(ctx context.Context, r *bench.Run) (err error) {
	o, err := openOffice(ctx, tidemark.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	const channels, members = 16, 32
	err = o.fill(ctx, channels*(members+1), func(b *facts.Batch, i int) {
		c, m := i/(members+1), i%(members+1)
		if m == 0 {
			b.PutScope(facts.PutScope{ID: officeChannel(c), Type: readstate.Channel})
			return
		}
		b.PutMembership(facts.PutMembership{
			Scope: officeChannel(c), Member: officeMember(m), CreateMember: true,
		})
	}, func(int) {})
	if err != nil {
		return err
	}
	disk, err := syncTime(o.dir)
	if err != nil {
		return err
	}
	w := &writers{office: o, channels: channels, read: map[int]readstate.Revision{}}
	n := bench.Pick(r.Scale, 20, 1_000, 4_000)
	for _, name := range []string{parallelPost, parallelRead} {
		r.Figure(name).Note("%d operations of each goroutine in a round, %d at a stretch, in %d "+
			"channels of %d members, durable in SQLite. Each goroutine has a channel and a member of "+
			"its own and waits for every answer. Making 4 KiB durable takes %v here.", n, sliceOps,
			channels, members, disk)
	}
	err = r.Each(ctx, func(ctx context.Context, _ int) error {
		return w.round(ctx, r.Figure(parallelPost), n, w.post)
	}, func(ctx context.Context, _ int) error {
		if err := w.stock(ctx, n); err != nil {
			return err
		}
		return w.round(ctx, r.Figure(parallelRead), n, w.markRead)
	})
	if err != nil {
		return err
	}
	return w.verify(ctx, r)
}

// writers are goroutines at an office. Each has a channel in which nobody else reads or writes
// at the time.
type writers struct {
	office   *office
	channels int
	posted   int
	mu       sync.Mutex
	read     map[int]readstate.Revision // cursor of each writer's member in the writer's channel
	heads    [2]readstate.Revision
}

// sliceOps is how many operations of a goroutine are measured at a stretch.
const sliceOps = 20

// round measures one goroutine, two, and one again, in slices that take turns, so that what the
// machine and its disk do meanwhile happens to all of them.
func (w *writers) round(
	ctx context.Context, f *bench.Figure, n int,
	op func(ctx context.Context, writer, i int) error,
) error {
	goroutines := [...]int{1, 2, 1}
	var took [len(goroutines)]time.Duration
	for slice := range n / sliceOps {
		for i := range goroutines {
			k := i
			if slice%2 == 1 {
				k = len(goroutines) - 1 - i
			}
			d, err := together(goroutines[k], func(g int) error {
				for i := range sliceOps {
					if err := op(ctx, g, i); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			took[k] += d
		}
	}
	rate := func(k int) float64 {
		return float64(n/sliceOps*sliceOps*goroutines[k]) / took[k].Seconds()
	}
	f.Add("one goroutine", bench.PerSecond, rate(0))
	f.Add("two goroutines", bench.PerSecond, rate(1))
	f.Add("one goroutine again", bench.PerSecond, rate(2))
	f.Hold(rate(1) / rate(0))
	f.HoldControl(rate(2) / rate(0))
	return nil
}

// stock posts what the readers of a round will read, one revision after the other: the first one
// reads in all three measurements.
func (w *writers) stock(ctx context.Context, n int) error {
	return w.office.fill(ctx, 4*n, func(b *facts.Batch, i int) {
		b.Post(w.message(i%4/3, 3))
	}, func(int) {})
}

// message is the next one of a member in a writer's channel.
func (w *writers) message(writer, author int) facts.Post {
	w.mu.Lock()
	w.posted++
	n := w.posted
	w.heads[writer]++
	w.mu.Unlock()
	p := facts.Post{
		Scope: officeChannel(writer), OpID: "op-" + strconv.Itoa(n), Author: officeMember(author),
		Payload: payload, By: facts.Actor{Trusted: true},
	}
	if n%10 == 0 {
		p.Mentions = []readstate.MemberID{officeMember(4 + n%8)}
	}
	return p
}

func (w *writers) post(ctx context.Context, writer, _ int) error {
	_, err := w.office.ws.Post(ctx, w.message(writer, writer+1))
	return err
}

func (w *writers) markRead(ctx context.Context, writer, _ int) error {
	w.mu.Lock()
	w.read[writer]++
	through := w.read[writer]
	w.mu.Unlock()
	_, err := w.office.ws.MarkRead(ctx, facts.MarkRead{
		Scope: officeChannel(writer), Member: officeMember(writer + 1), Revision: &through,
		Trusted: true,
	})
	return err
}

// verify compares what two readers have not read with a count of the messages themselves.
func (w *writers) verify(ctx context.Context, r *bench.Run) error {
	var wrong []string
	for writer := range 2 {
		m, s := officeMember(writer+1), officeChannel(writer)
		row, err := w.office.ws.Row(ctx, m, s)
		if err != nil {
			return err
		}
		want, err := w.recount(ctx, m, s, row.Row.Read)
		if err != nil {
			return err
		}
		if row.Values.Unread != want || row.Ranks.Head != w.heads[writer] {
			wrong = append(wrong, fmt.Sprintf("%s in %s: %d of %d, want %d of %d", m, s,
				row.Values.Unread, row.Ranks.Head, want, w.heads[writer]))
		}
	}
	return r.Check("counts of the writers, by looking at each message", 2, wrong)
}

// recount looks at every message of a channel.
func (w *writers) recount(
	ctx context.Context, m readstate.MemberID, s readstate.ScopeID, read readstate.Revision,
) (uint64, error) {
	n := uint64(0)
	for before := readstate.Seq(0); ; {
		page, err := w.office.ws.Messages(ctx, tidemark.MessageFilter{
			Scope: s, Before: before, Limit: 500,
		})
		if err != nil {
			return 0, err
		}
		for i := range page.Messages {
			if page.Messages[i].Revision > read && page.Messages[i].Author != m {
				n++
			}
		}
		if !page.HasMore {
			return n, nil
		}
		before = page.Messages[0].Seq
	}
}

// together runs fn in so many goroutines and returns how long all of them took.
func together(goroutines int, fn func(g int) error) (time.Duration, error) {
	errs := make([]error, goroutines)
	var wg sync.WaitGroup
	start := time.Now()
	for g := range goroutines {
		wg.Go(func() { errs[g] = fn(g) })
	}
	wg.Wait()
	return time.Since(start), errors.Join(errs...)
}

// syncTime is the median time that a directory's disk takes to make 4 KiB durable.
func syncTime(dir string) (time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // it is removed with the directory
	block := make([]byte, 4096)
	took := make([]time.Duration, 50)
	for i := range took {
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[len(took)/2].Round(time.Microsecond), nil
}
