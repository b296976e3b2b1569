package figures

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/internal/bench"
	"github.com/tidemark-im/tidemark/readstate"
)

// redis keeps counts under keys of a prefix of its own, in the four ways that people do:
//
//	unread:MEMBER  hash of channel to count; a message increments it for every member
//	head:CHANNEL   number of messages; read:MEMBER hash of channel to cursor
//	log:CHANNEL    sorted set of messages by revision, counted by ZCOUNT
type redis struct {
	client  rueidis.Client
	prefix  string
	members int
	posted  int
}

func openRedis(dsn string) (*redis, error) {
	opts, err := rueidis.ParseURL(dsn)
	if err != nil {
		return nil, err
	}
	opts.DisableCache = true // every answer comes over the wire
	client, err := rueidis.NewClient(opts)
	if err != nil {
		return nil, err
	}
	return &redis{client: client, prefix: fmt.Sprintf("tidemark:%d:", time.Now().UnixNano())}, nil
}

func (d *redis) key(parts string) string { return d.prefix + parts }

// close removes the keys.
func (d *redis) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer d.client.Close()
	for cursor := uint64(0); ; {
		page, err := d.client.Do(ctx, d.client.B().Scan().Cursor(cursor).Match(d.prefix+"*").
			Count(1000).Build()).AsScanEntry()
		if err != nil {
			return err
		}
		if len(page.Elements) > 0 {
			err := d.client.Do(ctx, d.client.B().Unlink().Key(page.Elements...).Build()).Error()
			if err != nil {
				return err
			}
		}
		if cursor = page.Cursor; cursor == 0 {
			return nil
		}
	}
}

// pipelined sends commands at once and waits for all answers.
func (d *redis) pipelined(ctx context.Context, commands rueidis.Commands) error {
	var failed error
	for _, res := range d.client.DoMulti(ctx, commands...) {
		failed = errors.Join(failed, res.Error())
	}
	return failed
}

// single sends one command after the other.
func (d *redis) single(ctx context.Context, commands rueidis.Commands) error {
	for _, c := range commands {
		if err := d.client.Do(ctx, c).Error(); err != nil {
			return err
		}
	}
	return nil
}

// fill writes the reader's shelves.
func (d *redis) fill(ctx context.Context, h *shelves) error {
	for c, read := range h.read {
		field := strconv.Itoa(c)
		b := d.client.B()
		commands := rueidis.Commands{
			b.Hset().Key(d.key("unread:reader")).FieldValue().
				FieldValue(field, strconv.Itoa(h.messages-int(read))).Build(),
			b.Set().Key(d.key("head:" + field)).Value(strconv.Itoa(h.messages)).Build(),
			b.Hset().Key(d.key("read:reader")).FieldValue().
				FieldValue(field, strconv.FormatUint(uint64(read), 10)).Build(),
		}
		for n := range h.messages {
			commands = append(commands, d.zadd("log:"+field, n+1))
		}
		if err := d.pipelined(ctx, commands); err != nil {
			return fmt.Errorf("fill Redis: %w", err)
		}
	}
	return nil
}

func (d *redis) zadd(key string, revision int) rueidis.Completed {
	return d.client.B().Zadd().Key(d.key(key)).ScoreMember().
		ScoreMember(float64(revision), "message-"+strconv.Itoa(revision)).Build()
}

// increments are one for each member of the channel but the author.
func (d *redis) increments() rueidis.Commands {
	commands := make(rueidis.Commands, 0, d.members)
	for m := 1; m < d.members; m++ {
		commands = append(commands, d.client.B().Hincrby().Key(d.key("unread:"+strconv.Itoa(m))).
			Field("stage").Increment(1).Build())
	}
	return commands
}

// kept is what a member's hash of counts says.
func (d *redis) kept(ctx context.Context) (map[string]int64, error) {
	return d.client.Do(ctx, d.client.B().Hgetall().Key(d.key("unread:reader")).Build()).AsIntMap()
}

// derived subtracts cursors from heads, in one round trip.
func (d *redis) derived(ctx context.Context) (map[string]int64, error) {
	keys := make([]string, crowdScopes)
	for c := range keys {
		keys[c] = d.key("head:" + strconv.Itoa(c))
	}
	res := d.client.DoMulti(ctx,
		d.client.B().Hgetall().Key(d.key("read:reader")).Build(),
		d.client.B().Mget().Key(keys...).Build())
	cursors, err1 := res[0].AsIntMap()
	heads, err2 := res[1].AsIntSlice()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	counts := make(map[string]int64, crowdScopes)
	for c, head := range heads {
		field := strconv.Itoa(c)
		counts[field] = head - cursors[field]
	}
	return counts, nil
}

// ranged counts each sorted set above the cursor, which the client knows.
func (d *redis) ranged(ctx context.Context, h *shelves, pipelined bool) (map[string]int64, error) {
	counts := make(map[string]int64, crowdScopes)
	commands := make(rueidis.Commands, 0, crowdScopes)
	for c, read := range h.read {
		commands = append(commands, d.client.B().Zcount().Key(d.key("log:"+strconv.Itoa(c))).
			Min("("+strconv.FormatUint(uint64(read), 10)).Max("+inf").Build())
	}
	var results []rueidis.RedisResult
	if pipelined {
		results = d.client.DoMulti(ctx, commands...)
	} else {
		for _, c := range commands {
			results = append(results, d.client.Do(ctx, c))
		}
	}
	for c, res := range results {
		n, err := res.AsInt64()
		if err != nil {
			return nil, err
		}
		counts[strconv.Itoa(c)] = n
	}
	return counts, nil
}

