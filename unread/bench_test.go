package unread

import (
	"context"
	"fmt"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
)

// crowd is a source in which every member has joined the same number of channels.
type crowd struct{ scopes int }

func (c crowd) Page(_ context.Context, q PageRequest) (readstate.Page, error) {
	var n uint64
	if _, err := fmt.Sscanf(string(q.Member), "u%d", &n); err != nil {
		return readstate.Page{}, ErrNoMember
	}
	key := readstate.MemberKey(n + 1)
	page := readstate.Page{Member: readstate.MemberInfo{Key: key, ID: q.Member}}
	for s := range c.scopes {
		scope := readstate.ScopeKey(s + 1)
		page.Scopes = append(page.Scopes, readstate.PageScope{Info: readstate.ScopeInfo{
			Key: scope, ID: readstate.ScopeID(fmt.Sprint("c", s)), Type: readstate.Channel,
		}})
		page.Rows = append(page.Rows, readstate.PageRow{MemberRow: readstate.MemberRow{
			Scope: scope, Member: key, MemberID: q.Member,
			Row: readstate.Row{Joined: true, Visible: true, Epoch: 1, Effective: 1},
		}})
	}
	return page, nil
}

func gather(b *testing.B, members, scopes int) *Runtime {
	b.Helper()
	r, err := newRuntime(Config{
		Source: crowd{scopes}, HydratePageSize: scopes, MaxEntries: 10_000_000,
		Now: func() int64 { return 1 },
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(r.Close)
	r.Open(testSpace, 0)
	for m := range members {
		id := readstate.MemberID(fmt.Sprint("u", m))
		r.HasUnread(testSpace, id)
		req, _ := r.beginPage(r.queue.next())
		page, err := r.cfg.Source.Page(context.Background(), req)
		ws, _ := r.workspace(testSpace)
		r.finishPage(ws.jobs[id], page, err)
		r.HasUnread(testSpace, id)
	}
	return r
}

func post(b *testing.B, r *Runtime, lsn uint64, scope readstate.ScopeKey, at uint64) {
	b.Helper()
	err := r.Apply(testSpace, readstate.LSN(lsn), []readstate.Event{readstate.MessageEvent{
		Scope: scope, Seq: readstate.Seq(at), Revision: readstate.Revision(at),
		Author: 1, AuthorRank: at,
	}})
	if err != nil {
		b.Fatal(err)
	}
}

// A message costs the same however many members of its scope are loaded: those who wait are
// fired once, and stay candidates until they are read.
func BenchmarkMessage(b *testing.B) {
	for _, members := range []int{10, 1_000, 100_000} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			r := gather(b, members, 1)
			b.ReportAllocs()
			n := uint64(0)
			for b.Loop() {
				n++
				post(b, r, n, 1, n)
			}
		})
	}
}

// covers: RT-052
func BenchmarkDot(b *testing.B) {
	for _, scopes := range []int{10, 10_000} {
		b.Run(fmt.Sprint(scopes), func(b *testing.B) {
			r := gather(b, 2, scopes)
			post(b, r, 1, 5, 1)
			b.ReportAllocs()
			for b.Loop() {
				if dot, _ := r.HasUnread(testSpace, "u1"); !dot {
					b.Fatal("no dot")
				}
			}
		})
	}
}

func BenchmarkBadge(b *testing.B) {
	for _, unread := range []int{1, 10, 200} {
		b.Run(fmt.Sprint(unread), func(b *testing.B) {
			r := gather(b, 2, 200)
			for i := range unread {
				post(b, r, uint64(i+1), readstate.ScopeKey(i+1), 1)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Summary(context.Background(), testSpace, "u1"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
