package trace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Limits of a generated trace.
const (
	MinMessages = 1
	MaxMessages = 10_000_000
)

// Settings say what to generate. Equal settings give equal traces.
type Settings struct {
	Messages int // MinMessages to MaxMessages
	Seed     uint64
}

const (
	firstSecond = 1_600_000_000 // a Sunday in 2020
	hourSeconds = 3_600
	daySeconds  = 24 * hourSeconds
	// A channel keeps this many topics alive; what falls out of the list is revived rarely.
	openTopics = 12
	// Chances in percent or per ten thousand, near those of a public community chat.
	newTopicPercent    = 6
	revivePercent      = 2
	sameTopicPercent   = 62
	participantPercent = 74
	mentionPercent     = 11
	everyonePer10k     = 6
)

// quiet holds for each hour of a day how long a message is waited for, in seconds on average.
var quiet = [24]int{
	420, 560, 700, 820, 900, 820, 640, 460, 320, 250, 220, 210,
	220, 200, 190, 180, 190, 200, 190, 180, 200, 240, 290, 350,
}

// Generate makes a trace and hands it to emit row by row. It ends with emit's first error.
func Generate(s Settings, emit func(Row) error) error {
	if s.Messages < MinMessages || s.Messages > MaxMessages {
		return fmt.Errorf("generate trace: messages is %d, want %d to %d",
			s.Messages, MinMessages, MaxMessages)
	}
	c := newChat(s)
	for range s.Messages {
		if err := emit(c.next()); err != nil {
			return err
		}
	}
	return nil
}

// chat is the state of the imagined community.
type chat struct {
	rng      *rand.Rand
	now      int64 // seconds since 1970
	channels []room
	users    int // who has come so far; newcomers arrive all the time
	target   int // users at the end
	written  int
	total    int
	topics   []talk
}

// room is a channel with the topics that people are likely to go on with, newest last.
type room struct {
	open []Topic
	all  []Topic
}

// talk is a topic with those who took part, in the order of their first message.
type talk struct {
	people []User
}

func newChat(s Settings) *chat {
	size := float64(s.Messages)
	return &chat{
		rng:      rand.New(rand.NewPCG(s.Seed, 0x7469646d61726b)),
		now:      firstSecond,
		channels: make([]room, max(1, min(60, int(math.Sqrt(size)/6)))),
		users:    min(3, s.Messages),
		target:   max(3, int(3.6*math.Sqrt(size))),
		total:    s.Messages,
	}
}

func (c *chat) next() Row {
	c.arrive()
	channel := Channel(c.skewed(len(c.channels), 5))
	topic, opened := c.topic(channel)
	sender := c.sender(topic)
	row := Row{
		At: c.tick(), Channel: channel, Topic: topic, Sender: sender, Length: c.length(),
	}
	talk := &c.topics[topic]
	switch {
	case c.rng.IntN(10_000) < everyonePer10k:
		row.Everyone = true
	case c.percent(mentionPercent):
		row.Mentions = c.mentions(talk, sender, opened)
	}
	if !slices.Contains(talk.people, sender) {
		talk.people = append(talk.people, sender)
	}
	c.written++
	return row
}

// arrive lets newcomers in, so that the last of them come shortly before the end.
func (c *chat) arrive() {
	due := 3 + (c.target-3)*c.written/c.total
	c.users = max(c.users, due)
}

// topic chooses what the message is about: a new topic, or one that the channel is at.
func (c *chat) topic(channel Channel) (t Topic, opened bool) {
	r := &c.channels[channel]
	if len(r.open) == 0 || c.percent(newTopicPercent) {
		t = Topic(len(c.topics))
		c.topics = append(c.topics, talk{})
		r.all = append(r.all, t)
		r.open = append(r.open, t)
		if len(r.open) > openTopics {
			r.open = slices.Delete(r.open, 0, 1)
		}
		return t, true
	}
	if c.percent(revivePercent) {
		return r.all[c.rng.IntN(len(r.all))], false
	}
	at := len(r.open) - 1
	if !c.percent(sameTopicPercent) {
		at -= c.skewed(len(r.open), 3)
	}
	t = r.open[at]
	r.open = append(slices.Delete(r.open, at, at+1), t)
	return t, false
}

// sender is usually somebody who is in the conversation already, most often a recent one.
func (c *chat) sender(t Topic) User {
	people := c.topics[t].people
	if len(people) > 0 && c.percent(participantPercent) {
		return people[len(people)-1-c.skewed(len(people), 3)]
	}
	return User(c.skewed(c.users, 6))
}

// mentions names mostly people of the conversation, and now and then the sender too.
func (c *chat) mentions(t *talk, sender User, opened bool) []User {
	count := 1
	for count < 6 && c.percent(16) {
		count++
	}
	var out []User
	for range count {
		user := User(c.skewed(c.users, 4))
		if !opened && len(t.people) > 0 && c.percent(70) {
			user = t.people[c.rng.IntN(len(t.people))]
		}
		if !slices.Contains(out, user) && (user != sender || c.percent(20)) {
			out = append(out, user)
		}
	}
	return out
}

// tick moves the clock.
func (c *chat) tick() int64 {
	wait := quiet[c.now%daySeconds/hourSeconds]
	if day := c.now / daySeconds % 7; day == 2 || day == 3 { // 1970 began on a Thursday
		wait *= 2
	}
	c.now += c.rng.Int64N(2 * int64(wait))
	return c.now
}

// length is skewed to the short: most messages are a line, a few are pages.
func (c *chat) length() int {
	n := 8 + c.rng.IntN(120)
	for n < 60_000 && c.percent(40) {
		n += n/2 + c.rng.IntN(n)
	}
	return n
}

// skewed returns 0 to n-1, small numbers more often the more halves the power has. Products and
// square roots are rounded alike on every machine; sums of products are not.
func (c *chat) skewed(n, halves int) int {
	x := c.rng.Float64()
	y := 1.0
	for range halves / 2 {
		y *= x
	}
	if halves%2 == 1 {
		y *= math.Sqrt(x)
	}
	return min(n-1, int(y*float64(n)))
}

func (c *chat) percent(p int) bool { return c.rng.IntN(100) < p }
