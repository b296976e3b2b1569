package live

import (
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
)

// Rows and what holds them are written by hand, from the runtime's values: they are most of what
// a busy server says. The tests hold every text against what encoding/json makes of the type in
// wire.go that describes it.

// Appender is a value that writes itself as JSON.
type Appender interface{ AppendJSON(b []byte) []byte }

// Append appends a value as JSON, by hand where the value can.
func Append(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case Appender:
		return v.AppendJSON(b), nil
	case json.RawMessage:
		return append(b, v...), nil
	}
	data, err := json.Marshal(v)
	return append(b, data...), err
}

// Encode is Append for a text of its own.
func Encode(v any) ([]byte, error) { return Append(nil, v) }

// encode writes the frame as a socket carries it.
func (f *Frame) encode() ([]byte, error) {
	b := appendQuoted(append(make([]byte, 0, 2*rowBytes), `{"event":`...), []byte(f.Event))
	if f.ID != "" {
		b = appendQuoted(append(b, `,"id":`...), []byte(f.ID))
	}
	if f.Data != nil {
		var err error
		if b, err = Append(append(b, `,"data":`...), f.Data); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// rowBytes is about what a row takes.
const rowBytes = 512

// clocks write the times of deltas. Those of one message are told to many.
var clocks = sync.Pool{New: func() any { return new(instants) }}

// change is a Delta on its way to a client.
type change struct {
	Member string
	LSN    uint64
	delta  *unread.Delta
	texts  [128]byte // room for those of most rows
}

// AppendJSON implements Appender.
func (c *change) AppendJSON(b []byte) []byte {
	d := c.delta
	b = append(b, '{')
	b = appendMember(b, c.Member)
	b = appendScope(append(b, `"scope":`...), []byte(d.Scope))
	if d.Removed {
		b = append(b, `,"removed":true`...)
	} else {
		line := d.Row.Line(c.texts[:0])
		at := clocks.Get().(*instants)
		b = appendRow(append(b, `,"row":`...), &line, at)
		clocks.Put(at)
	}
	b = appendBool(b, `,"hasUnread":`, d.Summary.HasUnread)
	b = appendBadge(append(b, `,"badge":`...), &d.Summary)
	return append(appendNumber(b, `,"lsn":`, c.LSN), '}')
}

// AppendPage appends a Page. Member is empty where it goes without saying.
func AppendPage(b []byte, p *unread.LinePage, member string) []byte {
	b = slices.Grow(b, rowBytes*(1+p.Len()))
	b = appendHead(b, &p.Summary, p.Next, member)
	var l unread.Line
	var t instants
	for i := range p.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		p.Line(i, &l)
		b = append(appendScope(b, l.ID), ':')
		b = appendRow(b, &l, &t)
	}
	return append(b, "}}"...)
}

// AppendRows appends a Page of the given rows, in the order of their scopes' ids.
func AppendRows(b []byte, s *unread.Summary, rows []unread.Row, member string) []byte {
	b = appendHead(b, s, "", member)
	var texts [128]byte
	var t instants
	for i := range rows {
		if i > 0 {
			b = append(b, ',')
		}
		l := rows[i].Line(texts[:0])
		b = append(appendScope(b, l.ID), ':')
		b = appendRow(b, &l, &t)
	}
	return append(b, "}}"...)
}

// appendHead appends what comes before the rows of a Page.
func appendHead(b []byte, s *unread.Summary, next, member string) []byte {
	b = append(b, '{')
	b = appendMember(b, member)
	b = appendBool(b, `"hasUnread":`, s.HasUnread)
	b = appendQuoted(append(b, `,"state":`...), []byte(s.State))
	b = appendBadge(append(b, `,"badge":`...), s)
	b = appendBool(b, `,"complete":`, s.Complete && next == "")
	b = appendNumber(b, `,"lsn":`, uint64(s.LSN))
	if next != "" {
		b = appendQuoted(append(b, `,"next":`...), []byte(next))
	}
	return append(b, `,"scopes":{`...)
}

func appendMember(b []byte, member string) []byte {
	if member == "" {
		return b
	}
	return append(appendQuoted(append(b, `"member":`...), []byte(member)), ',')
}

// appendRow appends a Row. Words that take one of a few values come with what is around them.
func appendRow(b []byte, l *unread.Line, t *instants) []byte {
	b = rowBegins[l.Type].append(b)
	b = appendQuoted(b, l.Name)
	if len(l.ParentID) > 0 {
		b = appendQuoted(append(b, `,"parent":`...), l.ParentID)
	}
	if len(l.Tags) > 0 {
		b = appendTags(b, l.Tags)
	}
	b = rowLevels[l.Level][digit(l.Archived)].append(b)
	b = appendUint(b, l.Values.Unread)
	b = appendNumber(b, `,"attention":`, l.Values.Attention)
	b = appendNumber(b, `,"activity":`, l.Values.Activity)
	b = rowDots[digit(l.Manual.Set)][digit(l.Presented.Shown)].append(b)
	b = appendUint(b, l.Presented.Unread)
	if l.State == unread.Ready {
		b = rowReady.append(b)
	} else {
		b = append(appendQuoted(append(b, `,"state":`...), []byte(l.State)), `,"contentRevision":`...)
	}
	b = appendUint(b, uint64(l.Head))
	if l.Type == readstate.Thread && l.Replies != 0 {
		b = appendNumber(b, `,"replyCount":`, l.Replies)
	}
	switch l.Follow {
	case readstate.FollowExplicit:
		b = append(b, `,"follow":"following"`...)
	case readstate.FollowStopped:
		b = append(b, `,"follow":"stopped"`...)
	}
	b = appendTimes(b, l, t)
	b = appendUint(rowReadState.append(b), uint64(l.Read))
	b = appendUint(rowManuals[digit(l.Manual.Set)].append(b), l.Manual.Version)
	if l.Manual.From != 0 {
		b = appendNumber(b, `,"fromRevision":`, uint64(l.Manual.From))
	}
	b = appendUint(rowActivity.append(b), uint64(l.ActivityRead))
	return append(b, "}}"...)
}

// The pieces of a row.
var (
	rowBegins [readstate.Session + 1]piece
	rowLevels [readstate.LevelNone + 1][2]piece // by whether it is archived
	rowDots   [2][2]piece                       // by the manual mark, and by whether it is shown

	rowReady     = pieceOf(`,"state":"ready","contentRevision":`)
	rowLatest    = pieceOf(`,"latestMessage":{"id":`)
	rowLastAt    = pieceOf(`,"lastActivityAt":`)
	rowReadState = pieceOf(`,"readState":{"readRevision":`)
	rowManuals   [2]piece
	rowActivity  = pieceOf(`,"activityReadSeq":`)
)

func init() {
	for t := range rowBegins {
		rowBegins[t] = pieceOf(`{"type":"%s","name":`, readstate.ScopeType(t))
	}
	for i, yes := range []bool{false, true} {
		for l := range rowLevels {
			rowLevels[l][i] = pieceOf(`,"notification":"%s","archived":%t,"unread":`,
				readstate.Level(l), yes)
		}
		for j, shown := range []bool{false, true} {
			rowDots[i][j] = pieceOf(`,"manualUnread":%t,"shown":%t,"shownUnread":`, yes, shown)
		}
		rowManuals[i] = pieceOf(`,"manualUnread":%t,"version":`, yes)
	}
}

// digit is an index by a bool.
func digit(v bool) int {
	if v {
		return 1
	}
	return 0
}

// appendTimes appends the newest message of a row and its last activity.
func appendTimes(b []byte, l *unread.Line, t *instants) []byte {
	if len(l.Latest) > 0 {
		b = append(appendQuoted(rowLatest.append(b), l.Latest), `,"at":`...)
		b = append(t.append(b, l.LatestAt), '}')
	}
	if l.LastActivityAt != 0 {
		b = t.append(rowLastAt.append(b), l.LastActivityAt)
	}
	return b
}

func appendTags(b []byte, tags unread.Tags) []byte {
	before := `,"tags":[`
	for tag := range tags.All() {
		b = appendQuoted(append(b, before...), tag)
		before = ","
	}
	if before == "," {
		b = append(b, ']')
	}
	return b
}

// appendBadge appends the Badge of a summary.
func appendBadge(b []byte, s *unread.Summary) []byte {
	b = appendNumber(b, `{"messages":`, s.Badge.Messages)
	b = appendNumber(b, `,"conversations":`, s.Badge.Conversations)
	b = appendNumber(b, `,"attention":`, s.Badge.Attention)
	return append(appendNumber(b, `,"display":`, displayed(s)), '}')
}

// displayed is the number that the member chose in their settings.
func displayed(s *unread.Summary) uint64 {
	switch s.Display {
	case readstate.DisplayConversations:
		return s.Badge.Conversations
	case readstate.DisplayAttention:
		return s.Badge.Attention
	default:
		return s.Badge.Messages
	}
}

func appendNumber(b []byte, name string, n uint64) []byte {
	return appendUint(append(b, name...), n)
}

func appendBool(b []byte, name string, v bool) []byte {
	return strconv.AppendBool(append(b, name...), v)
}
