package replay

import (
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/internal/trace"
	"github.com/tidemark-im/tidemark/readstate"
)

// Plan is what one row of a trace becomes, in the order of the fields.
type Plan struct {
	Channel *facts.PutScope // where the channel is new
	Joins   []facts.PutMembership
	Thread  *facts.PutScope // where the row is the first reply of its topic
	Post    facts.Post
}

// Planner turns rows into operations. It is a function of the rows it was given, in memory that
// grows with the channels, topics and memberships of the trace. The zero value is not ready; use
// NewPlanner.
type Planner struct {
	rows   int
	heads  map[readstate.ScopeID]readstate.Revision
	joined map[membership]struct{}
	roots  map[trace.Topic]string
}

type membership struct {
	channel trace.Channel
	user    trace.User
}

// NewPlanner starts before the first row.
func NewPlanner() *Planner {
	return &Planner{
		heads:  map[readstate.ScopeID]readstate.Revision{},
		joined: map[membership]struct{}{},
		roots:  map[trace.Topic]string{},
	}
}

// Next plans the next row.
func (p *Planner) Next(row trace.Row) Plan {
	p.rows++
	var plan Plan
	channel := channelID(row.Channel)
	if _, ok := p.heads[channel]; !ok {
		p.heads[channel] = 0
		plan.Channel = &facts.PutScope{ID: channel, Type: readstate.Channel}
	}
	plan.Joins = p.join(row)
	scope, message := channel, fmt.Sprintf("m%d", p.rows)
	if root, ok := p.roots[row.Topic]; !ok {
		p.roots[row.Topic] = message
	} else {
		scope = threadID(row.Topic)
		if _, ok := p.heads[scope]; !ok {
			plan.Thread = &facts.PutScope{
				ID: scope, Type: readstate.Thread, Parent: channel, RootMessage: root,
			}
		}
	}
	seen := p.heads[scope]
	p.heads[scope]++
	plan.Post = facts.Post{
		Scope: scope, OpID: fmt.Sprintf("row-%d", p.rows), Author: memberID(row.Sender),
		MessageID: message, Everyone: row.Everyone, AdvanceCursor: &seen,
	}
	for _, user := range row.Mentions {
		plan.Post.Mentions = append(plan.Post.Mentions, memberID(user))
	}
	return plan
}

// join plans the first membership of the sender and of everyone named.
func (p *Planner) join(row trace.Row) []facts.PutMembership {
	var out []facts.PutMembership
	for _, user := range slices.Concat([]trace.User{row.Sender}, row.Mentions) {
		key := membership{row.Channel, user}
		if _, ok := p.joined[key]; ok {
			continue
		}
		p.joined[key] = struct{}{}
		out = append(out, facts.PutMembership{
			Scope: channelID(row.Channel), Member: memberID(user), CreateMember: true,
		})
	}
	return out
}

func channelID(c trace.Channel) readstate.ScopeID {
	return readstate.ScopeID(fmt.Sprintf("c%d", c))
}

func threadID(t trace.Topic) readstate.ScopeID {
	return readstate.ScopeID(fmt.Sprintf("t%d", t))
}

func memberID(u trace.User) readstate.MemberID {
	return readstate.MemberID(fmt.Sprintf("u%d", u))
}
