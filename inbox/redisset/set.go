package redisset

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/inbox"
	"github.com/tidemark-im/tidemark/readstate"
)

// ErrRange means that a position cannot be a score: scores are exact through 2^53.
var ErrRange = errors.New("position is above 2^53")

// MaxPosition is the highest position that is exact as a score.
const MaxPosition = 1 << 53

// keep is how long a summary stays that nobody writes to any more.
const keep = 30 * 24 * time.Hour

// Set is an inbox.Summary. It is safe for concurrent use.
type Set struct {
	client rueidis.Client
	epoch  string
}

var _ inbox.Summary = (*Set)(nil)

// New makes summaries of a new epoch. The client stays the caller's.
func New(client rueidis.Client) *Set {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails; see crypto/rand
	return &Set{client: client, epoch: hex.EncodeToString(b[:])}
}

func keysOf(m readstate.MemberKey) []string {
	key := "newly_unread:{" + strconv.FormatUint(uint64(m), 10) + "}"
	return []string{key, key + ":state"}
}

// The bound is exclusive. A number of senders that is not that of the set makes nothing known.
var readScript = rueidis.NewLuaScript(`
local s = redis.call('HMGET', KEYS[2], 'epoch', 'through', 'retractions', 'senders')
if s[1] ~= ARGV[1] or tonumber(s[4]) ~= redis.call('ZCARD', KEYS[1]) then return {} end
return {s[2], s[3], redis.call('ZRANGE', KEYS[1], '(' .. ARGV[2], '+inf', 'BYSCORE', 'WITHSCORES')}
`)

// Above implements inbox.Summary.
func (s *Set) Above(
	ctx context.Context, m readstate.MemberKey, above facts.Position,
) (inbox.Summarized, bool, error) {
	var out inbox.Summarized
	if above > MaxPosition {
		return out, false, nil
	}
	answer, err := readScript.Exec(ctx, s.client, keysOf(m),
		[]string{s.epoch, strconv.FormatUint(uint64(above), 10)}).ToArray()
	if err != nil {
		return out, false, fmt.Errorf("read summary of %d: %w", m, err)
	}
	if len(answer) != 3 {
		return out, false, nil
	}
	through, err := number(answer[0])
	if err != nil {
		return out, false, err
	}
	if out.Retractions, err = number(answer[1]); err != nil {
		return out, false, err
	}
	out.Through = facts.Position(through)
	pairs, err := answer[2].AsStrSlice()
	if err != nil {
		return out, false, fmt.Errorf("read summary of %d: %w", m, err)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		sender, err := strconv.ParseUint(pairs[i], 10, 64)
		if err != nil {
			return out, false, fmt.Errorf("read summary of %d: %w", m, err)
		}
		score, err := strconv.ParseFloat(pairs[i+1], 64)
		if err != nil {
			return out, false, fmt.Errorf("read summary of %d: %w", m, err)
		}
		out.Senders = append(out.Senders, facts.SenderPosition{
			Sender: readstate.MemberKey(sender), Position: facts.Position(score),
		})
	}
	return out, true, nil
}

func number(m rueidis.RedisMessage) (uint64, error) {
	text, err := m.ToString()
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(text, 10, 64)
}

// A summary that is not whole goes on from the one that is there, or is not taken.
var writeScript = rueidis.NewLuaScript(`
local epoch, from, through, retractions, whole, ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
if whole == '1' then
  redis.call('DEL', KEYS[1])
else
  local s = redis.call('HMGET', KEYS[2], 'epoch', 'through', 'retractions', 'senders')
  if s[1] ~= epoch or s[3] ~= retractions or tonumber(s[2]) < tonumber(from)
    or tonumber(s[4]) ~= redis.call('ZCARD', KEYS[1]) then return 0 end
  if tonumber(s[2]) > tonumber(through) then through = s[2] end -- another batch was faster
end
for i = 7, #ARGV, 2 do redis.call('ZADD', KEYS[1], 'GT', ARGV[i + 1], ARGV[i]) end
redis.call('HSET', KEYS[2], 'epoch', epoch, 'through', through, 'retractions', retractions,
  'senders', redis.call('ZCARD', KEYS[1]))
redis.call('PEXPIRE', KEYS[1], ttl)
redis.call('PEXPIRE', KEYS[2], ttl)
return 1
`)

// Put implements inbox.Summary.
func (s *Set) Put(
	ctx context.Context, m readstate.MemberKey, sum inbox.Summarized,
) (bool, error) {
	if sum.Through > MaxPosition {
		return false, fmt.Errorf("write summary of %d: %w: %d", m, ErrRange, sum.Through)
	}
	whole := "0"
	if sum.Whole {
		whole = "1"
	}
	args := []string{
		s.epoch, strconv.FormatUint(uint64(sum.From), 10),
		strconv.FormatUint(uint64(sum.Through), 10), strconv.FormatUint(sum.Retractions, 10), whole,
		strconv.FormatInt(keep.Milliseconds(), 10),
	}
	for _, sender := range sum.Senders {
		args = append(args, strconv.FormatUint(uint64(sender.Sender), 10),
			strconv.FormatUint(uint64(sender.Position), 10))
	}
	taken, err := writeScript.Exec(ctx, s.client, keysOf(m), args).AsInt64()
	if err != nil {
		return false, fmt.Errorf("write summary of %d: %w", m, err)
	}
	return taken == 1, nil
}
