package snapshot

import (
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/readstate"
)

// person is what a member is apart from any scope: whom they block, and whether somebody ever
// blocked them. Its row is the member's with an empty scope id.
type person struct {
	blocks   []readstate.MemberKey // ascending
	becoming []readstate.MemberKey // being blocked: rows have pairs for them that nobody counts yet
	blocked  bool                  // what they write is noted in its scope
	noted    bool                  // and the table says so
	broken   bool                  // the table's row is damaged: nobody knows whom they block
	order    int64                 // the generation of the last change of blocks
	lsn      readstate.LSN         // when it was
	sent     bool                  // blocked, as it is on its way to the table
	read     uint64                // the book's reads when one of them last looked here
	mark
}

// pairsWith reports that rows of the person have pairs for x.
func (p *person) pairsWith(x readstate.MemberKey) bool {
	if p == nil {
		return false
	}
	_, found := slices.BinarySearch(p.blocks, x)
	return found || slices.Contains(p.becoming, x)
}

// Person is what a book knows of a member apart from any scope.
type Person struct {
	Blocks     []readstate.MemberKey // ascending; shared, not to be changed
	Broken     bool                  // the table's row is damaged: the blocks are not known
	Generation int64                 // of the last change of blocks
}

// Person returns a member who was fetched.
func (b *Book) Person(m readstate.MemberKey) (Person, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.people[m]
	if p == nil {
		return Person{}, false
	}
	return Person{Blocks: p.blocks, Broken: p.broken, Generation: p.order}, true
}

// SetBlocks notes that the blocks are complete as they were applied just now, and their generation.
func (b *Book) SetBlocks(m readstate.MemberKey, generation int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.people[m]; p != nil && (p.broken || p.order < generation) {
		p.broken, p.order = false, max(p.order, generation)
		b.touch(&p.mark, Key{Member: m})
	}
}

// applyBlock takes a block or its end over. The rows have their pairs already.
func (b *Book) applyBlock(
	out []readstate.Event, lsn readstate.LSN, ev readstate.BlockEvent,
) ([]readstate.Event, error) {
	p := b.people[ev.Member]
	if p == nil {
		return nil, fmt.Errorf("member %d: %w", ev.Member, ErrNotLoaded)
	}
	p.becoming = slices.DeleteFunc(p.becoming, func(x readstate.MemberKey) bool {
		return x == ev.Other
	})
	if ev.Other == ev.Member {
		return append(out, ev), nil // blocks nobody, and has memory read the member's rows again
	}
	i, found := slices.BinarySearch(p.blocks, ev.Other)
	if found == ev.Blocked {
		b.stats.Repeated++
		return out, nil
	}
	if ev.Blocked {
		p.blocks = slices.Insert(slices.Clone(p.blocks), i, ev.Other)
	} else {
		p.blocks = slices.Delete(slices.Clone(p.blocks), i, i+1)
	}
	p.lsn = lsn
	b.touch(&p.mark, Key{Member: ev.Member})
	ev.MemberLSN = lsn
	return append(out, ev), nil
}

// addPerson makes a person known of whom the table has nothing, or nothing sound.
func (b *Book) addPerson(m readstate.MemberKey, r *Row) *person {
	p := &person{}
	if r != nil {
		if err := decodePerson(p, r, b.names); err != nil {
			b.stats.Damaged++
			*p = person{broken: true, blocked: true} // as far as anybody knows
		}
	}
	p.lsn, p.noted = min(p.lsn, b.lsn), p.blocked && !p.broken
	b.people[m] = p
	return p
}

// The words of a row of a person.
const (
	personLevel = "member"
	personSeen  = "member"
)

// personDetail is what of a member has no column.
type personDetail struct {
	Blocks     []readstate.MemberID `json:"blocks,omitempty"`
	Blocked    bool                 `json:"blocked,omitempty"`
	Generation int64                `json:"generation,omitempty"`
	LSN        readstate.LSN        `json:"lsn,omitempty"` // as in rowDetail
}

func decodePerson(p *person, r *Row, names Names) error {
	if err := r.check(); err != nil {
		return err
	}
	if r.Notification != personLevel || r.Visibility != personSeen {
		return fmt.Errorf("%w: member %q %q", ErrDamaged, r.Notification, r.Visibility)
	}
	var d personDetail
	if err := decodeJSON(r.Detail, &d); err != nil {
		return err
	}
	p.blocked, p.order, p.lsn = d.Blocked, d.Generation, d.LSN
	for _, id := range d.Blocks {
		if id == "" || id == r.Member {
			return fmt.Errorf("%w: block of %q", ErrDamaged, id)
		}
		p.blocks = append(p.blocks, names.MemberKey(id))
	}
	slices.Sort(p.blocks)
	p.blocks = slices.Compact(p.blocks)
	return nil
}

// encodePerson leaves blocks out of those whom without says.
func encodePerson(
	id readstate.MemberID, p *person, names Names, without func(x readstate.MemberKey) bool,
) Row {
	d := personDetail{Blocked: p.blocked, Generation: p.order, LSN: p.lsn}
	for _, x := range p.blocks {
		if !without(x) {
			d.Blocks = append(d.Blocks, names.Member(x))
		}
	}
	slices.Sort(d.Blocks)
	return Row{
		Member: id, Notification: personLevel, Visibility: personSeen, Detail: encodeJSON(d),
	}
}
