package intake

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/tidemark-im/tidemark/readstate"
)

// claims is everything that an event says in numbers and texts. What rows cannot hold is refused when
// it is told: found after a restart, it would be a damaged row.
type claims struct {
	member      readstate.MemberID // whom or by whom the event is; never empty
	members     []readstate.MemberID
	scopes      []readstate.ScopeID
	texts       []string
	revisions   []readstate.Revision
	seqs        []readstate.Seq
	generations []uint64
	kind        readstate.ScopeType
	level       readstate.Level
	until       int64
}

// valid refuses what no program can mean, whatever memory holds.
func valid(ev Event) error {
	c := claims{member: "-"} // an event of a scope alone
	if err := c.of(ev); err != nil {
		return err
	}
	if _, ok := ev.(BlocksChanged); !ok && ev.place() == "" {
		return fmt.Errorf("%w: no scope", ErrInvalid)
	}
	c.scopes = append(c.scopes, ev.place())
	return c.check()
}

// of collects what an event claims. An error is of the event's own.
func (c *claims) of(ev Event) error {
	switch ev := ev.(type) {
	case MessageStored:
		c.member, c.kind, c.texts = ev.Author, ev.Type, []string{ev.ID}
		c.members = slices.Concat([]readstate.MemberID{ev.NotifyPrincipal}, ev.Mentions, ev.Recipients)
		c.revisions, c.seqs = []readstate.Revision{ev.Revision}, []readstate.Seq{ev.Seq}
		c.generations = []uint64{ev.Generation, ev.RosterGeneration}
		return numbered(ev.Seq)
	case NonMessageActivityStored:
		c.member, c.kind, c.members = ev.Actor, ev.Type, ev.Recipients
		c.seqs, c.generations = []readstate.Seq{ev.Seq}, []uint64{ev.RosterGeneration}
		return numbered(ev.Seq)
	case MessageRewound:
		c.facts(ev.Removed)
		c.generations = []uint64{ev.Generation}
	case MessageEdited:
		c.facts([]MessageFacts{ev.Was})
		c.members, c.generations = append(c.members, ev.Mentions...), []uint64{ev.Generation}
	case ScopeTrimmed:
		c.facts(ev.Trimmed)
		c.revisions = append(c.revisions, ev.Floor)
	case ScopeStateChanged:
		c.kind, c.texts, c.scopes = ev.Type, []string{ev.Name}, []readstate.ScopeID{ev.Parent}
		c.revisions = []readstate.Revision{ev.Head}
	case BlocksChanged:
		return c.ofBlocks(ev)
	default:
		c.ofMember(ev)
	}
	return nil
}

// ofMember collects from an event about one member's row.
func (c *claims) ofMember(ev Event) {
	switch ev := ev.(type) {
	case ReadCursorAdvanced:
		c.member, c.revisions = ev.Member, []readstate.Revision{ev.Revision, ev.Head}
	case ActivityReadCursorAdvanced:
		c.member, c.seqs = ev.Member, []readstate.Seq{ev.Seq}
	case ManualUnreadSet:
		c.member, c.revisions = ev.Member, []readstate.Revision{ev.From}
		c.generations = []uint64{ev.Generation}
	case ManualUnreadCleared:
		c.member, c.generations = ev.Member, []uint64{ev.Generation}
	case NotificationPolicyChanged:
		c.member, c.level, c.until = ev.Member, ev.Level, ev.Until
		c.generations = []uint64{ev.Generation}
	case MembershipChanged:
		c.member, c.revisions = ev.Member, []readstate.Revision{ev.EffectiveFrom}
		c.generations = []uint64{ev.Generation, ev.RosterGeneration}
	case MessageVisibilityChanged:
		c.member, c.generations = ev.Member, []uint64{ev.Generation}
	}
}

// ofBlocks also refuses a list that no member can have.
func (c *claims) ofBlocks(ev BlocksChanged) error {
	switch {
	case len(ev.Blocks) > MaxBlocks:
		return fmt.Errorf("%w: %d blocks, at most %d", ErrInvalid, len(ev.Blocks), MaxBlocks)
	case slices.Contains(ev.Blocks, "") || slices.Contains(ev.Blocks, ev.Member):
		return fmt.Errorf("%w: a block of nobody, or of oneself", ErrInvalid)
	}
	c.member, c.members = ev.Member, slices.Clone(ev.Blocks)
	c.generations = []uint64{ev.Generation}
	for i := range ev.Written {
		w := &ev.Written[i]
		c.scopes = append(c.scopes, w.Scope)
		c.facts(w.Entries)
		for _, a := range w.Activities {
			c.members = append(append(c.members, a.Actor), a.Recipients...)
			c.seqs = append(c.seqs, a.Seq)
		}
	}
	return nil
}

// valid refuses a member of a roster whom no row can hold.
func (m *RosterMember) valid() error {
	c := claims{
		member: m.ID, revisions: []readstate.Revision{m.EffectiveFrom}, level: m.Level, until: m.Until,
	}
	return c.check()
}

func (c *claims) facts(list []MessageFacts) {
	for i := range list {
		x := &list[i]
		c.members = append(c.members, x.Author, x.NotifyPrincipal)
		c.members = append(append(c.members, x.Mentions...), x.Recipients...)
		c.revisions, c.seqs = append(c.revisions, x.Revision), append(c.seqs, x.Seq)
	}
}

func numbered(seq readstate.Seq) error {
	if seq == 0 {
		return fmt.Errorf("%w: no seq", ErrInvalid)
	}
	return nil
}

func (c *claims) check() error {
	if c.member == "" {
		return fmt.Errorf("%w: no member", ErrInvalid)
	}
	for _, m := range append(c.members, c.member) {
		if !utf8.ValidString(string(m)) {
			return fmt.Errorf("%w: member %q is not UTF-8", ErrInvalid, m)
		}
	}
	for _, s := range c.scopes {
		if !utf8.ValidString(string(s)) {
			return fmt.Errorf("%w: scope %q is not UTF-8", ErrInvalid, s)
		}
	}
	for _, text := range c.texts {
		if !utf8.ValidString(text) {
			return fmt.Errorf("%w: %q is not UTF-8", ErrInvalid, text)
		}
	}
	for _, r := range c.revisions {
		if r > readstate.MaxCounter {
			return fmt.Errorf("%w: revision %d", ErrInvalid, r)
		}
	}
	for _, q := range c.seqs {
		if q > readstate.MaxCounter {
			return fmt.Errorf("%w: seq %d", ErrInvalid, q)
		}
	}
	for _, g := range c.generations {
		if g > math.MaxInt64 {
			return fmt.Errorf("%w: generation %d", ErrInvalid, g)
		}
	}
	if _, ok := readstate.ParseScopeType(c.kind.String()); !ok && c.kind != 0 {
		return fmt.Errorf("%w: type %d of a scope", ErrInvalid, c.kind)
	}
	if _, ok := readstate.ParseLevel(c.level.String()); !ok || c.until < 0 {
		return fmt.Errorf("%w: level %d until %d", ErrInvalid, c.level, c.until)
	}
	return nil
}
