package figures

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tidemark-im/tidemark/internal/bench"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

const space readstate.WorkspaceID = "bench"

// stepRows is how many rows a step of pending work may touch: the default, given so that it is
// known here.
const stepRows = 2_000

// hall is a runtime with a few channels of different sizes, each with members of its own, and
// the source that they are loaded from. The first member of each channel writes everything.
type hall struct {
	runtime  *unread.Runtime
	sizes    []int
	aside    int // other channels that every member is in, where nothing is written
	lsn      readstate.LSN
	heads    []readstate.Revision
	writings int // messages of the whole hall
}

// members of the hall are named by channel and number.
func hallMember(channel, n int) readstate.MemberID {
	return readstate.MemberID(strconv.Itoa(channel) + "-" + strconv.Itoa(n))
}

func hallKey(channel, n int) readstate.MemberKey {
	return readstate.MemberKey(channel+1)<<32 | readstate.MemberKey(n+1)
}

// openHall loads every member of the channels.
func openHall(ctx context.Context, r *bench.Run, aside int, sizes ...int) (*hall, error) {
	h := &hall{sizes: sizes, aside: aside, heads: make([]readstate.Revision, len(sizes))}
	total := 0
	for _, n := range sizes {
		total += n
	}
	var err error
	h.runtime, err = unread.New(unread.Config{
		Source: h, MaxEntries: (2+aside)*total + 1000, HydrateWait: time.Minute,
		MaxFirePerTick: stepRows,
	})
	if err != nil {
		return nil, err
	}
	h.runtime.Open(space, 0)
	bar := r.Bar("loading", "members", total)
	defer bar.End()
	done := 0
	for c, n := range sizes {
		err := loadMembers(ctx, h.runtime, n, func(i int) readstate.MemberID {
			return hallMember(c, i)
		}, func(n int) { bar.Set(int64(done + n)) })
		if err != nil {
			h.runtime.Close()
			return nil, err
		}
		done += n
	}
	return h, nil
}

// loadChunk is how many members are asked for before any is waited for: well below the budget of
// members that may be loading at once.
const loadChunk = 2000

// loadMembers loads members the way a server does, by asking for them.
func loadMembers(
	ctx context.Context, r *unread.Runtime, n int, id func(int) readstate.MemberID, done func(int),
) error {
	for from := 0; from < n; from += loadChunk {
		to := min(n, from+loadChunk)
		for i := from; i < to; i++ {
			r.HasUnread(space, id(i))
		}
		for i := from; i < to; i++ {
			s, err := r.Summary(ctx, space, id(i))
			if err == nil && !s.Complete {
				err = unread.ErrNotServable
			}
			if err != nil {
				return fmt.Errorf("load %s: %w", id(i), err)
			}
		}
		done(to)
	}
	return ctx.Err()
}

// Page implements unread.Source: a member's channels, before anything was written.
func (h *hall) Page(_ context.Context, q unread.PageRequest) (readstate.Page, error) {
	var c, n int
	if _, err := fmt.Sscanf(string(q.Member), "%d-%d", &c, &n); err != nil ||
		c >= len(h.sizes) || n >= h.sizes[c] {
		return readstate.Page{}, unread.ErrNoMember
	}
	page := readstate.Page{
		Member: readstate.MemberInfo{Key: hallKey(c, n), ID: q.Member, Active: true},
		Scopes: []readstate.PageScope{{Info: readstate.ScopeInfo{
			Key: readstate.ScopeKey(c + 1), ID: readstate.ScopeID("hall-" + strconv.Itoa(c)),
			Type: readstate.Channel,
		}}},
		Rows: []readstate.PageRow{{MemberRow: h.row(c, n, 0)}},
	}
	for i := range h.aside {
		key := readstate.ScopeKey(len(h.sizes) + i + 1)
		page.Scopes = append(page.Scopes, readstate.PageScope{Info: readstate.ScopeInfo{
			Key: key, ID: asideName(i), Type: readstate.Channel,
		}})
		row := h.row(c, n, 0)
		row.Scope = key
		page.Rows = append(page.Rows, readstate.PageRow{MemberRow: row})
	}
	return page, nil
}

func asideName(i int) readstate.ScopeID {
	return readstate.ScopeID("aside-" + strconv.Itoa(i))
}

// row is a member's row with everything read through a revision.
func (h *hall) row(c, n int, read readstate.Revision) readstate.MemberRow {
	row := readstate.MemberRow{
		Scope: readstate.ScopeKey(c + 1), Member: hallKey(c, n), MemberID: hallMember(c, n),
		Row: readstate.Row{
			Joined: true, Visible: true, Epoch: 1, Effective: 1, Read: read,
			Point: readstate.Point{E: read},
		},
		StateLSN: h.lsn,
	}
	if n == 0 { // the writer
		row.Row.Point.AuthorRank, row.Writer.AuthorHead = uint64(read), uint64(h.heads[c])
	}
	return row
}

// post applies one message and returns how long that took.
func (h *hall) post(c int) (time.Duration, error) { return h.posts(c, 1) }

