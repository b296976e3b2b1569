package journal

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidemark-im/tidemark/relay/frontier"
)

// Budgets of a record.
const (
	MaxSyncBytes    = 98_304 // of the state, as one blob
	MaxReserveKeys  = 5_000
	MaxReserveBytes = 524_288 // of its JSON

	// emptyBlob is what a blob takes without a context, with the longest client id that is made here.
	emptyBlob = len(`{"v":1,"client_id":"","contexts":{}}`) + 36
)

// budget bounds a state. Three quarters of it keep broad marks before narrow ones.
type budget struct{ bytes, keys int }

var syncBudget = budget{bytes: MaxSyncBytes, keys: frontier.MaxKeys}

// Evidence is what verified messages in memory say. Its functions may be nil.
type Evidence struct {
	// Message returns a message that is loaded.
	Message func(id string) (frontier.Message, bool)
	// DM tells whether a channel is a dm; false when its type is not known yet.
	DM func(channel string) (dm, known bool)
}

func (e Evidence) message(id string) (frontier.Message, bool) {
	if e.Message == nil || id == "" {
		return frontier.Message{}, false
	}
	return e.Message(id)
}

func (e Evidence) ordinary(m frontier.Message) bool {
	if e.DM == nil || m.Reply || m.Mentioned || m.Broadcast {
		return false
	}
	dm, known := e.DM(m.Channel)
	return known && !dm
}

// retain brings a record within its budgets: receipts that do not fit go to the reserve, those that a
// broader kept one covers go. ErrCapacity says that what must be kept does not fit.
func (r *Record) retain(b budget, e Evidence) error {
	r.learnHomes(e)
	r.reunite()
	kept, evicted, err := r.choose(b, e)
	if err != nil {
		return err
	}
	r.State.Frontiers = kept
	for k := range r.Recent {
		if _, ok := kept[k]; !ok {
			delete(r.Recent, k)
		}
	}
	r.reserve(evicted, e)
	r.forgetHomes()
	return nil
}

// learnHomes notes where the messages that receipts name were posted.
func (r *Record) learnHomes(e Evidence) {
	for _, keys := range []map[Key]Time{r.State.Frontiers, r.Reserve} {
		for k := range keys {
			if m, ok := e.message(k.Event()); ok && m.Channel != "" {
				r.Homes[m.ID] = m.Channel
			}
		}
	}
}

// forgetHomes drops the homes that no receipt names any more.
func (r *Record) forgetHomes() {
	named := make(map[string]bool)
	for _, keys := range []map[Key]Time{r.State.Frontiers, r.Reserve} {
		for k := range keys {
			named[k.Event()] = true
		}
	}
	maps.DeleteFunc(r.Homes, func(id, _ string) bool { return !named[id] })
}

// reunite moves receipts from the reserve back to where a frontier of theirs is, at the higher of both,
// and those that a register is measured by.
func (r *Record) reunite() {
	for k, t := range r.Reserve {
		_, here := r.State.Frontiers[k]
		_, marked := r.State.Overrides[k]
		if here || marked {
			r.State.Frontiers[k] = max(r.State.Frontiers[k], t)
			delete(r.Reserve, k)
		}
	}
}

// mark is one receipt while it is decided about.
type mark struct {
	key    Key
	value  Time
	recent uint64
	cost   int
}

// byInteraction puts what was touched last first.
func byInteraction(a, b mark) int {
	return cmp.Or(
		cmp.Compare(b.recent, a.recent), cmp.Compare(b.value, a.value),
		strings.Compare(string(a.key), string(b.key)))
}

// byScope puts broad marks before narrow ones.
func byScope(a, b mark) int {
	return cmp.Or(cmp.Compare(a.key.Scope(), b.key.Scope()), byInteraction(a, b))
}

// choose decides which receipts stay in the state and which are evicted. Those that a kept one covers
// are neither.
func (r *Record) choose(b budget, e Evidence) (kept, evicted map[Key]Time, err error) {
	used, keys := emptyBlob, 0
	for k := range r.State.Overrides {
		used, keys = used+overrideCost(k), keys+3
	}
	var marks, protected []mark
	for k, t := range r.State.Frontiers {
		m := mark{key: k, value: t, recent: r.Recent[k], cost: frontier.Cost(k, t)}
		if r.protects(k) {
			protected = append(protected, m)
			used, keys = used+m.cost, keys+1
		} else {
			marks = append(marks, m)
		}
	}
	if used > b.bytes || keys > b.keys {
		return nil, nil, fmt.Errorf("%w: %d bytes and %d keys cannot be given up", frontier.ErrCapacity, used, keys)
	}
	for {
		all := budget{b.bytes - used, b.keys - keys}
		share := budget{b.bytes*3/4 - used, b.keys*3/4 - keys}
		chosen, left := fit(marks, all, share)
		covered := r.covered(chosen, e)
		if len(covered) == 0 || len(r.State.Overrides) > 0 {
			kept, evicted = make(map[Key]Time), make(map[Key]Time)
			for _, m := range append(protected, chosen...) {
				kept[m.key] = m.value
				if m.recent > 0 {
					r.Recent[m.key] = m.recent
				}
			}
			for _, m := range left {
				evicted[m.key] = m.value
			}
			return kept, evicted, nil
		}
		marks = inherit(marks, covered)
	}
}

