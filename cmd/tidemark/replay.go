package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/internal/progress"
	"github.com/tidemark-im/tidemark/internal/replay"
	"github.com/tidemark-im/tidemark/internal/trace"
	"github.com/tidemark-im/tidemark/unread"
)

// replayWorkspace is where a trace goes.
const replayWorkspace = "trace"

// A replay has the machine to itself: bigger commits and bigger pages than a server's, which
// must answer in between.
const (
	replayGroupRows = 20_000
	replayGroupWait = 250 * time.Millisecond
	replayPageRows  = 2_000
	// Memory is worth less than time here: garbage is collected when the heap has grown fivefold.
	replayGCPercent = 400
)

type replayCommand struct {
	Facts  string `placeholder:"sqlite:PATH|URL" help:"${about_facts_of_replay}"`
	Trace  string `arg:"" help:"Trace to load, compressed by gzip or plain."`
	JSON   bool   `help:"Print one JSON object."`
	Counts string `placeholder:"FILE" help:"${about_counts}"`
}

// Validate implements kong's check.
func (c *replayCommand) Validate() error {
	if c.Facts == "" {
		return nil
	}
	return checkFacts(c.Facts)
}

func (c *replayCommand) run(ctx context.Context, m *Main) (err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(replayGCPercent))
	rows, err := c.check(ctx)
	if err != nil {
		return err
	}
	where, forget, err := c.place(m)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, forget()) }()
	engine, err := tidemark.Open(ctx, tidemark.Options{
		Facts: where, Now: m.Now,
		Lane:    facts.LaneConfig{GroupRows: replayGroupRows, GroupWait: replayGroupWait},
		Runtime: unread.Config{HydratePageSize: replayPageRows},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	if _, err := engine.CreateWorkspace(ctx, replayWorkspace, "Replayed chat"); err != nil {
		return err
	}
	w := engine.Workspace(replayWorkspace)
	started := m.Now()
	loaded, took, err := c.load(ctx, m, w, rows)
	if err != nil {
		return err
	}
	counts, err := c.count(ctx, m, w)
	if err != nil {
		return err
	}
	if c.Counts != "" {
		if err := writeTo(c.Counts, nil, func(out io.Writer) error {
			_, err := counts.WriteTo(out)
			return err
		}); err != nil {
			return err
		}
	}
	if c.JSON {
		return json.NewEncoder(m.Stdout).Encode(struct {
			replay.Totals
			Seconds float64 `json:"seconds"`
		}{counts.Totals, m.Now().Sub(started).Seconds()})
	}
	return printReplay(m.Stdout, loaded, took, counts.Totals)
}

// place is where the facts go, and what to do with them at the end.
func (c *replayCommand) place(m *Main) (facts string, forget func() error, err error) {
	if c.Facts != "" {
		return c.Facts, func() error { return nil }, nil
	}
	dir, err := os.MkdirTemp("", "tidemark-replay-*")
	if err != nil {
		return "", nil, err
	}
	_, _ = fmt.Fprintln(m.Stderr, "in a temporary database; --facts sqlite:PATH keeps it")
	return sqlitePrefix + filepath.Join(dir, "replay.db"), func() error { return os.RemoveAll(dir) }, nil
}

// check reads the whole trace before anything is changed, and says how long it is.
func (c *replayCommand) check(ctx context.Context) (rows int64, err error) {
	err = c.open(func(in *trace.Reader) error {
		for {
			_, err := in.Read()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err = errors.Join(err, ctx.Err()); err != nil {
				return err
			}
			rows++
		}
	})
	return rows, err
}

func (c *replayCommand) open(use func(*trace.Reader) error) error {
	f, err := os.Open(c.Trace)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	in, err := trace.NewReader(f)
	if err == nil {
		err = use(in)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.Trace, err)
	}
	return nil
}

func (c *replayCommand) load(
	ctx context.Context, m *Main, w *tidemark.Workspace, rows int64,
) (loaded replay.Loaded, took time.Duration, err error) {
	bar := progress.New(m.Stderr, "loading", "messages", rows, m.Now)
	err = c.open(func(in *trace.Reader) error {
		loaded, err = replay.Load(ctx, w, in, func(done int) { bar.Set(int64(done)) })
		return err
	})
	return loaded, bar.End(), err
}

func (c *replayCommand) count(
	ctx context.Context, m *Main, w *tidemark.Workspace,
) (*replay.Counts, error) {
	var bar *progress.Bar
	counts, err := replay.Count(ctx, w, func(done, of int) {
		if bar == nil {
			bar = progress.New(m.Stderr, "counting", "members", int64(of), m.Now)
		}
		bar.Set(int64(done))
	})
	if bar != nil {
		bar.End()
	}
	return counts, err
}

func printReplay(out io.Writer, l replay.Loaded, took time.Duration, t replay.Totals) error {
	n := func(v uint64) string { return humanize.Comma(int64(v)) }
	i := func(v int) string { return humanize.Comma(int64(v)) }
	switch fresh := l.Messages - l.Duplicates; {
	case !l.Changed:
		_, _ = fmt.Fprintf(out, "%s messages were already here; nothing changed\n\n", i(l.Messages))
	case l.Duplicates > 0:
		_, _ = fmt.Fprintf(out, "%s messages loaded in %.1f s, %s were already here\n\n",
			i(fresh), took.Seconds(), i(l.Duplicates))
	default:
		_, _ = fmt.Fprintf(out, "%s messages loaded in %.1f s, %s a second\n\n", i(fresh),
			took.Seconds(), humanize.Comma(int64(float64(fresh)/max(took.Seconds(), 1e-3))))
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range [][2]string{
		{"messages", n(t.Messages)}, {"channels", i(t.Channels)}, {"threads", i(t.Threads)},
		{"members", i(t.Members)}, {"channel memberships", i(t.ChannelMemberships)},
		{"thread follows", i(t.ThreadFollows)}, {"channel unread", n(t.ChannelUnread)},
		{"thread unread", n(t.ThreadUnread)}, {"attention", n(t.Attention)},
		{"entries with unread", i(t.EntriesUnread)}, {"members with unread", i(t.MembersUnread)},
	} {
		_, _ = fmt.Fprintf(table, "%s\t%s\t\n", row[0], row[1])
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nsha256 of all counts  %s\n", t.SHA256)
	return err
}
