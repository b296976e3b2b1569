package readstate

// Message is what counting needs to know of one readable entry.
type Message struct {
	Revision Revision
	Everyone bool
}

// Role is what one member is to a message. Named and Recipient may hold beside the others.
type Role struct {
	Author    bool
	Principal bool // the message was sent on the member's behalf by another author
	Named     bool
	Recipient bool // frozen delivery of a targeted scope
}

// Neutral reports that the message counts neither for nor against the member.
func (r Role) Neutral(t ScopeType) bool { return t.NeutralWriters() && (r.Author || r.Principal) }

// direct reports a mention row that counts while the message is live.
func direct(t ScopeType, r Role, everyone bool) bool {
	if t.Targeted() && !r.Recipient {
		return false
	}
	return r.Named && !everyone && !r.Neutral(t)
}

// target reports a delivery row that counts while the message is live.
func target(t ScopeType, r Role) bool {
	return t.Targeted() && r.Recipient && !r.Neutral(t)
}

func one(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// Post counts a new message, whose revision is above every E.
func (p *Point) Post(t ScopeType, m Message, r Role) {
	p.OwnEveryone += one(r.Neutral(t) && m.Everyone)
	p.Direct += one(direct(t, r, m.Everyone))
	p.Targets += one(target(t, r))
}

// Remove takes a live message back. It changes nothing for a message at or below E or floor.
func (p *Point) Remove(t ScopeType, floor Revision, m Message, r Role) {
	if m.Revision <= p.Base(floor) {
		return
	}
	neutral := r.Neutral(t)
	p.OwnRemoved += one(neutral)
	p.OwnEveryone -= one(neutral && m.Everyone)
	p.Direct -= one(direct(t, r, m.Everyone))
	p.Targets -= one(target(t, r))
}

// Edit changes the mentions of a live message. It moves no rank and no unread, and changes
// nothing for a message at or below E or floor.
func (p *Point) Edit(t ScopeType, floor Revision, before, after Message, was, is Role) {
	if before.Revision <= p.Base(floor) {
		return
	}
	p.OwnEveryone += one(is.Neutral(t) && after.Everyone)
	p.OwnEveryone -= one(was.Neutral(t) && before.Everyone)
	p.Direct += one(direct(t, is, after.Everyone))
	p.Direct -= one(direct(t, was, before.Everyone))
}

// Post counts a new message of the blocked member of the pair for the blocker's role in it.
// The pair's AuthorHead is shared state of the scope and is raised by its owner.
func (b *Pair) Post(t ScopeType, m Message, r Role) {
	b.Overlap += one(r.Neutral(t))
	b.Direct += one(direct(t, r, m.Everyone))
	b.Targets += one(target(t, r))
	b.Everyone += one(m.Everyone && !r.Neutral(t))
}

// Remove takes a live message of the blocked member back; above says that it lies above the
// blocker's base.
func (b *Pair) Remove(t ScopeType, above bool, m Message, r Role) {
	if !above {
		return
	}
	b.Removed++
	b.Overlap -= one(r.Neutral(t))
	b.Direct -= one(direct(t, r, m.Everyone))
	b.Targets -= one(target(t, r))
	b.Everyone -= one(m.Everyone && !r.Neutral(t))
}

// Edit changes the mentions of a live message of the blocked member.
func (b *Pair) Edit(t ScopeType, above bool, before, after Message, was, is Role) {
	if !above {
		return
	}
	b.Direct += one(direct(t, is, after.Everyone))
	b.Direct -= one(direct(t, was, before.Everyone))
	b.Everyone += one(after.Everyone && !is.Neutral(t))
	b.Everyone -= one(before.Everyone && !was.Neutral(t))
}
