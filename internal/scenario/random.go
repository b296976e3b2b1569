package scenario

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

const (
	// shownHistory is how many generated lines a failure prints.
	shownHistory = 40
	// settleEvery is after how many operations the listening devices are compared.
	settleEvery = 25
)

// gambler writes random lines of the language and keeps the tally of what they mean.
type gambler struct {
	rng      *rand.Rand
	names    *names
	tally    *tally
	scopes   []string
	members  []string
	posts    int
	lines    []string
	restarts bool
}

// playRandom plays generated lines, and recounts every row of every member after each.
func (w *world) playRandom(ctx context.Context, s *Statement) error {
	rounds, err := s.number("number")
	if err != nil {
		return err
	}
	seed := uint64(1)
	if value, ok := s.field("seed"); ok {
		if seed, err = strconv.ParseUint(value, 10, 64); err != nil {
			return err
		}
	}
	g := &gambler{rng: rand.New(rand.NewPCG(seed, 0)), names: newNames(), tally: newTally(),
		scopes: s.slots["scope"], members: s.slots["member"],
		restarts: w.runner.opts.Restart != nil}
	if err := g.begin(s.Line); err != nil {
		return err
	}
	if err := w.listenAll(ctx, g); err != nil {
		return err
	}
	for round := range rounds {
		line := g.next()
		g.lines = append(g.lines, line)
		err := w.playLine(ctx, g, s.Line, line)
		if err == nil && (line == "restart" || (round+1)%settleEvery == 0 || round+1 == rounds) {
			err = w.settleAll(ctx, g, line == "restart")
		}
		if err != nil {
			from := max(0, len(g.lines)-shownHistory)
			return fmt.Errorf("operation %d of seed %d: %s: %w\nafter\n  %s", round+1, seed,
				line, err, strings.Join(g.lines[from:], "\n  "))
		}
	}
	return nil
}

// listenAll gives every member a device that listens from the beginning to the end.
func (w *world) listenAll(ctx context.Context, g *gambler) error {
	for _, member := range g.members {
		d, err := w.newDevice("random-"+member, member)
		if err != nil {
			return err
		}
		if err := d.connect(ctx, w, ""); err != nil {
			return err
		}
	}
	return nil
}

