package nostrx

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kinds of events that the agent knows.
const (
	KindDelete          = 5     // an author takes an event back
	KindChat            = 9     // a message
	KindModeratorDelete = 9005  // somebody with authority removes an event
	KindAuth            = 22242 // the answer to a relay's challenge
	KindHTTPAuth        = 27235 // the authorisation of one HTTP request
	KindAppData         = 30078 // an application's own data, addressable
	KindStream          = 40002 // a message of a stream
	KindEdit            = 40003 // an edit of a message
	KindDiff            = 40008 // a message that is a change
)

// Auxiliary tells kinds that say something about other events: edits and deletions.
func Auxiliary(kind int) bool {
	return kind == KindEdit || kind == KindDelete || kind == KindModeratorDelete
}

// Filter selects events. An absent field selects everything; an event must pass all that are there.
type Filter struct {
	IDs     []EventID
	Authors []PubKey
	Kinds   []int
	Tags    map[string][]string // by name, without the number sign: an event has one of the values
	Since   *int64              // seconds, inclusive
	Until   *int64              // seconds, inclusive
	Limit   *int64              // of stored events, the newest
	// Aux asks for the auxiliary events of those selected besides; they need not match.
	Aux bool
}

// Whole returns a pointer to a number, for the optional fields of a Filter.
func Whole(n int64) *int64 { return &n }

// MarshalJSON writes the filter as relays read it.
func (f Filter) MarshalJSON() ([]byte, error) {
	m := make(map[string]any)
	if f.IDs != nil {
		m["ids"] = f.IDs
	}
	if f.Authors != nil {
		m["authors"] = f.Authors
	}
	if f.Kinds != nil {
		m["kinds"] = f.Kinds
	}
	for name, values := range f.Tags {
		m["#"+name] = values
	}
	for name, n := range map[string]*int64{"since": f.Since, "until": f.Until, "limit": f.Limit} {
		if n != nil {
			m[name] = *n
		}
	}
	if f.Aux {
		m["include_aux"] = true
	}
	return json.Marshal(m)
}

// UnmarshalJSON reads a filter; members that it does not know are an error.
func (f *Filter) UnmarshalJSON(data []byte) error {
	fields, err := members(data)
	if err != nil {
		return fmt.Errorf("filter: %w", err)
	}
	var read Filter
	for name, raw := range fields {
		var into any
		switch name {
		case "ids":
			into = &read.IDs
		case "authors":
			into = &read.Authors
		case "kinds":
			into = &read.Kinds
		case "since":
			into = &read.Since
		case "until":
			into = &read.Until
		case "limit":
			into = &read.Limit
		case "include_aux":
			into = &read.Aux
		default:
			tag, ok := strings.CutPrefix(name, "#")
			if !ok || tag == "" {
				return fmt.Errorf("filter: %q is no member of one", name)
			}
			var values []string
			if err := json.Unmarshal(raw, &values); err != nil || values == nil {
				return fmt.Errorf("filter: the values of %q", name)
			}
			if read.Tags == nil {
				read.Tags = make(map[string][]string)
			}
			read.Tags[tag] = values
			continue
		}
		if string(raw) == "null" || json.Unmarshal(raw, into) != nil {
			return fmt.Errorf("filter: the value of %q", name)
		}
	}
	for _, n := range []*int64{read.Since, read.Until, read.Limit} {
		if n != nil && *n < 0 {
			return errors.New("filter: a number below zero")
		}
	}
	*f = read
	return nil
}

// Matches tells whether the filter selects an event. Limit and Aux have no part in it.
func (f Filter) Matches(e Event) bool {
	switch {
	case f.IDs != nil && !slices.Contains(f.IDs, e.ID),
		f.Authors != nil && !slices.Contains(f.Authors, e.PubKey),
		f.Kinds != nil && !slices.Contains(f.Kinds, e.Kind),
		f.Since != nil && e.CreatedAt < *f.Since,
		f.Until != nil && e.CreatedAt > *f.Until:
		return false
	}
	for name, values := range f.Tags {
		if !slices.ContainsFunc(e.Values(name), func(v string) bool { return slices.Contains(values, v) }) {
			return false
		}
	}
	return true
}

// admits tells whether an event is an answer to one of the filters. A relay that sends something
// else is wrong, and nothing is learned from it.
func admits(filters []Filter, e Event) bool {
	return slices.ContainsFunc(filters, func(f Filter) bool {
		return f.Matches(e) || f.Aux && Auxiliary(e.Kind)
	})
}
