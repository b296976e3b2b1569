package figures

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/internal/bench"
	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// lobby is an office with channels of different sizes: a hall on the real store, where a message
// and a read take the whole way.
type lobby struct {
	*office
	sizes  []int
	heads  []readstate.Revision
	posted int
}

func lobbyMember(channel, n int) readstate.MemberID {
	return readstate.MemberID("lobby-" + strconv.Itoa(channel) + "-" + strconv.Itoa(n))
}

// openLobby fills the channels and loads every member.
func openLobby(ctx context.Context, r *bench.Run, sizes ...int) (*lobby, error) {
	total := len(sizes)
	for _, n := range sizes {
		total += n
	}
	o, err := openOffice(ctx, tidemark.Options{Runtime: unread.Config{HydrateWait: time.Minute}})
	if err != nil {
		return nil, err
	}
	l := &lobby{office: o, sizes: sizes, heads: make([]readstate.Revision, len(sizes))}
	bar := r.Bar("filling", "rows", total)
	defer bar.End()
	done := 0
	for c, size := range sizes {
		err := l.fill(ctx, size+1, func(b *facts.Batch, i int) {
			if i == 0 {
				b.PutScope(facts.PutScope{ID: officeChannel(c), Type: readstate.Channel})
				return
			}
			b.PutMembership(facts.PutMembership{
				Scope: officeChannel(c), Member: lobbyMember(c, i-1), CreateMember: true,
			})
		}, func(n int) { bar.Set(int64(done + n)) })
		for n := 0; n < size && err == nil; n++ {
			_, err = l.ws.Summary(ctx, lobbyMember(c, n))
		}
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
		done += size + 1
	}
	return l, nil
}

// post writes a message of the channel's first member and returns how long that took.
func (l *lobby) post(ctx context.Context, c int) (time.Duration, error) {
	l.posted++
	l.heads[c]++
	return bench.Time(func() error {
		_, err := l.ws.Post(ctx, facts.Post{
			Scope: officeChannel(c), OpID: "lobby-" + strconv.Itoa(l.posted),
			Author: lobbyMember(c, 0), Payload: payload, By: facts.Actor{Trusted: true},
		})
		return err
	})
}

// catchUp has every member read everything and ask for the dot.
func (l *lobby) catchUp(ctx context.Context, c int) error {
	head := l.heads[c]
	if head > 0 {
		err := l.fill(ctx, l.sizes[c], func(b *facts.Batch, i int) {
			b.MarkRead(facts.MarkRead{
				Scope: officeChannel(c), Member: lobbyMember(c, i), Revision: &head, Trusted: true,
			})
		}, func(int) {})
		if err != nil {
			return err
		}
	}
	return l.dots(c, false)
}

func (l *lobby) dots(c int, want bool) error {
	for n := 1; n < l.sizes[c]; n++ {
		got, state := l.ws.HasUnread(lobbyMember(c, n))
		if got != want || state != unread.Ready {
			return fmt.Errorf("dot of %s is %t (%s), want %t", lobbyMember(c, n), got, state, want)
		}
	}
	return nil
}

// runLobby measures a durable message in a big channel against two small ones.
func runLobby(ctx context.Context, r *bench.Run) (err error) {
	size := bench.Pick(r.Scale, 200, 10_000, 100_000)
	messages := bench.Pick(r.Scale, 3, 12, 6)
	const big, small, other = 0, 1, 2
	l, err := openLobby(ctx, r, size, 10, 10)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	f := r.Figure(messageLibrary)
	f.Note("The big channel has %d members, all of whom read everything through the library before "+
		"each of the %d messages of a round.", size, messages)
	return r.Each(ctx, func(ctx context.Context, _ int) error {
		took := make([][]float64, 3)
		for i := range messages {
			for c := range 3 {
				if err := l.catchUp(ctx, c); err != nil {
					return err
				}
			}
			for _, c := range turns[i%len(turns)] {
				d, err := l.post(ctx, c)
				if err != nil {
					return err
				}
				took[c] = append(took[c], float64(d))
			}
			for c := range 3 {
				if err := l.dots(c, true); err != nil {
					return err
				}
			}
		}
		f.Add("big channel", bench.Nanoseconds, bench.Median(took[big]))
		f.Add("channel of 10", bench.Nanoseconds, bench.Median(took[small]))
		f.Add("another channel of 10", bench.Nanoseconds, bench.Median(took[other]))
		f.Hold(bench.Median(took[big]) / bench.Median(took[small]))
		f.HoldControl(bench.Median(took[other]) / bench.Median(took[small]))
		return nil
	})
}
