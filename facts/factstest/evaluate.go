package factstest

import (
	"context"
	"fmt"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// Evaluated is what durable rows alone say about one member in one scope.
type Evaluated struct {
	Row       readstate.Row
	Values    readstate.Values
	Presented readstate.Presented
	Present   bool
}

// Evaluate reads every page of a member and evaluates its rows, without any memory beside them.
func Evaluate(
	ctx context.Context, v facts.View, w facts.WorkspaceKey, m readstate.MemberInfo, limit int,
	now int64,
) (map[readstate.ScopeID]Evaluated, error) {
	out := map[readstate.ScopeID]Evaluated{}
	cursor := ""
	for {
		page, err := v.Page(ctx, facts.PageQuery{
			Workspace: w, Member: m.Key, Cursor: cursor, Limit: limit,
		})
		if err != nil {
			return nil, err
		}
		scopes := map[readstate.ScopeKey]*readstate.PageScope{}
		for i := range page.Scopes {
			scopes[page.Scopes[i].Info.Key] = &page.Scopes[i]
		}
		for i := range page.Rows {
			row := &page.Rows[i]
			s := scopes[row.Scope]
			if s == nil {
				return nil, fmt.Errorf("page has row of scope %d without the scope", row.Scope)
			}
			e, err := evaluateRow(row, s, scopes[s.Info.Parent], now)
			if err != nil {
				return nil, fmt.Errorf("%s in %s: %w", m.ID, s.Info.ID, err)
			}
			out[s.Info.ID] = e
		}
		if page.Next == "" {
			return out, nil
		}
		cursor = page.Next
	}
}

func evaluateRow(
	row *readstate.PageRow, s, parent *readstate.PageScope, now int64,
) (Evaluated, error) {
	base := row.Row.Point.Base(s.Ranks.Floor)
	terms := readstate.Terms{
		Type: s.Info.Type, Head: s.Ranks.Head, Floor: s.Ranks.Floor,
		Removed:    above(s.Removed, row.Removed, base),
		Everyone:   above(s.Everyone, row.Everyone, base),
		SignalHead: s.Ranks.SignalHead, Point: row.Row.Point, Activity: row.Row.Activity,
		Writer: row.Writer,
	}
	for i := range row.Pairs {
		terms.Blocked = append(terms.Blocked, row.Pairs[i].Pair(s.Info.Type, row.Member, base))
	}
	values, err := terms.Values()
	if err != nil {
		return Evaluated{}, err
	}
	own := readstate.Standing{
		Joined: row.Row.Joined, Visible: row.Row.Visible, Archived: s.Info.Archived,
		Manual: row.Row.Manual.Set, Busy: s.Info.Active && s.Info.Thinking,
	}
	var up *readstate.Standing
	var upLevel *readstate.Notification
	same := true
	if s.Info.Type == readstate.Thread {
		up = &readstate.Standing{}
		same = false
		if row.Parent != nil {
			up.Joined, up.Visible = row.Parent.Row.Joined, row.Parent.Row.Visible
			up.Archived = parent.Info.Archived
			upLevel = &row.Parent.Row.Notification
			same = row.Parent.Row.Epoch == row.Row.ParentEpoch
		}
	}
	own.Level = readstate.LevelAt(now, row.Row.Notification, upLevel)
	present := own.Joined && own.Visible &&
		(up == nil || (up.Joined && up.Visible && same))
	return Evaluated{
		Row: row.Row, Values: values, Present: present,
		Presented: own.Present(own.Counts(up, same), values),
	}, nil
}

// above counts a set's revisions above base, from its blocks' counts and the bits of base's.
func above(
	blocks []readstate.BlockCount, bits readstate.BlockBits, base readstate.Revision,
) uint64 {
	var n uint64
	for _, b := range blocks {
		if b.Block >= readstate.BlockOf(base) {
			n += b.Count
		}
	}
	if bits.Bits != nil {
		n -= bits.Bits.CountThrough(base)
	}
	return n
}

// Differs compares what rows say with the oracle; empty when they agree.
func Differs(got Evaluated, known bool, want model.Values) string {
	if !want.Present {
		if known && got.Present {
			return fmt.Sprintf("row is present, oracle says %s", want)
		}
		return ""
	}
	if !known {
		return fmt.Sprintf("no row, oracle says %s", want)
	}
	same := got.Present && got.Values.Unread == uint64(want.Unread) &&
		got.Values.Attention == uint64(want.Attention) &&
		got.Values.Activity == uint64(want.Activity) &&
		got.Row.Activity.Read == readstate.Seq(want.ActivityRead) &&
		got.Row.Manual.Set == want.Manual && got.Row.Manual.Version == uint64(want.Version) &&
		got.Row.Manual.From == readstate.Revision(want.ManualFrom) &&
		got.Row.Read == readstate.Revision(want.Read) &&
		got.Presented.Shown == want.Shown && got.Presented.Unread == uint64(want.ShownUnread)
	if same {
		return ""
	}
	return fmt.Sprintf("got unread=%d attention=%d activity=%d shown=%t shownunread=%d row=%+v\n"+
		"oracle says %s", got.Values.Unread, got.Values.Attention, got.Values.Activity,
		got.Presented.Shown, got.Presented.Unread,
		got.Row, want)
}
