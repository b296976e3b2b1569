package relaytest

import (
	"fmt"
	"slices"

	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// checkFilters refuses requests beyond the relay's bounds. The text is what the relay answers.
func checkFilters(filters []nostrx.Filter) error {
	if len(filters) == 0 || len(filters) > maxFilters {
		return fmt.Errorf("invalid: 1 to %d filters", maxFilters)
	}
	for _, f := range filters {
		if len(f.Tags["h"]) > maxChannelsQ {
			return fmt.Errorf("invalid: at most %d channels in a filter", maxChannelsQ)
		}
	}
	return nil
}

// query returns what somebody may see of what filters ask for, each filter's newest events up to its
// limit, every event once. The lock is held.
func (r *Relay) query(who nostrx.PubKey, filters []nostrx.Filter) []nostrx.Event {
	var found []nostrx.Event
	for _, f := range filters {
		limit := r.options.PageLimit
		if f.Limit != nil {
			limit = int(min(*f.Limit, int64(limit)))
		}
		page := r.store.find(func(e nostrx.Event) bool { return f.Matches(e) && r.maySee(who, e) })
		page = page[:min(limit, len(page))]
		found = append(found, page...)
		if f.Aux {
			found = append(found, r.store.find(func(e nostrx.Event) bool {
				return r.store.aims(e, f.Matches) && r.maySee(who, e)
			})...)
		}
	}
	slices.SortFunc(found, nostrx.Compare)
	return slices.CompactFunc(found, func(a, b nostrx.Event) bool { return a.ID == b.ID })
}

// wants tells whether a subscription is to be pushed an event. The lock is held.
func (r *Relay) wants(filters []nostrx.Filter, e nostrx.Event) bool {
	return slices.ContainsFunc(filters, func(f nostrx.Filter) bool {
		return f.Matches(e) || f.Aux && r.store.aims(e, func(target nostrx.Event) bool {
			f.Since, f.Until = nil, nil // an edit of today may speak of a message of last year
			return f.Matches(target)
		})
	})
}

// accept takes a publication or says why not. Accepting what is there already is no error.
func (r *Relay) accept(by nostrx.PubKey, e nostrx.Event) error {
	if size := len(e.Encode()); size > nostrx.MaxEventOut {
		return fmt.Errorf("invalid: the event has %d bytes, at most %d", size, nostrx.MaxEventOut)
	}
	leeway := int64(clockLeeway.Seconds())
	if age := r.options.Now().Unix() - e.CreatedAt; age > leeway || -age > leeway {
		return errTimestamp
	}
	if e.Kind == nostrx.KindAuth || e.Kind == nostrx.KindHTTPAuth {
		return fmt.Errorf("invalid: kind %d is not for publication", e.Kind)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	moderator := r.isModerator(e.PubKey)
	switch {
	case by != e.PubKey:
		return fmt.Errorf("restricted: only what is your own")
	case !r.isMember(e.PubKey) && !moderator:
		return fmt.Errorf("restricted: relay_membership_required")
	case isRoster(e.Kind):
		return fmt.Errorf("restricted: the roster is the relay's own")
	case e.Kind == nostrx.KindModeratorDelete && !moderator:
		return fmt.Errorf("restricted: you are no moderator")
	}
	for _, id := range r.store.channelsOf(e) {
		if !slices.Contains(r.channels[id].Members, e.PubKey) && !moderator {
			return fmt.Errorf("restricted: you are no member of the channel")
		}
	}
	if r.store.deleted[e.ID] {
		return fmt.Errorf("blocked: the event was deleted")
	}
	if len(r.store.events) >= r.options.MaxEvents {
		return fmt.Errorf("error: the relay is full")
	}
	if r.faults.on(LoseEvents) {
		return nil
	}
	if e.Kind == nostrx.KindDelete || e.Kind == nostrx.KindModeratorDelete {
		r.store.remove(e, moderator && e.Kind == nostrx.KindModeratorDelete)
	}
	if ephemeral(e.Kind) || r.store.put(e) {
		r.push(e)
	}
	return nil
}

// push sends an event to everybody who listens for it and may see it. The lock is held, so that what
// is pushed stands before the end of any later request.
func (r *Relay) push(e nostrx.Event) {
	for s := range r.sessions {
		if !r.isMember(s.who) || !r.maySee(s.who, e) {
			continue
		}
		for id, filters := range s.subs {
			if r.wants(filters, e) {
				s.sendEvent(id, e)
			}
		}
	}
}
