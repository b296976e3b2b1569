package snapshot

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-im/tidemark/readstate"
)

// ErrDamaged reports a row that no program of ours can have written.
var ErrDamaged = errors.New("damaged snapshot row")

// visibilities are the words of a member's row, by joined and visible.
var visibilities = map[string][2]bool{
	"visible": {true, true}, "invisible": {true, false},
	"left": {false, true}, "left invisible": {false, false},
}

// The words of a frontier.
const (
	frontierOpen     = "open"
	frontierArchived = "archived"
	// frontierLevel stands where a member's row has its level.
	frontierLevel = "frontier"
)

func visibilityOf(r *readstate.Row) string {
	word := "left"
	if r.Joined {
		word = "visible"
		if !r.Visible {
			word = "invisible"
		}
	} else if !r.Visible {
		word = "left invisible"
	}
	return word
}

func notificationOf(n readstate.Notification) string {
	if n.Until == 0 {
		return n.Level.String()
	}
	return n.Level.String() + " until " + strconv.FormatInt(n.Until, 10)
}

func parseNotification(s string) (n readstate.Notification, err error) {
	word, until, ends := strings.Cut(s, " until ")
	level, ok := readstate.ParseLevel(word)
	if ends && ok {
		n.Until, err = strconv.ParseInt(until, 10, 64)
		ok = err == nil && n.Until > 0
	}
	if !ok {
		return n, fmt.Errorf("%w: notification state %q", ErrDamaged, s)
	}
	n.Level = level
	return n, nil
}

// rowDetail is what of a member's row has no column.
type rowDetail struct {
	Epoch       uint64 `json:"epoch,omitempty"`
	ParentEpoch uint64 `json:"parentEpoch,omitempty"`
	Follow      uint8  `json:"follow,omitempty"`
	ManualFrom  uint64 `json:"manualFrom,omitempty"`
	Version     uint64 `json:"version,omitempty"`
	// LSN is the commit that last changed the row, of the process that wrote it.
	LSN readstate.LSN `json:"lsn,omitempty"`
	// Sum stands for the regular columns that the ranks and this belong to. Zero, of programs
	// that did not write it, fits all.
	Sum uint64 `json:"sum,omitempty"`
	// Barrier is the newest one of the row, of which this knows what it protects.
	Barrier uint64 `json:"barrier,omitempty"`
	// Behind says that the row is withheld until a cursor settles it.
	Behind bool `json:"behind,omitempty"`
	// ActsBehind says the same of an activity cursor.
	ActsBehind bool `json:"actsBehind,omitempty"`
	// Unpaired says that nobody looked for what those wrote whom the member blocks.
	Unpaired bool `json:"unpaired,omitempty"`
	// Entries and Acts are what was delivered and counts, in scopes that count deliveries.
	Entries string `json:"entries,omitempty"`
	Direct  string `json:"direct,omitempty"`
	Acts    string `json:"acts,omitempty"`
	// Base and BaseActs are what a program counted that kept numbers alone, up to BaseTo and
	// BaseActsTo.
	Base       uint64 `json:"base,omitempty"`
	BaseTo     uint64 `json:"baseTo,omitempty"`
	BaseActs   uint64 `json:"baseActs,omitempty"`
	BaseActsTo uint64 `json:"baseActsTo,omitempty"`
	// Pairs are those that are not empty, by the ids of who is blocked.
	Pairs []pairDetail `json:"pairs,omitempty"`
}

// pairDetail is what a row counts of one member whom its own blocks.
type pairDetail struct {
	ID      readstate.MemberID `json:"id"`
	Overlap uint64             `json:"overlap,omitempty"`
	Direct  uint64             `json:"direct,omitempty"`
	Targets uint64             `json:"targets,omitempty"`
	Acts    uint64             `json:"acts,omitempty"`
}

