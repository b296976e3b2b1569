package scenario

import (
	"fmt"
	"maps"
	"slices"
)

// view is what a device knows: rows merged by position. A fact is taken when its position is at
// least that of the last one about the same scope, so late and repeated facts do no harm.
type view struct {
	rows      map[string]placed
	badge     badge
	hasUnread bool
	badgeAt   uint64
}

// placed is a fact about a scope at a position; a nil row says that the scope is gone.
type placed struct {
	row *row
	lsn uint64
}

func newView() *view { return &view{rows: map[string]placed{}} }

func (v *view) merge(scope string, r *row, lsn uint64) {
	if old, ok := v.rows[scope]; ok && lsn < old.lsn {
		return
	}
	v.rows[scope] = placed{r, lsn}
}

func (v *view) mergeBadge(b badge, hasUnread bool, lsn uint64) {
	if lsn >= v.badgeAt {
		v.badge, v.hasUnread, v.badgeAt = b, hasUnread, lsn
	}
}

func (v *view) apply(e event) {
	switch {
	case e.delta != nil:
		v.merge(e.delta.Scope, e.delta.Row, e.delta.LSN)
		v.mergeBadge(e.delta.Badge, e.delta.HasUnread, e.delta.LSN)
	case e.snapshot != nil:
		v.applyPage(e.snapshot)
	}
}

func (v *view) applyPage(p *page) {
	for name, r := range p.Scopes {
		v.merge(name, &r, p.LSN)
	}
	v.mergeBadge(p.Badge, p.HasUnread, p.LSN)
}

// forget drops what a complete snapshot did not list: scopes left while nobody listened.
// Facts newer than the snapshot's first page stay.
func (v *view) forget(listed map[string]bool, lsn uint64) {
	for name, fact := range v.rows {
		if !listed[name] && fact.lsn <= lsn {
			delete(v.rows, name)
		}
	}
}

func (v *view) listed() map[string]row {
	out := map[string]row{}
	for name, fact := range v.rows {
		if fact.row != nil {
			out[name] = *fact.row
		}
	}
	return out
}

// fold is the badge that these rows add up to; display is not part of the fold.
func fold(rows map[string]row) badge {
	var b badge
	for _, r := range rows {
		if !r.Shown {
			continue
		}
		b.Messages += r.ShownUnread
		b.Conversations++
		b.Attention += r.Attention
	}
	return b
}

// sameNumbers compares a badge with a fold.
func (b badge) sameNumbers(other badge) bool {
	return b.Messages == other.Messages && b.Conversations == other.Conversations &&
		b.Attention == other.Attention
}

// difference names the first scope whose rows differ in what people see, or returns "".
func difference(device, list map[string]row) string {
	names := slices.Sorted(maps.Keys(device))
	for name := range list {
		if _, ok := device[name]; !ok {
			names = append(names, name)
		}
	}
	for _, name := range names {
		a, onDevice := device[name]
		b, inList := list[name]
		if onDevice != inList {
			return fmt.Sprintf("%s: on the device %t, in the list %t", name, onDevice, inList)
		}
		if x, y := a.brief(), b.brief(); x != y {
			return fmt.Sprintf("%s: on the device %s, in the list %s", name, x, y)
		}
	}
	return ""
}

// brief is what a device and the list must agree on. How far the log has grown is no part of it:
// an entry that counts for nobody here is no delta (RT-121), and a message is told by the
// messages of a scope.
func (r row) brief() string {
	from := "none"
	if r.ReadState.FromRevision != nil {
		from = fmt.Sprint(*r.ReadState.FromRevision)
	}
	return fmt.Sprintf("{unread=%d attention=%d activity=%d shown=%t shownUnread=%d manual=%t "+
		"level=%s archived=%t read=%d version=%d from=%s}",
		r.Unread, r.Attention, r.Activity, r.Shown, r.ShownUnread, r.ManualUnread,
		r.Notification, r.Archived, r.ReadState.ReadRevision,
		r.ReadState.Version, from)
}
