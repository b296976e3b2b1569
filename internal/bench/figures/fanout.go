package figures

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/tidemark-im/tidemark/internal/bench"
	"github.com/tidemark-im/tidemark/internal/bench/fanout"
	"github.com/tidemark-im/tidemark/internal/bench/profile"
)

// runFanout measures a message against a counter for each member.
func runFanout(ctx context.Context, r *bench.Run) error {
	size := bench.Pick(r.Scale, 2_500, 100_000, 100_000)
	h, err := openHall(ctx, r, asideChannels, size)
	if err != nil {
		return err
	}
	defer h.runtime.Close()
	theirs := crowded(size)
	post := func() { theirs.Post("hall", string(hallMember(0, 0))) }
	share, samples, err := profile.Share(ctx, "fanout.increment", post)
	if err != nil {
		return err
	}
	for _, name := range []string{
		messageFanout, messageFanoutDrain, messageCaughtUp, messageCaughtDrain,
	} {
		r.Figure(name).Note("The channel has %d members, who are in %d other channels, too, and joined "+
			"them all in an order by chance. %.0f %% of the baseline's profile (%d samples) are "+
			"increments.", size, asideChannels, 100*share, samples)
	}
	busy := bench.Pick(r.Scale, 50, 500, 500)
	single := bench.Pick(r.Scale, 3, 9, 9)
	var baseline, again time.Duration
	many := func(n int) time.Duration {
		start := time.Now()
		for range n {
			post()
		}
		return time.Since(start) / time.Duration(n)
	}
	return r.Each(ctx, func(context.Context, int) error {
		baseline, again = many(busy), many(busy)
		return h.againstFanout(r, busy, single, baseline, again)
	})
}

// asideChannels is how many other channels the members of the channel are in.
const asideChannels = 20

// crowded is a baseline with a channel of that size. Its counters lie where they were made, and so
// those of one channel among those of all the others.
func crowded(size int) *fanout.Counters {
	const each = asideChannels + 1
	joins := make([]uint32, size*each)
	for i := range joins {
		joins[i] = uint32(i)
	}
	rand.New(rand.NewPCG(10, 10)).Shuffle(len(joins), func(i, j int) {
		joins[i], joins[j] = joins[j], joins[i]
	})
	all := fanout.New()
	for _, join := range joins {
		n, c := int(join)/each, int(join)%each
		name := "hall"
		if c < asideChannels {
			name = string(asideName(c))
		}
		all.Join(name, string(hallMember(0, n)))
	}
	return all
}

// againstFanout measures our side of one round.
func (h *hall) againstFanout(
	r *bench.Run, busy, single int, baseline, again time.Duration,
) error {
	var bare, drained []float64
	for range single {
		if err := h.catchUp(0); err != nil {
			return err
		}
		took, err := h.post(0)
		if err != nil {
			return err
		}
		left, _ := h.drain(0)
		bare = append(bare, float64(took))
		drained = append(drained, float64(took+left))
		if err := h.dots(0, 1, true); err != nil {
			return err
		}
	}
	took, err := h.posts(0, busy)
	if err != nil {
		return err
	}
	unread := float64(took) / float64(busy)
	left, _ := h.drain(0)
	if err := h.dots(0, 97, true); err != nil {
		return err
	}
	for name, ours := range map[string]float64{
		messageFanout: unread, messageFanoutDrain: unread + float64(left)/float64(busy),
		messageCaughtUp: bench.Median(bare), messageCaughtDrain: bench.Median(drained),
	} {
		f := r.Figure(name)
		f.Add("Tidemark", bench.Nanoseconds, ours)
		f.Add("fan-out", bench.Nanoseconds, float64(baseline))
		f.Add("fan-out again", bench.Nanoseconds, float64(again))
		f.Hold(float64(baseline) / ours)
		f.HoldControl(float64(again) / float64(baseline))
	}
	return nil
}