func encodePairs(l pairs, p *person, names Names) []pairDetail {
	var out []pairDetail
	for _, c := range l {
		if p.pairsWith(c.with) {
			out = append(out, pairDetail{
				ID: names.Member(c.with), Overlap: c.overlap, Direct: c.direct,
				Targets: c.targets, Acts: c.acts,
			})
		}
	}
	slices.SortFunc(out, func(a, b pairDetail) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

func decodePairs(list []pairDetail, names Names) (pairs, error) {
	var out pairs
	for _, d := range list {
		p := pair{
			with: names.MemberKey(d.ID), overlap: d.Overlap, direct: d.Direct,
			targets: d.Targets, acts: d.Acts,
		}
		if p.with == 0 || p.below() {
			return nil, fmt.Errorf("%w: pair with %q", ErrDamaged, d.ID)
		}
		out = append(out, p)
	}
	return out, nil
}

// frontierDetail is what of a scope has no column.
type frontierDetail struct {
	Type      string            `json:"type"`
	Name      string            `json:"name,omitempty"`
	Parent    readstate.ScopeID `json:"parent,omitempty"`
	Root      string            `json:"root,omitempty"`
	Shared    bool              `json:"shared,omitempty"`
	Tags      []string          `json:"tags,omitempty"`
	Active    bool              `json:"active,omitempty"`
	Thinking  bool              `json:"thinking,omitempty"`
	Input     bool              `json:"pendingInput,omitempty"`
	Permit    bool              `json:"pendingPermission,omitempty"`
	Seq       readstate.Seq     `json:"seq,omitempty"`
	Latest    string            `json:"latest,omitempty"`
	LatestAt  int64             `json:"latestAt,omitempty"`
	ActiveAt  int64             `json:"activeAt,omitempty"`
	Replies   uint64            `json:"replies,omitempty"`
	LSN       readstate.LSN     `json:"lsn,omitempty"` // as in rowDetail
	Removed   string            `json:"removed,omitempty"`
	Everyone  string            `json:"everyone,omitempty"`
	Since     uint64            `json:"since,omitempty"`
	Baselined bool              `json:"baselined,omitempty"`
	Writers   []writerDetail    `json:"writers,omitempty"`
	// Missed are entries and activities that may be told yet, in scopes that count deliveries.
	Missed     string `json:"missed,omitempty"`
	MissedActs string `json:"missedActs,omitempty"`
	// Lifted are members whose rows the floor passed, and that go to the table later.
	Lifted []liftedDetail `json:"lifted,omitempty"`
}

func encodeJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers and strings always have a JSON form
	}
	if string(text) == "{}" {
		return ""
	}
	return string(text)
}

func decodeJSON(text string, v any) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return fmt.Errorf("%w: detail: %w", ErrDamaged, err)
	}
	return nil
}

// whole refuses numbers that no row can hold.
func whole(numbers ...int64) error {
	for i, n := range numbers {
		if n < 0 || n > readstate.MaxCounter {
			return fmt.Errorf("%w: number %d is %d", ErrDamaged, i, n)
		}
	}
	return nil
}

// whole refuses generations below zero. They only order, so that any number may be one.
func (g *Generations) whole() error {
	least := min(g.Roster, g.Message, g.Activity, g.Membership, g.Notification, g.Manual, g.Rewind)
	if least < 0 {
		return fmt.Errorf("%w: generation %d", ErrDamaged, least)
	}
	return nil
}

func (r *Ranks) whole() error {
	return whole(r.E, r.AuthorAt, r.PrincipalAt, r.OwnRemoved, r.OwnEveryone, r.Direct, r.Targets,
		r.SignalAt, r.ActorAt, r.ActivityTargets, r.Head, r.Floor, r.SignalHead, r.AuthorHead,
		r.PrincipalHead, r.ActorHead)
}

// check refuses what holds of no row, a frontier or a member's.
func (r *Row) check() error {
	err := whole(r.MessageUnread, r.ActivityUnread, r.MessageRead, r.ActivityRead,
		r.EffectiveFrom, r.MessageAccounted, r.ActivityAccounted)
	if err == nil {
		err = r.Generations.whole()
	}
	if err == nil && r.Ranks != nil {
		err = r.Ranks.whole()
	}
	if err == nil && (r.ManualUnread < 0 || r.ManualUnread > 1) {
		err = fmt.Errorf("%w: manual unread %d", ErrDamaged, r.ManualUnread)
	}
	return err
}