// posts applies messages, a commit for each. Making their events is not part of the time.
func (h *hall) posts(c, n int) (time.Duration, error) {
	first := h.lsn + 1
	commits := make([][]readstate.Event, n)
	for i := range commits {
		h.lsn++
		h.heads[c]++
		h.writings++
		head := h.heads[c]
		commits[i] = []readstate.Event{readstate.MessageEvent{
			Scope: readstate.ScopeKey(c + 1), Seq: readstate.Seq(head), Revision: head,
			ID: "message-" + strconv.Itoa(h.writings), At: int64(h.writings),
			Author: hallKey(c, 0), AuthorRank: uint64(head),
		}}
	}
	return bench.Time(func() error {
		for i, events := range commits {
			if err := h.runtime.Apply(space, first+readstate.LSN(i), events); err != nil {
				return err
			}
		}
		return nil
	})
}

// catchUpRows is how many reads share a commit, about what a busy lane puts into a group.
const catchUpRows = 1000

// catchUp has every member of a channel read everything, and ask for the dot, which must be out.
func (h *hall) catchUp(c int) error {
	members := make([]int, h.sizes[c])
	for i := range members {
		members[i] = i
	}
	for part := range slices.Chunk(members, catchUpRows) {
		h.lsn++
		events := make([]readstate.Event, 0, len(part))
		for _, n := range part {
			events = append(events, readstate.MemberEvent{MemberRow: h.row(c, n, h.heads[c])})
		}
		if err := h.runtime.Apply(space, h.lsn, events); err != nil {
			return err
		}
	}
	return h.dots(c, 1, false)
}

// dots asks for the dot of every step-th member but the writer, and expects the same of each.
func (h *hall) dots(c, step int, want bool) error {
	for n := 1; n < h.sizes[c]; n += step {
		got, state := h.runtime.HasUnread(space, hallMember(c, n))
		if got != want || state != unread.Ready {
			return fmt.Errorf("dot of %s is %t (%s), want %t", hallMember(c, n), got, state, want)
		}
	}
	return nil
}

// turns are the orders in which three things can be measured.
var turns = [][3]int{{0, 1, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}, {1, 0, 2}, {0, 2, 1}}

// sweep asks for the dots of members all over a channel, whatever they are.
func (h *hall) sweep(c int) {
	const enough = 100_000
	for n := 0; n < h.sizes[c]; n += max(1, h.sizes[c]/enough) {
		h.runtime.HasUnread(space, hallMember(c, n))
	}
}

// drainPoll is how often the runtime is asked whether it is done.
const drainPoll = 50 * time.Microsecond

// drain waits until nothing is pending and returns how long that took and in how many steps since
// there were as many as before.
func (h *hall) drain(before uint64) (time.Duration, uint64) {
	start := time.Now()
	for {
		s := h.runtime.Stats()
		if s.PendingBatches == 0 {
			return time.Since(start), s.Ticks - before
		}
		time.Sleep(drainPoll)
	}
}

// runHall measures a big channel against two small ones, one of them as the control.
func runHall(ctx context.Context, r *bench.Run) error {
	size := bench.Pick(r.Scale, 2_500, 100_000, 1_000_000)
	messages := bench.Pick(r.Scale, 3, 18, 12)
	const big, small, other = 0, 1, 2
	h, err := openHall(ctx, r, 0, size, 10, 10)
	if err != nil {
		return err
	}
	defer h.runtime.Close()
	f, d := r.Figure(message1M), r.Figure(message1MDrain)
	f.Note("The big channel has %d members. Each of the %d messages of a round follows a read of "+
		"every member. The three channels take turns in every order, and dots of the big one are asked "+
		"for before each.", size, messages)
	f.Note("Measured is Runtime.Apply, as the commit lane calls it after a durable commit.")
	return r.Each(ctx, func(ctx context.Context, round int) error {
		took := make([][]float64, 3)
		var drained, steps []float64
		for i := range messages {
			for c := range 3 {
				if err := h.catchUp(c); err != nil {
					return err
				}
			}
			for _, c := range turns[i%len(turns)] {
				h.sweep(big) // whoever comes first finds the caches as the others do
				before := h.runtime.Stats().Ticks
				d, err := h.post(c)
				if err != nil {
					return err
				}
				took[c] = append(took[c], float64(d))
				if c != big {
					continue
				}
				left, n := h.drain(before)
				drained = append(drained, float64(left))
				steps = append(steps, float64(n))
			}
			if err := h.dots(big, 1, true); err != nil {
				return err
			}
		}
		f.Add("big channel", bench.Nanoseconds, bench.Median(took[big]))
		f.Add("channel of 10", bench.Nanoseconds, bench.Median(took[small]))
		f.Add("another channel of 10", bench.Nanoseconds, bench.Median(took[other]))
		f.Hold(bench.Median(took[big]) / bench.Median(took[small]))
		f.HoldControl(bench.Median(took[other]) / bench.Median(took[small]))
		n := max(1, bench.Median(steps))
		d.Add("drain", bench.Nanoseconds, bench.Median(drained))
		d.Add("steps", bench.Number, bench.Median(steps))
		d.Add("mean of a step", bench.Nanoseconds, bench.Median(drained)/n)
		d.Hold(float64(size) / n / stepRows)
		return nil
	})
}
