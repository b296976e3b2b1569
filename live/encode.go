package live

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Rows and what holds them are written by hand: they are most of what a busy server says. The
// tests hold every value against encoding/json.

// Encode writes a value as JSON: pages and deltas by hand, all else by encoding/json.
func Encode(v any) ([]byte, error) {
	switch v := v.(type) {
	case Page:
		return v.AppendJSON(make([]byte, 0, rowBytes*(1+len(v.Scopes)))), nil
	case Delta:
		return v.AppendJSON(make([]byte, 0, 2*rowBytes)), nil
	}
	return json.Marshal(v)
}

// encode writes the frame as a socket carries it.
func (f *Frame) encode() ([]byte, error) {
	data, err := Encode(f.Data)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(data)+rowBytes)
	b = appendString(append(b, `{"event":`...), string(f.Event))
	if f.ID != "" {
		b = appendString(append(b, `,"id":`...), f.ID)
	}
	if f.Data != nil {
		b = append(append(b, `,"data":`...), data...)
	}
	return append(b, '}'), nil
}

// rowBytes is about what a row takes.
const rowBytes = 512

// AppendJSON appends what encoding/json writes for the page.
func (p *Page) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendOptional(b, `"member":`, p.Member, ',')
	b = append(b, `"hasUnread":`...)
	b = strconv.AppendBool(b, p.HasUnread)
	b = append(b, `,"state":`...)
	b = appendString(b, p.State)
	b = append(b, `,"badge":`...)
	b = p.Badge.AppendJSON(b)
	b = append(b, `,"complete":`...)
	b = strconv.AppendBool(b, p.Complete)
	b = appendNumber(b, `,"lsn":`, p.LSN)
	if p.Next != "" {
		b = append(b, `,"next":`...)
		b = appendString(b, p.Next)
	}
	b = append(b, `,"scopes":`...)
	if p.Scopes == nil {
		return append(b, "null}"...)
	}
	b = append(b, '{')
	for i, id := range slices.Sorted(maps.Keys(p.Scopes)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, id)
		b = append(b, ':')
		row := p.Scopes[id]
		b = row.AppendJSON(b)
	}
	return append(b, "}}"...)
}

// AppendJSON appends what encoding/json writes for the row.
func (r *Row) AppendJSON(b []byte) []byte {
	b = append(b, `{"type":`...)
	b = appendString(b, r.Type)
	b = append(b, `,"name":`...)
	b = appendString(b, r.Name)
	if r.Parent != "" {
		b = append(b, `,"parent":`...)
		b = appendString(b, r.Parent)
	}
	if len(r.Tags) > 0 {
		b = append(b, `,"tags":[`...)
		for i, tag := range r.Tags {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, tag)
		}
		b = append(b, ']')
	}
	b = append(b, `,"notification":`...)
	b = appendString(b, r.Notification)
	b = append(b, `,"archived":`...)
	b = strconv.AppendBool(b, r.Archived)
	b = appendNumber(b, `,"unread":`, r.Unread)
	b = appendNumber(b, `,"attention":`, r.Attention)
	b = appendNumber(b, `,"activity":`, r.Activity)
	b = append(b, `,"manualUnread":`...)
	b = strconv.AppendBool(b, r.ManualUnread)
	b = append(b, `,"shown":`...)
	b = strconv.AppendBool(b, r.Shown)
	b = appendNumber(b, `,"shownUnread":`, r.ShownUnread)
	b = append(b, `,"state":`...)
	b = appendString(b, r.State)
	b = appendNumber(b, `,"contentRevision":`, r.ContentRevision)
	if r.ReplyCount != 0 {
		b = appendNumber(b, `,"replyCount":`, r.ReplyCount)
	}
	if m := r.LatestMessage; m != nil {
		b = append(b, `,"latestMessage":{"id":`...)
		b = appendString(b, m.ID)
		b = append(b, `,"at":`...)
		b = append(appendTime(b, m.At), '}')
	}
	if r.LastActivityAt != nil {
		b = append(b, `,"lastActivityAt":`...)
		b = appendTime(b, *r.LastActivityAt)
	}
	b = append(b, `,"readState":`...)
	return append(r.ReadState.AppendJSON(b), '}')
}

// AppendJSON appends what encoding/json writes for the read state.
func (s *ReadState) AppendJSON(b []byte) []byte {
	b = appendNumber(b, `{"readRevision":`, s.ReadRevision)
	b = append(b, `,"manualUnread":`...)
	b = strconv.AppendBool(b, s.ManualUnread)
	b = appendNumber(b, `,"version":`, s.Version)
	if s.FromRevision != 0 {
		b = appendNumber(b, `,"fromRevision":`, s.FromRevision)
	}
	return append(appendNumber(b, `,"activityReadSeq":`, s.ActivityReadSeq), '}')
}

// AppendJSON appends what encoding/json writes for the badge.
func (g *Badge) AppendJSON(b []byte) []byte {
	b = appendNumber(b, `{"messages":`, g.Messages)
	b = appendNumber(b, `,"conversations":`, g.Conversations)
	b = appendNumber(b, `,"attention":`, g.Attention)
	return append(appendNumber(b, `,"display":`, g.Display), '}')
}

// AppendJSON appends what encoding/json writes for the delta.
func (d *Delta) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	b = appendOptional(b, `"member":`, d.Member, ',')
	b = append(b, `"scope":`...)
	b = appendString(b, d.Scope)
	if d.Row != nil {
		b = append(b, `,"row":`...)
		b = d.Row.AppendJSON(b)
	}
	if d.Removed {
		b = append(b, `,"removed":true`...)
	}
	b = append(b, `,"hasUnread":`...)
	b = strconv.AppendBool(b, d.HasUnread)
	b = append(b, `,"badge":`...)
	b = d.Badge.AppendJSON(b)
	return append(appendNumber(b, `,"lsn":`, d.LSN), '}')
}

func appendNumber(b []byte, name string, n uint64) []byte {
	return strconv.AppendUint(append(b, name...), n, 10)
}

func appendOptional(b []byte, name, s string, end byte) []byte {
	if s == "" {
		return b
	}
	return append(appendString(append(b, name...), s), end)
}

func appendTime(b []byte, t time.Time) []byte {
	b = t.AppendFormat(append(b, '"'), time.RFC3339Nano)
	return append(b, '"')
}

// appendString writes plain ASCII itself and leaves everything else to encoding/json.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic(err) // no string fails
			}
			return append(b, quoted...)
		}
	}
	b = append(append(b, '"'), s...)
	return append(b, '"')
}