// decodeMember reads the facts of a member's row, whoever wrote it. Where ranks are missing the
// point is left to the caller, who knows the scope.
func decodeMember(r *Row) (row readstate.Row, w readstate.Writer, err error) {
	if err = r.check(); err != nil {
		return row, w, err
	}
	seen, ok := visibilities[r.Visibility]
	if !ok {
		return row, w, fmt.Errorf("%w: visibility %q", ErrDamaged, r.Visibility)
	}
	row.Joined, row.Visible = seen[0], seen[1]
	if row.Notification, err = parseNotification(r.Notification); err != nil {
		return row, w, err
	}
	d := rowDetail{Epoch: 1}
	if err = decodeJSON(r.Detail, &d); err != nil {
		return row, w, err
	}
	if d.Follow > uint8(readstate.FollowStopped) || d.ManualFrom > readstate.MaxCounter {
		return row, w, fmt.Errorf("%w: detail %q", ErrDamaged, r.Detail)
	}
	row.Epoch, row.ParentEpoch, row.Follow = d.Epoch, d.ParentEpoch, readstate.Follow(d.Follow)
	row.Effective = readstate.Revision(r.EffectiveFrom)
	row.Read = readstate.Revision(r.MessageRead)
	row.Manual = readstate.Manual{
		Set: r.ManualUnread == 1, From: readstate.Revision(d.ManualFrom), Version: d.Version,
	}
	row.Activity.Read = readstate.Seq(r.ActivityRead)
	row.Serving = readstate.Hint
	if k := r.Ranks; k != nil {
		row.Point = readstate.Point{
			E: readstate.Revision(k.E), AuthorRank: uint64(k.AuthorAt),
			PrincipalRank: uint64(k.PrincipalAt), OwnRemoved: uint64(k.OwnRemoved),
			OwnEveryone: uint64(k.OwnEveryone), Direct: uint64(k.Direct),
			Targets: uint64(k.Targets),
		}
		row.Activity.SignalAt, row.Activity.ActorAt = uint64(k.SignalAt), uint64(k.ActorAt)
		row.Activity.Targets = uint64(k.ActivityTargets)
		w = readstate.Writer{
			AuthorHead: uint64(k.AuthorHead), PrincipalHead: uint64(k.PrincipalHead),
			ActorHead: uint64(k.ActorHead),
		}
	}
	return row, w, nil
}

// encodeMember is the inverse, with the values as of now and the number of the row's newest barrier.
// The detail is what the row's text says.
func encodeMember(
	id readstate.MemberID, e *entry, f *frontier, v readstate.Values, pairs []pairDetail,
	barrier uint64,
) (Row, rowDetail) {
	r, w := &e.row.Row, &e.row.Writer
	p, a := &r.Point, &r.Activity
	manual := int64(0)
	if r.Manual.Set {
		manual = 1
	}
	g := e.gens
	g.Roster, g.Message = max(g.Roster, f.gens.Roster), max(g.Message, f.gens.Message)
	g.Activity, g.Rewind = max(g.Activity, f.gens.Activity), max(g.Rewind, f.gens.Rewind)
	through, actThrough := e.through(f)
	d := rowDetail{
		Epoch: r.Epoch, ParentEpoch: r.ParentEpoch, Follow: uint8(r.Follow),
		ManualFrom: uint64(r.Manual.From), Version: r.Manual.Version, LSN: e.row.StateLSN,
		Behind: r.Serving == readstate.Behind, ActsBehind: e.actsBehind,
		Unpaired: e.unpaired, Pairs: pairs, Barrier: barrier,
		Entries: pack(e.got.entries), Direct: pack(e.got.direct), Acts: pack(e.got.acts),
		Base: e.got.base, BaseTo: uint64(e.got.baseTo),
		BaseActs: e.got.baseActs, BaseActsTo: uint64(e.got.baseActsTo),
	}
	row := Row{
		Member: id, Scope: f.info.ID,
		MessageUnread: int64(v.Unread), ActivityUnread: int64(v.Activity), ManualUnread: manual,
		MessageRead: int64(r.Read), ActivityRead: int64(a.Read), EffectiveFrom: int64(r.Effective),
		MessageAccounted: int64(through), ActivityAccounted: int64(actThrough),
		Notification: notificationOf(r.Notification), Visibility: visibilityOf(r),
		Generations: g,
		Ranks: &Ranks{
			E: int64(p.E), AuthorAt: int64(p.AuthorRank), PrincipalAt: int64(p.PrincipalRank),
			OwnRemoved: int64(p.OwnRemoved), OwnEveryone: int64(p.OwnEveryone),
			Direct: int64(p.Direct), Targets: int64(p.Targets),
			SignalAt: int64(a.SignalAt), ActorAt: int64(a.ActorAt), ActivityTargets: int64(a.Targets),
			Head: int64(f.ranks.Head), Floor: int64(f.ranks.Floor),
			SignalHead: int64(f.ranks.SignalHead),
			AuthorHead: int64(w.AuthorHead), PrincipalHead: int64(w.PrincipalHead),
			ActorHead: int64(w.ActorHead),
		},
		IfAbsent: e.ifAbsent,
	}
	d.Sum = row.sum()
	row.Detail = encodeJSON(d)
	return row, d
}
