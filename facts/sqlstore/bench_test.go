//go:build unix

package sqlstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/readstate"
)

const benchWorkspace facts.WorkspaceKey = 1

// cpuTime is the time all threads of the process have run, which a busy machine does not stretch.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// groups makes the changes of groups of posts over some scopes and authors.
type groups struct {
	scopes  []facts.ScopeRow
	authors int
	next    int
}

func newGroups(scopes, authors int) *groups {
	g := &groups{authors: authors}
	for i := range scopes {
		g.scopes = append(g.scopes, facts.ScopeRow{Info: readstate.ScopeInfo{
			Key: facts.ScopeKeyOf(benchWorkspace, uint32(i+1)),
			ID:  readstate.ScopeID(fmt.Sprint("scope-", i)), Type: readstate.Channel,
		}})
	}
	return g
}

// group returns n posts; one in ten names a member.
func (g *groups) group(n int, bare bool) *facts.Changes {
	c := &facts.Changes{}
	touched := map[int]bool{}
	writers := map[facts.RowKey]bool{}
	states := map[facts.RowKey]bool{}
	for range n {
		i := g.next % len(g.scopes)
		author := facts.MemberKeyOf(benchWorkspace, uint32(1+g.next*7%g.authors))
		g.next++
		s := &g.scopes[i]
		s.Ranks.LatestSeq++
		s.Ranks.Head++
		m := facts.MessageRow{
			Place:    facts.Place{Scope: s.Info.Key, Seq: s.Ranks.LatestSeq},
			Revision: s.Ranks.Head, ID: fmt.Sprintf("01J%023d", g.next*7919%1000000007), Kind: "text",
			Author: author, AuthorRank: 1, Live: true,
			Op: facts.OpKey{
				Workspace: benchWorkspace, Actor: author,
				ID: fmt.Sprintf("op-%016x", g.next*7919%1000000007),
			},
			CreatedAt: 1_700_000_000_000, Payload: []byte(`{"text":"The quick brown fox jumps over the lazy dog."}`),
		}
		if g.next%10 == 0 {
			named := facts.RowKey{Scope: s.Info.Key, Member: author + 1}
			m.Named = []readstate.MemberKey{named.Member}
			c.Mentions = append(c.Mentions, facts.MentionRow{
				RowKey: named, Revision: m.Revision, Author: author, Live: true,
			})
			states[named] = true
		}
		touched[i] = true
		writers[facts.RowKey{Scope: s.Info.Key, Member: author}] = true
		c.NewMessages = append(c.NewMessages, m)
	}
	if bare {
		c.Mentions = nil
		return c
	}
	for i := range touched {
		c.Scopes = append(c.Scopes, g.scopes[i])
	}
	for k := range writers {
		c.Writers = append(c.Writers, facts.WriterRow{RowKey: k, Writer: readstate.Writer{AuthorHead: 5}})
	}
	for k := range states {
		c.States = append(c.States, facts.StateRow{
			RowKey: k, Row: readstate.Row{Joined: true, Visible: true, Epoch: 1}, StateLSN: 9,
		})
	}
	return c
}

func benchStore(b *testing.B) *sqlstore.Store {
	st, err := sqlstore.OpenSQLite(context.Background(), b.TempDir()+"/facts.db",
		sqlstore.Options{Unsafe: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = st.Close() })
	return st
}

func write(b *testing.B, st *sqlstore.Store, c *facts.Changes) {
	b.Helper()
	ctx := context.Background()
	tx, err := st.Begin(ctx)
	if err != nil {
		b.Fatal(err)
	}
	if err := tx.Write(ctx, c); err != nil {
		b.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkGroup(b *testing.B) {
	for _, n := range []int{1, 16, 2000} {
		for _, bare := range []bool{true, false} {
			name := fmt.Sprintf("posts=%d/bare=%t", n, bare)
			b.Run(name, func(b *testing.B) {
				st := benchStore(b)
				g := newGroups(50, 200)
				write(b, st, g.group(4000, false))
				b.ReportAllocs()
				var cpu time.Duration
				for b.Loop() {
					b.StopTimer()
					c := g.group(n, bare)
					b.StartTimer()
					start := cpuTime()
					write(b, st, c)
					cpu += cpuTime() - start
				}
				b.ReportMetric(float64(cpu.Microseconds())/float64(b.N*n), "cpu-µs/post")
			})
		}
	}
}

// A message that names a thousand members.
func BenchmarkMentions(b *testing.B) {
	st := benchStore(b)
	g := newGroups(1, 1)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		c := g.group(1, false)
		for i := range 1000 {
			key := facts.RowKey{Scope: g.scopes[0].Info.Key, Member: facts.MemberKeyOf(1, uint32(i+2))}
			c.Mentions = append(c.Mentions, facts.MentionRow{
				RowKey: key, Revision: g.scopes[0].Ranks.Head, Author: 1, Live: true,
			})
			c.States = append(c.States, facts.StateRow{
				RowKey: key, Row: readstate.Row{Joined: true, Point: readstate.Point{Direct: uint64(g.next)}},
			})
		}
		b.StartTimer()
		write(b, st, c)
	}
}

func BenchmarkLoad(b *testing.B) {
	st := benchStore(b)
	g := newGroups(50, 200)
	c := g.group(4000, false)
	write(b, st, c)
	ctx := context.Background()
	for _, n := range []int{1, 16, 512} {
		b.Run(fmt.Sprintf("states=%d", n), func(b *testing.B) {
			tx, err := st.Begin(ctx)
			if err != nil {
				b.Fatal(err)
			}
			defer tx.Rollback()
			var keys []facts.RowKey
			for i := range n {
				keys = append(keys, c.States[i%len(c.States)].RowKey)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tx.States(ctx, keys); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("ids=%d", n), func(b *testing.B) {
			tx, err := st.Begin(ctx)
			if err != nil {
				b.Fatal(err)
			}
			defer tx.Rollback()
			var keys []facts.OpKey
			for i := range n {
				keys = append(keys, c.NewMessages[i].Op)
			}
			keys[0].ID = "none"
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tx.MessagesByOp(ctx, keys); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPage(b *testing.B) {
	st := benchStore(b)
	g := newGroups(500, 200)
	c := g.group(4000, false)
	for i := range g.scopes {
		c.States = append(c.States, facts.StateRow{
			RowKey: facts.RowKey{Scope: g.scopes[i].Info.Key, Member: facts.MemberKeyOf(1, 1000)},
			Row:    readstate.Row{Joined: true, Visible: true},
		})
	}
	write(b, st, c)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		v, err := st.View(ctx)
		if err != nil {
			b.Fatal(err)
		}
		page, err := v.Page(ctx, facts.PageQuery{
			Workspace: 1, Member: facts.MemberKeyOf(1, 1000), Limit: 200,
		})
		if err != nil || len(page.Rows) != 200 {
			b.Fatal(len(page.Rows), err)
		}
		if err := v.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
