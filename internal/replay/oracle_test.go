package replay_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/internal/replay"
	"github.com/tidemark-im/tidemark/internal/trace"
)

// The oracle reads the rules of a replay off the page and counts by looking at every message of
// every scope for everyone in it. It shares nothing with the planner or the engine.

type entry struct{ from, read int } // what counts lies at or above from, and above read

type sent struct {
	by    trace.User
	named []trace.User
	all   bool
}

type place struct {
	thread  bool
	log     []sent // of revision 1, 2, 3
	entries map[trace.User]*entry
}

func (p *place) enter(u trace.User) {
	if _, ok := p.entries[u]; !ok {
		p.entries[u] = &entry{from: len(p.log) + 1}
	}
}

func (p *place) send(row trace.Row) {
	p.log = append(p.log, sent{row.Sender, row.Mentions, row.Everyone})
	p.entries[row.Sender].read = len(p.log)
}

func (p *place) count(u trace.User) (unread, attention uint64) {
	e := p.entries[u]
	for i, m := range p.log {
		if revision := i + 1; revision < e.from || revision <= e.read || m.by == u {
			continue
		}
		unread++
		if m.all || slices.Contains(m.named, u) {
			attention++
		}
	}
	return unread, attention
}

type oracle struct {
	places map[string]*place
	roots  map[trace.Topic]trace.Row
	users  map[trace.User]bool
	rows   int
}

func judge(t *testing.T, rows *trace.Reader) *oracle {
	t.Helper()
	o := &oracle{
		places: map[string]*place{}, roots: map[trace.Topic]trace.Row{}, users: map[trace.User]bool{},
	}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return o
		}
		if err != nil {
			t.Fatal(err)
		}
		o.add(row)
	}
}

func (o *oracle) add(row trace.Row) {
	o.rows++
	here := append([]trace.User{row.Sender}, row.Mentions...)
	channel := o.place(fmt.Sprint("c", row.Channel), false)
	for _, u := range here {
		o.users[u] = true
		channel.enter(u)
	}
	root, replies := o.roots[row.Topic]
	if !replies {
		o.roots[row.Topic] = row
		channel.send(row)
		return
	}
	thread := o.place(fmt.Sprint("t", row.Topic), true)
	if len(thread.log) == 0 {
		for _, u := range append([]trace.User{root.Sender}, root.Mentions...) {
			thread.enter(u)
		}
	}
	for _, u := range here {
		thread.enter(u)
	}
	thread.send(row)
}

func (o *oracle) place(id string, thread bool) *place {
	if o.places[id] == nil {
		o.places[id] = &place{thread: thread, entries: map[trace.User]*entry{}}
	}
	return o.places[id]
}

func (o *oracle) totals() (replay.Totals, string) {
	t := replay.Totals{Messages: uint64(o.rows), Members: len(o.users)}
	var lines []string
	busy := map[trace.User]bool{}
	for id, p := range o.places {
		if p.thread {
			t.Threads++
		} else {
			t.Channels++
		}
		for u := range p.entries {
			unread, attention := p.count(u)
			if p.thread {
				t.ThreadFollows++
				t.ThreadUnread += unread
			} else {
				t.ChannelMemberships++
				t.ChannelUnread += unread
			}
			t.Attention += attention
			if unread > 0 {
				t.EntriesUnread++
				busy[u] = true
			}
			lines = append(lines, fmt.Sprintf("u%d,%s,%d,%d\n", u, id, unread, attention))
		}
	}
	t.MembersUnread = len(busy)
	slices.Sort(lines)
	text := strings.Join(lines, "")
	sum := sha256.Sum256([]byte(text))
	t.SHA256 = hex.EncodeToString(sum[:])
	return t, text
}