// settleAll compares every device with the list, after resuming where a restart cut the stream.
func (w *world) settleAll(ctx context.Context, g *gambler, restarted bool) error {
	for _, member := range g.members {
		d := w.devices["random-"+member]
		if restarted {
			if err := w.connectAgain(ctx, d, d.position); err != nil {
				return err
			}
		}
		if err := w.settle(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) playLine(ctx context.Context, g *gambler, at int, line string) error {
	statement, err := parseStatement(g.names, at, line)
	if err != nil {
		return err
	}
	if err := w.play(ctx, &statement); err != nil {
		return err
	}
	return w.compareTally(ctx, g)
}

func (g *gambler) begin(line int) error {
	for _, member := range g.members {
		if err := g.names.declare(kindMember, member, line); err != nil {
			return err
		}
		g.tally.blocks[member] = map[string]bool{}
	}
	for _, scope := range g.scopes {
		if err := g.names.declare(kindScope, scope, line); err != nil {
			return err
		}
		g.tally.scopes[scope] = &tallyScope{members: map[string]*tallyMember{}}
		for _, member := range g.members {
			g.tally.join(scope, member)
		}
	}
	return nil
}

func pick[T any](g *gambler, from []T) T { return from[g.rng.IntN(len(from))] }

// next writes one line that the server must accept, and applies it to the tally.
func (g *gambler) next() string {
	for {
		scope, member := pick(g, g.scopes), pick(g, g.members)
		s := g.tally.scopes[scope]
		m := s.members[member]
		roll := g.rng.IntN(100)
		var line string
		switch {
		case roll < 40:
			line = g.post(scope, member, s, m)
		case roll < 56:
			line = g.read(scope, member, s, m)
		case roll < 66:
			line = g.unread(scope, member, s, m)
		case roll < 78:
			line = g.change(s)
		default:
			line = g.belong(roll, scope, member, s, m)
		}
		if line != "" {
			return line
		}
	}
}

func (g *gambler) post(scope, member string, s *tallyScope, m *tallyMember) string {
	if !m.joined {
		return ""
	}
	g.posts++
	p := &tallyPost{name: "p" + strconv.Itoa(g.posts), author: member}
	g.mention(p)
	s.posts = append(s.posts, p)
	return fmt.Sprintf("post %s %s in %s%s", member, p.name, scope, p.at())
}

// mention draws whom a post names: mostly nobody, sometimes one, seldom everyone.
func (g *gambler) mention(p *tallyPost) {
	p.mentions, p.everyone = nil, false
	switch g.rng.IntN(6) {
	case 0, 1:
		p.mentions = []string{pick(g, g.members)}
	case 2:
		p.everyone = true
	}
}

func (p *tallyPost) at() string {
	var b strings.Builder
	for _, name := range p.mentions {
		b.WriteString(" @" + name)
	}
	if p.everyone {
		b.WriteString(" @everyone")
	}
	return b.String()
}

// read draws a current read, which clears a manual mark, or one that missed it.
func (g *gambler) read(scope, member string, s *tallyScope, m *tallyMember) string {
	if !m.joined || len(s.posts) == 0 {
		return ""
	}
	revision := 1 + g.rng.IntN(len(s.posts))
	line := fmt.Sprintf("read %s %d in %s", member, revision, scope)
	m.read = max(m.read, revision)
	if m.manual && g.rng.IntN(3) == 0 {
		return line + " version=" + strconv.Itoa(m.version-1)
	}
	if m.manual && revision >= m.from { // a read below the start of the mark leaves it
		m.manual, m.from = false, 0
		m.version++
	}
	return line
}

func (g *gambler) unread(scope, member string, s *tallyScope, m *tallyMember) string {
	if !m.joined || len(s.posts) == 0 {
		return ""
	}
	from := g.rng.IntN(len(s.posts) + 1)
	if !m.manual || m.from != from {
		m.version++
	}
	m.manual, m.from = true, from
	if from == 0 {
		return fmt.Sprintf("unread %s in %s", member, scope)
	}
	return fmt.Sprintf("unread %s from %d in %s", member, from, scope)
}

// change deletes or edits a post that is still there.
func (g *gambler) change(s *tallyScope) string {
	if len(s.posts) == 0 {
		return ""
	}
	p := pick(g, s.posts)
	if p.deleted {
		return ""
	}
	if g.rng.IntN(2) == 0 {
		p.deleted = true
		return "delete " + p.name + " via=service"
	}
	g.mention(p)
	if p.at() == "" {
		return "edit " + p.name + " no-mentions via=service"
	}
	return "edit " + p.name + p.at() + " via=service"
}

// belong changes membership, level and blocks, and rarely restarts the server.
func (g *gambler) belong(roll int, scope, member string, s *tallyScope, m *tallyMember) string {
	other := pick(g, g.members)
	switch {
	case roll < 84 && m.joined:
		m.joined = false
		return fmt.Sprintf("leave %s %s", member, scope)
	case roll < 90 && !m.joined:
		g.tally.join(scope, member)
		return fmt.Sprintf("join %s %s", member, scope)
	case roll < 94 && m.joined:
		m.level = pick(g, []string{"all", "mentions", "none"})
		return fmt.Sprintf("level %s %s %s", member, scope, m.level)
	case roll < 97 && other != member && !g.tally.blocks[member][other]:
		g.tally.blocks[member][other] = true
		return fmt.Sprintf("block %s %s", member, other)
	case roll < 99 && other != member && g.tally.blocks[member][other]:
		delete(g.tally.blocks[member], other)
		return fmt.Sprintf("unblock %s %s", member, other)
	case roll == 99 && g.restarts && g.rng.IntN(4) == 0:
		return "restart"
	}
	return ""
}

// compareTally compares every member's list with the recount.
func (w *world) compareTally(ctx context.Context, g *gambler) error {
	for _, member := range g.members {
		listed, err := w.list(ctx, member)
		if err != nil {
			return err
		}
		for _, scope := range slices.Sorted(maps.Keys(g.tally.scopes)) {
			r, there := listed.Scopes[scope]
			if joined := g.tally.scopes[scope].members[member].joined; joined != there {
				return fmt.Errorf("%s joined %s: %t, listed: %t", member, scope, joined, there)
			} else if !joined {
				continue
			}
			want := g.tally.recount(scope, member)
			got := counts{int(r.Unread), int(r.Attention), r.ManualUnread, r.Shown,
				int(r.ShownUnread)}
			if want != got {
				return fmt.Errorf("%s %s: a recount gives %+v, the server says %+v %s",
					member, scope, want, got, r.brief())
			}
		}
	}
	return nil
}
