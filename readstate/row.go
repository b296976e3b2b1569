package readstate

// Row is everything kept about one member in one scope. Rows of members who have left are kept
// and maintained like any other, so that coming back under HistoryShared is exact.
type Row struct {
	Joined      bool
	Visible     bool
	Epoch       uint64 // rises with every join that starts anew
	ParentEpoch uint64 // threads: the parent row's Epoch when this row was joined
	Follow      Follow
	Notification

	Effective Revision // the first revision that may count
	Read      Revision // read cursor, inclusive; never falls within an epoch
	Manual    Manual
	Point     Point
	Activity  ActivityPoint
	// Serving says how far the row may be relied on. Where facts are at hand it is always Exact.
	Serving Serving
}

// Serving says how far a row may be relied on where memory is all there is: rows that come back
// from a snapshot, or that missed something. The zero value is a row known exactly.
type Serving uint8

const (
	// Exact rows were kept by committed events from a known start.
	Exact Serving = iota
	// Hint rows came from a snapshot: shown, and perhaps behind.
	Hint
	// Behind rows missed something for which no exact change is known: withheld.
	Behind
	// Unusable rows are damaged, of an unknown format, or refused by a budget: withheld.
	Unusable
)

// Servable reports that the row's values may be shown.
func (s Serving) Servable() bool { return s <= Hint }

// Manual is the sticky "unread" a member chose. From is the first revision they want to see
// again, zero for none; it is zero whenever Set is false. Version rises by one with every
// stored change of Set or From, and with nothing else.
type Manual struct {
	Set     bool
	From    Revision
	Version uint64
}

// change stores a flag and raises the version if anything differs.
func (m *Manual) change(set bool, from Revision) bool {
	if m.Set == set && m.From == from {
		return false
	}
	m.Set, m.From, m.Version = set, from, m.Version+1
	return true
}

// Point holds what is kept at the effective point E, below which nothing counts. The ranks say
// how many entries of the member lie at or below E; the rest counts rows of the member above E.
// E may lie below the scope's floor when no trimmed entry named the member.
type Point struct {
	E             Revision
	AuthorRank    uint64 // entries the member wrote, at or below E
	PrincipalRank uint64 // entries written on the member's behalf by others, at or below E
	OwnRemoved    uint64 // removed neutral entries above E
	OwnEveryone   uint64 // live neutral entries above E that mention everyone
	Direct        uint64 // live entries above E that name the member and not everyone
	Targets       uint64 // live deliveries to the member above E (targeted scopes)
}

// ActivityPoint is the activity cursor with what is kept at it.
type ActivityPoint struct {
	Read     Seq    // inclusive
	SignalAt uint64 // high-signal activities at or below Read
	ActorAt  uint64 // those of them the member performed
	Targets  uint64 // activities above Read delivered to the member (targeted scopes)
}

// Writer holds the ranks of one member's entries in a scope, over everything ever written with
// a revision. The AtFloor ranks are those of the floor, for writers whose entries were trimmed.
type Writer struct {
	AuthorHead       uint64
	PrincipalHead    uint64
	ActorHead        uint64
	AuthorAtFloor    uint64
	PrincipalAtFloor uint64
}

// EffectivePoint derives E from the facts that decide it: nothing counts at or below the floor,
// before the member's effective revision, or at or below the cursor, which a manual mark with a
// start can only move down.
func (r *Row) EffectivePoint(floor Revision) Revision {
	base := r.Read
	if r.Manual.Set && r.Manual.From > 0 {
		base = min(base, r.Manual.From-1)
	}
	if r.Effective > 0 {
		base = max(base, r.Effective-1)
	}
	return max(floor, base)
}

// Base returns the point that formulas and bitmap blocks use: E, or the floor above it.
func (p *Point) Base(floor Revision) Revision { return max(p.E, floor) }