// runRedis measures messages, counts and reads against Redis.
func runRedis(ctx context.Context, r *bench.Run) (err error) {
	s, err := openShop(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	h, err := s.stockShelves(ctx, r, bench.Pick(r.Scale, 10, 1_000, 1_000))
	if err != nil {
		return err
	}
	d, err := openRedis(r.Against["redis"])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	d.members = bench.Pick(r.Scale, 200, 1_000, 1_000)
	if err := errors.Join(s.gather(ctx, d.members), d.fill(ctx, h)); err != nil {
		return err
	}
	if err := d.compare(ctx, r, h); err != nil {
		return err
	}
	request, err := s.get(reader, unreadPath)
	if err != nil {
		return err
	}
	c, err := s.dial(ctx, request)
	if err != nil {
		return err
	}
	defer c.close()
	hall, err := openHall(ctx, r, 0, d.members)
	if err != nil {
		return err
	}
	defer hall.runtime.Close()
	r.Figure(redisMessage).Note("The channel has %d members. Redis keeps nothing on disk; Tidemark "+
		"is shown durable, and in memory alone.", d.members)
	r.Figure(redisRead).Note("Redis keeps nothing on disk, Tidemark answers when it is durable.")
	w := &rivals{shop: s, client: c, n: bench.Pick(r.Scale, 5, 100, 300)}
	return r.Each(ctx, func(ctx context.Context, round int) error {
		return errors.Join(w.redisMessages(ctx, r, d, hall), w.redisCounts(ctx, r, d, h),
			w.redisReads(ctx, r, d))
	})
}

// compare checks that every way to count in Redis says what the shelves have.
func (d *redis) compare(ctx context.Context, r *bench.Run, h *shelves) error {
	kept, err1 := d.kept(ctx)
	derived, err2 := d.derived(ctx)
	ranged, err3 := d.ranged(ctx, h, true)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	var wrong []string
	for c, read := range h.read {
		field, want := strconv.Itoa(c), int64(h.messages)-int64(read)
		if kept[field] != want || derived[field] != want || ranged[field] != want {
			wrong = append(wrong, fmt.Sprintf("channel %d in Redis: %d, %d, %d, want %d",
				c, kept[field], derived[field], ranged[field], want))
		}
	}
	return r.Check("counts of Redis, three ways", 3*len(h.read), wrong)
}

// timing is a way to do something, with its name in the report.
type timing struct {
	name string
	n    int
	fn   func() error
}

// measure adds a series for each way.
func measure(f *bench.Figure, ways []timing) error {
	for _, w := range ways {
		took, err := each(w.n, w.fn)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		f.Add(w.name, bench.Nanoseconds, took)
	}
	return nil
}

func (w *rivals) redisMessages(ctx context.Context, r *bench.Run, d *redis, h *hall) error {
	next := func() int { d.posted++; return d.posted }
	return measure(r.Figure(redisMessage), []timing{
		{"Tidemark, durable", w.n, func() error { return w.post(ctx) }},
		{"Tidemark, memory alone", 10 * w.n, func() error { _, err := h.post(0); return err }},
		{"HINCRBY of each member, pipelined", max(2, w.n/10), func() error {
			return d.pipelined(ctx, d.increments())
		}},
		{"HINCRBY of each member, one by one", max(1, w.n/50), func() error {
			return d.single(ctx, d.increments())
		}},
		{"INCR of the head", w.n, func() error {
			return d.client.Do(ctx, d.client.B().Incr().Key(d.key("head:stage")).Build()).Error()
		}},
		{"ZADD", w.n, func() error {
			return d.client.Do(ctx, d.zadd("log:stage", next())).Error()
		}},
	})
}

func (w *rivals) redisCounts(ctx context.Context, r *bench.Run, d *redis, h *shelves) error {
	return measure(r.Figure(redisCounts), []timing{
		{"Tidemark over HTTP", w.n, w.overHTTP},
		{"HGETALL of counts", w.n, func() error { _, err := d.kept(ctx); return err }},
		{"HGETALL of cursors and MGET of heads", w.n, func() error {
			_, err := d.derived(ctx)
			return err
		}},
		{"ZCOUNT of each channel, pipelined", w.n, func() error {
			_, err := d.ranged(ctx, h, true)
			return err
		}},
		{"ZCOUNT of each channel, one by one", max(1, w.n/10), func() error {
			_, err := d.ranged(ctx, h, false)
			return err
		}},
	})
}

func (w *rivals) redisReads(ctx context.Context, r *bench.Run, d *redis) error {
	n, read := 0, readstate.Revision(0)
	if err := w.post(ctx); err != nil {
		return err
	}
	row, err := w.ws.Row(ctx, officeMember(1), stage)
	if err != nil {
		return err
	}
	read = row.Ranks.Head - min(row.Ranks.Head, readstate.Revision(w.n))
	set := func() rueidis.Completed {
		n++
		return d.client.B().Hset().Key(d.key("read:1")).FieldValue().
			FieldValue("stage", strconv.Itoa(n)).Build()
	}
	return measure(r.Figure(redisRead), []timing{
		{"Tidemark, durable", int(min(row.Ranks.Head-read, readstate.Revision(w.n))), func() error {
			read++
			_, err := w.ws.MarkRead(ctx, facts.MarkRead{
				Scope: stage, Member: officeMember(1), Revision: &read, Trusted: true,
			})
			return err
		}},
		{"HSET", w.n, func() error { return d.client.Do(ctx, set()).Error() }},
		{"HSET, 100 pipelined", max(1, w.n/10), func() error {
			commands := make(rueidis.Commands, 100)
			for i := range commands {
				commands[i] = set()
			}
			return d.pipelined(ctx, commands)
		}},
	})
}
