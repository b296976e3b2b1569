package redisdots

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/substrate"
)

const (
	// MaxMembers bounds those of one workspace whose dots are wanted.
	MaxMembers = 10_000
	// MaxWorkspaces bounds those of which dots are wanted.
	MaxWorkspaces = 100_000
	// MaxNumber is the highest term and LSN that the server's scripts compare exactly.
	MaxNumber = 1 << 53

	fenceKeep = 30 * 24 * time.Hour
)

// ErrRange means that a term or an LSN is too high to be compared by the server.
var ErrRange = errors.New("a term or commit is above 2^53")

// Dots is a substrate.Store.
type Dots struct {
	option rueidis.ClientOption

	making    sync.Mutex // one connection is made at a time
	client    atomic.Pointer[rueidis.Client]
	closed    atomic.Bool
	malformed atomic.Uint64
}

var _ substrate.Store = (*Dots)(nil)

// New makes a store that is not connected yet.
func New(option rueidis.ClientOption) *Dots {
	option.DisableCache = true // what is read was written a moment ago
	option.DisableRetry = true // nothing is worth waiting for
	if option.ConnWriteTimeout == 0 {
		option.ConnWriteTimeout = 2 * time.Second
	}
	if option.Dialer.Timeout == 0 {
		option.Dialer.Timeout = 2 * time.Second
	}
	return &Dots{option: option}
}

// Malformed counts what was found in the server and not understood.
func (d *Dots) Malformed() uint64 { return d.malformed.Load() }

// Close ends the connections.
func (d *Dots) Close() {
	d.closed.Store(true)
	d.making.Lock()
	defer d.making.Unlock()
	if c := d.client.Swap(nil); c != nil {
		(*c).Close()
	}
}

func (d *Dots) get() (rueidis.Client, error) {
	if c := d.client.Load(); c != nil {
		return *c, nil
	}
	return nil, substrate.ErrAway
}

// connect makes the client, which from then on makes its connections anew by itself.
func (d *Dots) connect() (rueidis.Client, error) {
	d.making.Lock() // Listen alone waits for it
	defer d.making.Unlock()
	if d.closed.Load() {
		return nil, substrate.ErrAway
	}
	if c, err := d.get(); err == nil {
		return c, nil
	}
	c, err := rueidis.NewClient(d.option)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", substrate.ErrAway, err)
	}
	d.client.Store(&c)
	return c, nil
}

// A set of what is wanted, until when. What is beyond its bound is left out and counted.
//
//nolint:dupword // blocks of Lua end so
var wantScript = rueidis.NewLuaScript(`
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'zset' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local n, refused = redis.call('ZCARD', KEYS[1]), 0
for i = 3, #ARGV do
  if n < tonumber(ARGV[2]) or redis.call('ZSCORE', KEYS[1], ARGV[i]) then
    n = n + redis.call('ZADD', KEYS[1], now + tonumber(ARGV[1]), ARGV[i])
  else
    refused = refused + 1
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return refused
`)

// Want implements substrate.Store.
func (d *Dots) Want(
	ctx context.Context, keys []substrate.Key, keep time.Duration,
) (refused int, err error) {
	c, err := d.get()
	if err != nil {
		return 0, err
	}
	var spaces []readstate.WorkspaceID
	members := map[readstate.WorkspaceID][]readstate.MemberID{}
	for _, k := range keys {
		if members[k.Workspace] == nil {
			spaces = append(spaces, k.Workspace)
		}
		members[k.Workspace] = append(members[k.Workspace], k.Member)
	}
	ms := strconv.FormatInt(keep.Milliseconds(), 10)
	index := []string{ms, strconv.Itoa(MaxWorkspaces)}
	var sets []rueidis.LuaExec
	var said rueidis.Commands
	for _, w := range spaces {
		index = append(index, string(w))
		args := []string{ms, strconv.Itoa(MaxMembers)}
		for _, m := range members[w] {
			args = append(args, string(m))
		}
		sets = append(sets, rueidis.LuaExec{Keys: []string{wantedKey(w)}, Args: args})
		said = append(said,
			c.B().Publish().Channel(wantsChannel).Message(wantsText(w, members[w])).Build())
	}
	sets = append(sets, rueidis.LuaExec{Keys: []string{wantedIndex}, Args: index})
	for _, res := range wantScript.ExecMulti(ctx, c, sets...) {
		n, err := res.AsInt64()
		if err != nil {
			return 0, fmt.Errorf("want dots: %w", err)
		}
		refused += int(n)
	}
	for _, res := range c.DoMulti(ctx, said...) { // when it can be found: who hears it too late looks
		if err := res.Error(); err != nil {
			return refused, fmt.Errorf("want dots: %w", err)
		}
	}
	return refused, nil
}

var wantedScript = rueidis.NewLuaScript(`
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
return redis.call('ZRANGE', KEYS[1], '(' .. now, '+inf', 'BYSCORE', 'LIMIT', 0, ARGV[1])
`)

func (d *Dots) wanted(ctx context.Context, key string, limit int) ([]string, error) {
	c, err := d.get()
	if err != nil {
		return nil, err
	}
	out, err := wantedScript.Exec(ctx, c, []string{key}, []string{strconv.Itoa(limit)}).AsStrSlice()
	if err != nil {
		return nil, fmt.Errorf("read what dots are wanted: %w", err)
	}
	return out, nil
}

