package figures

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-im/tidemark/internal/bench"
	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// crowdScopes is how many channels each member of a crowd has joined.
const crowdScopes = 200

// crowd is a runtime full of members with crowdScopes channels each, and their source.
//
// Members of even numbers have read everything. Those of odd numbers have read as far as chance
// took them. One row in ten has been marked unread by hand: with odd members the mark stands and
// begins somewhere, with even ones it was cleared since. All messages are written by somebody
// who is in no channel.
type crowd struct {
	runtime  *unread.Runtime
	members  int
	channels int
	names    []readstate.ScopeID
	heads    []readstate.Revision // by channel
	began    readstate.Revision   // every channel's head at first
	lsn      readstate.LSN
}

// stranger writes everything in a crowd.
const stranger readstate.MemberKey = 1 << 40

const crowdPrefix = "member-"

// newCrowd makes an empty runtime; channels must be prime, so that steps through them meet each.
func newCrowd(members, channels int, head readstate.Revision) (*crowd, error) {
	c := &crowd{members: members, channels: channels, began: head}
	for i := range channels {
		c.names = append(c.names, readstate.ScopeID("channel-"+strconv.Itoa(i)))
		c.heads = append(c.heads, head)
	}
	var err error
	c.runtime, err = unread.New(unread.Config{
		Source: c, HydratePageSize: crowdScopes, MaxEntries: members*crowdScopes + 1_000_000,
		HydrateWait: time.Minute, MaxBytes: 1 << 34,
	})
	if err != nil {
		return nil, err
	}
	c.runtime.Open(space, 0)
	return c, nil
}

func (c *crowd) id(m int) readstate.MemberID {
	return readstate.MemberID(crowdPrefix + strconv.Itoa(m))
}