// protects tells what is never given up: while there are registers, everything that one could be
// measured by.
func (r *Record) protects(k Key) bool {
	if len(r.State.Overrides) == 0 {
		return false
	}
	_, direct := r.State.Overrides[k]
	return direct || !k.IsMessage()
}

// overrideCost bounds what a register takes in a blob.
func overrideCost(k Key) int { return 3 * (frontier.Cost(k, frontier.MaxTime) + len("ov_s:")) }

// fit chooses marks: broad ones first within the share, then by interaction within all.
func fit(marks []mark, all, share budget) (chosen, left []mark) {
	marks = slices.Clone(marks)
	slices.SortFunc(marks, byScope)
	n := 0
	for n < len(marks) && marks[n].cost <= share.bytes && share.keys > 0 {
		share.bytes, share.keys = share.bytes-marks[n].cost, share.keys-1
		all.bytes, all.keys = all.bytes-marks[n].cost, all.keys-1
		n++
	}
	chosen, rest := marks[:n:n], marks[n:]
	slices.SortFunc(rest, byInteraction)
	for _, m := range rest {
		if m.cost <= all.bytes && all.keys > 0 {
			all.bytes, all.keys = all.bytes-m.cost, all.keys-1
			chosen = append(chosen, m)
		} else {
			left = append(left, m)
		}
	}
	return chosen, left
}

// covered returns, for every chosen mark that another chosen one makes needless, which one that is.
func (r *Record) covered(chosen []mark, e Evidence) map[Key]Key {
	values := make(map[Key]Time, len(chosen))
	for _, m := range chosen {
		values[m.key] = m.value
	}
	found := make(map[Key]Key)
	for _, m := range chosen {
		if c, ok := r.cover(m.key, m.value, values, e); ok {
			found[m.key] = c
		}
	}
	return found
}

// cover returns the broadest mark among some that reads all that a mark reads. It relies on where the
// message was posted, as verified events have shown it. A thread's mark never stands for a message's.
func (r *Record) cover(k Key, t Time, among map[Key]Time, e Evidence) (Key, bool) {
	reads := func(c Key) bool {
		value, ok := among[c]
		return ok && c != k && value >= t
	}
	id := k.Event()
	channel := k.ChannelOf()
	if id != "" {
		channel = r.Homes[id]
	}
	if channel != "" && k.Scope() != frontier.Channel && reads(frontier.ChannelKey(channel)) {
		return frontier.ChannelKey(channel), true
	}
	switch {
	case k.Scope() == frontier.CatchUp && id != "" && reads(frontier.ThreadKey(id)):
		return frontier.ThreadKey(id), true
	case k.IsMessage():
		// While it is loaded only: what it is has to be known, not only where.
		if m, ok := e.message(id); ok && e.ordinary(m) && reads(frontier.ActivityKey(m.Channel)) {
			return frontier.ActivityKey(m.Channel), true
		}
	}
	return "", false
}

// inherit takes covered marks out and hands their order to what finally covers them.
func inherit(marks []mark, covered map[Key]Key) []mark {
	recent := make(map[Key]uint64)
	for _, m := range marks {
		to, ok := covered[m.key]
		if !ok {
			continue
		}
		for next, again := covered[to]; again; next, again = covered[to] {
			to = next
		}
		recent[to] = max(recent[to], m.recent)
	}
	left := slices.DeleteFunc(slices.Clone(marks), func(m mark) bool { _, ok := covered[m.key]; return ok })
	for i := range left {
		left[i].recent = max(left[i].recent, recent[left[i].key])
	}
	return left
}

// reserve puts evicted receipts to those that were evicted before, and keeps what fits: the broadest,
// and of those the latest.
func (r *Record) reserve(evicted map[Key]Time, e Evidence) {
	all := maps.Clone(r.Reserve)
	for k, t := range evicted {
		all[k] = max(all[k], t)
	}
	if len(r.State.Overrides) == 0 {
		both := maps.Clone(all)
		maps.Copy(both, r.State.Frontiers)
		maps.DeleteFunc(all, func(k Key, t Time) bool {
			_, ok := r.cover(k, t, both, e)
			return ok
		})
	}
	order := slices.SortedFunc(maps.Keys(all), func(a, b Key) int {
		return cmp.Or(
			cmp.Compare(rank(r.protects(a)), rank(r.protects(b))), cmp.Compare(a.Scope(), b.Scope()),
			cmp.Compare(all[b], all[a]), strings.Compare(string(a), string(b)))
	})
	r.Reserve = make(map[Key]Time)
	size := len(`{}`)
	for _, k := range order {
		n := frontier.Cost(k, all[k]) // at least what it takes here, where nothing is escaped
		if len(r.Reserve) == MaxReserveKeys || size+n > MaxReserveBytes {
			break
		}
		r.Reserve[k] = all[k]
		size += n
	}
}

func rank(first bool) int {
	if first {
		return 0
	}
	return 1
}

// reserveSize bounds the JSON of a reserve from above.
func reserveSize(m map[Key]Time) int {
	size := len(`{}`)
	for k, t := range m {
		size += frontier.Cost(k, t)
	}
	return size
}