// Wanted implements substrate.Store.
func (d *Dots) Wanted(ctx context.Context, limit int) ([]readstate.WorkspaceID, error) {
	texts, err := d.wanted(ctx, wantedIndex, limit)
	out := make([]readstate.WorkspaceID, len(texts))
	for i, text := range texts {
		out[i] = readstate.WorkspaceID(text)
	}
	return out, err
}

// WantedIn implements substrate.Store.
func (d *Dots) WantedIn(
	ctx context.Context, w readstate.WorkspaceID, limit int,
) ([]readstate.MemberID, error) {
	texts, err := d.wanted(ctx, wantedKey(w), limit)
	out := make([]readstate.MemberID, len(texts))
	for i, text := range texts {
		out[i] = readstate.MemberID(text)
	}
	return out, err
}

// The term of the workspace decides first, then the dot itself, for a server that has lost the term.
//
//nolint:dupword // blocks of Lua end so
var publishScript = rueidis.NewLuaScript(`
local term = tonumber(ARGV[1])
local fence = redis.pcall('GET', KEYS[1])
fence = type(fence) == 'string' and string.match(fence, '^%d+$') and tonumber(fence) or 0
if term < fence then return #KEYS - 1 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
local refused = 0
for i = 2, #KEYS do
  local value, said = ARGV[2 * i], ARGV[2 * i + 1]
  local lsn, rest = string.match(value, '^v1 %d+ (%d+) (.*)$')
  local was = redis.pcall('GET', KEYS[i])
  local t, l, r
  if type(was) == 'string' then t, l, r = string.match(was, '^v1 (%d+) (%d+) (%d %d+ %d+ %d+)$') end
  t, l = tonumber(t), tonumber(l)
  if t and l and (t > term or t == term and l > tonumber(lsn)) then
    refused = refused + 1
  else
    redis.call('SET', KEYS[i], value, 'PX', ARGV[3])
    if r ~= rest or t ~= term then redis.call('PUBLISH', 'tidemark:dots', said) end
  end
end
return refused
`)

// Publish implements substrate.Store.
func (d *Dots) Publish(
	ctx context.Context, dots []substrate.Dot, keep time.Duration,
) (refused int, err error) {
	c, err := d.get()
	if err != nil || len(dots) == 0 {
		return 0, err
	}
	w, term := dots[0].Workspace, dots[0].Term
	keys := []string{termKey(w)}
	args := []string{
		strconv.FormatUint(term, 10), strconv.FormatInt(fenceKeep.Milliseconds(), 10),
		strconv.FormatInt(keep.Milliseconds(), 10),
	}
	for i := range dots {
		dot := &dots[i]
		if dot.Workspace != w || dot.Term != term {
			panic("redisdots: dots of two workspaces or terms in one call")
		}
		if term > MaxNumber || dot.LSN > MaxNumber {
			return 0, fmt.Errorf("publish dots of %q: %w", w, ErrRange)
		}
		keys = append(keys, dotKey(dot.Key))
		args = append(args, valueText(dot), dotText(dot))
	}
	n, err := publishScript.Exec(ctx, c, keys, args).AsInt64()
	if err != nil {
		return 0, fmt.Errorf("publish dots of %q: %w", w, err)
	}
	return int(n), nil
}

// Read implements substrate.Store.
func (d *Dots) Read(ctx context.Context, keys []substrate.Key) ([]substrate.Dot, error) {
	c, err := d.get()
	if err != nil {
		return nil, err
	}
	commands := make(rueidis.Commands, len(keys))
	for i, k := range keys {
		commands[i] = c.B().Get().Key(dotKey(k)).Build()
	}
	var out []substrate.Dot
	for i, res := range c.DoMulti(ctx, commands...) {
		text, err := res.ToString()
		if rueidis.IsRedisNil(err) {
			continue
		}
		if _, answered := rueidis.IsRedisErr(err); err != nil && !answered {
			return nil, fmt.Errorf("read dots: %w", err)
		}
		dot, ok := parseValue(keys[i], text)
		if err != nil || !ok { // another type, or somebody else's text
			d.malformed.Add(1)
			continue
		}
		out = append(out, dot)
	}
	return out, nil
}

// Listen implements substrate.Store.
func (d *Dots) Listen(ctx context.Context, ear substrate.Ear) error {
	c, err := d.connect()
	if err != nil {
		return err
	}
	line, hangUp := c.Dedicate()
	defer hangUp()
	lost := line.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage: func(m rueidis.PubSubMessage) { d.hear(ear, m) },
	})
	var channels []string
	if ear.Wanted != nil {
		channels = append(channels, wantsChannel)
	}
	if ear.Dots != nil {
		channels = append(channels, dotsChannel)
	}
	if err := line.Do(ctx, line.B().Subscribe().Channel(channels...).Build()).Error(); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if ear.Begun != nil {
		ear.Begun()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-lost:
		return fmt.Errorf("listen: %w", errors.Join(substrate.ErrAway, err))
	}
}

func (d *Dots) hear(ear substrate.Ear, m rueidis.PubSubMessage) {
	switch m.Channel {
	case wantsChannel:
		if keys, ok := parseWants(m.Message); ok {
			ear.Wanted(keys)
			return
		}
	case dotsChannel:
		if dot, ok := parseDot(m.Message); ok {
			ear.Dots([]substrate.Dot{dot})
			return
		}
	}
	d.malformed.Add(1)
}