// mix makes a number that looks like chance of two, the same one each time.
func mix(a, b int) uint64 {
	x := uint64(a)*0x9e3779b97f4a7c15 + uint64(b)*0xbf58476d1ce4e5b9 + 0x94d049bb133111eb
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// below is chance below n.
func below(a, b, n int) int { return int(mix(a, b) % uint64(n)) }

// channel is the n-th channel of a member: steps of one length from a first one.
func (c *crowd) channel(m, n int) int {
	first, step := below(m, -1, c.channels), 1+below(m, -2, c.channels-1)
	return (first + n*step) % c.channels
}

// cursor is what a member's n-th row stores.
func (c *crowd) cursor(m, n int) (read readstate.Revision, manual readstate.Manual) {
	marked := below(m, n+1000, 10) == 0
	if m%2 == 0 {
		if marked {
			manual.Version = 2
		}
		return c.began, manual
	}
	read = readstate.Revision(below(m, n, int(c.began)+1))
	if marked {
		manual = readstate.Manual{Set: true, Version: 1}
		manual.From = readstate.Revision(1 + below(m, n+2000, int(c.began)))
	}
	return read, manual
}

// Page implements unread.Source, for a crowd that nobody has written in yet: later messages come
// to it as events.
func (c *crowd) Page(_ context.Context, q unread.PageRequest) (readstate.Page, error) {
	text, _ := strings.CutPrefix(string(q.Member), crowdPrefix)
	m, err := strconv.Atoi(text)
	if err != nil || m < 0 || m >= c.members {
		return readstate.Page{}, unread.ErrNoMember
	}
	key := readstate.MemberKey(m + 1)
	page := readstate.Page{
		Member: readstate.MemberInfo{Key: key, ID: q.Member, Active: true, DisplayName: "Somebody"},
		Rows:   make([]readstate.PageRow, crowdScopes), Scopes: make([]readstate.PageScope, crowdScopes),
	}
	for n := range crowdScopes {
		at := c.channel(m, n)
		page.Scopes[n] = readstate.PageScope{
			Info: readstate.ScopeInfo{
				Key: readstate.ScopeKey(at + 1), ID: c.names[at], Type: readstate.Channel,
				Name: "Channel",
			},
			Ranks: readstate.ScopeRanks{
				LatestSeq: readstate.Seq(c.began), Head: c.began, Replies: uint64(c.began),
				Latest: readstate.Latest{ID: "message", At: 1}, LastActivityAt: 1,
			},
		}
		row := readstate.Row{Joined: true, Visible: true, Epoch: 1, Effective: 1}
		row.Read, row.Manual = c.cursor(m, n)
		row.Point.E = row.EffectivePoint(0)
		page.Rows[n] = readstate.PageRow{MemberRow: readstate.MemberRow{
			Scope: readstate.ScopeKey(at + 1), Member: key, MemberID: q.Member, Row: row, StateLSN: 1,
		}}
	}
	return page, nil
}

// load has everybody loaded.
func (c *crowd) load(ctx context.Context, r *bench.Run) error {
	bar := r.Bar("loading", "members", c.members)
	defer bar.End()
	err := loadMembers(ctx, c.runtime, c.members, c.id, func(n int) { bar.Set(int64(n)) })
	if n := c.runtime.Stats().Entries; err == nil && n != c.members*crowdScopes {
		err = fmt.Errorf("%d rows are loaded of %d", n, c.members*crowdScopes)
	}
	return err
}

// post applies a message of the stranger to a channel.
func (c *crowd) post(channel int) error {
	c.lsn++
	c.heads[channel]++
	head := c.heads[channel]
	return c.runtime.Apply(space, c.lsn, []readstate.Event{readstate.MessageEvent{
		Scope: readstate.ScopeKey(channel + 1), Seq: readstate.Seq(head), Revision: head,
		ID: "message", At: int64(c.lsn), Author: stranger, AuthorRank: uint64(head),
	}})
}

// verify tells the oracle what happened to some members and compares all their counts.
func (c *crowd) verify(ctx context.Context, r *bench.Run, members ...int) error {
	compared, wrong := 0, []string(nil)
	for _, m := range members {
		w, err := c.history(m)
		if err != nil {
			return err
		}
		counts, _, err := c.runtime.Counts(ctx, space, c.id(m), nil)
		if err != nil {
			return err
		}
		for _, got := range counts {
			want := w.Values(1, model.ScopeID(got.Scope))
			compared++
			if int(got.Unread) != want.Unread || int(got.Attention) != want.Attention ||
				int(got.ShownUnread) != want.ShownUnread || got.Shown != want.Shown {
				wrong = append(wrong, fmt.Sprintf("%s in channel %d: %+v, want %v",
					c.id(m), got.Scope-1, got, want))
			}
		}
		if len(counts) != crowdScopes {
			wrong = append(wrong, fmt.Sprintf("%s has %d counts", c.id(m), len(counts)))
		}
	}
	return r.Check("counts of members of a crowd", compared, wrong)
}

// history is the oracle's world of one member, who is number 1 in it.
func (c *crowd) history(m int) (*model.World, error) {
	const member, writer = 1, 2
	w := model.New()
	for n := range crowdScopes {
		at := c.channel(m, n)
		scope := model.ScopeID(at + 1)
		read, manual := c.cursor(m, n)
		ops := []model.Op{{Kind: model.OpCreate, Scope: scope, Type: model.Channel}}
		say := model.Op{Kind: model.OpPost, Scope: scope, Member: writer}
		for range c.began {
			ops = append(ops, say)
		}
		ops = append(ops, model.Op{Kind: model.OpJoin, Scope: scope, Member: member, From: 1},
			model.Op{
				Kind: model.OpRead, Scope: scope, Member: member, Revision: model.Revision(read),
				Version: model.NoVersion, Service: true,
			})
		if manual.Set {
			ops = append(ops, model.Op{
				Kind: model.OpMarkUnread, Scope: scope, Member: member,
				From: model.Revision(manual.From), Version: model.NoVersion, Service: true,
			})
		}
		for range c.heads[at] - c.began {
			ops = append(ops, say)
		}
		for _, op := range ops {
			if _, err := w.Apply(op); err != nil {
				return nil, err
			}
		}
	}
	return w, nil
}
