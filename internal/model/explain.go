package model

import (
	"fmt"
	"strings"
)

// Verdict is the judgement over one entry.
type Verdict struct {
	Seq      Seq
	Revision Revision // 0: none
	Author   MemberID
	Reason   Reason
	Directed bool // counts and is directed at the member
}

// Explanation says why a member's numbers are what they are.
type Explanation struct {
	Member     MemberID
	Scope      ScopeID
	Values     Values
	Row        RowInfo
	Verdicts   []Verdict     // one per entry, in order
	Counted    []Revision    // those that make up Unread, ascending
	Directed   []Revision    // those that make up Attention, ascending
	Activities []ActivitySeq // those that make up Activity, ascending
}

// Explain judges every entry of the scope for the member. Without a row it holds
// the zero values and no verdicts.
func (w *World) Explain(m MemberID, id ScopeID) Explanation {
	x := Explanation{Member: m, Scope: id, Values: w.Values(m, id)}
	row, ok := w.Row(m, id)
	if !ok {
		return x
	}
	x.Row = row
	s := w.scopes[id]
	r := s.rows[m]
	for _, e := range s.entries {
		v := Verdict{Seq: e.seq, Revision: e.revision, Author: e.author}
		v.Reason = w.verdict(s, m, r, e)
		if v.Reason == Counts {
			x.Counted = append(x.Counted, e.revision)
			if v.Directed = directed(s, m, e); v.Directed {
				x.Directed = append(x.Directed, e.revision)
			}
		}
		x.Verdicts = append(x.Verdicts, v)
	}
	for _, a := range s.activities {
		if w.signals(s, m, r, a) {
			x.Activities = append(x.Activities, a.seq)
		}
	}
	return x
}

// String prints the explanation in a few lines, for failing tests.
func (x Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s in %s: %s\n", x.Member, x.Scope, x.Values)
	fmt.Fprintf(&b, "  row: %+v\n", x.Row)
	fmt.Fprintf(&b, "  counted %v directed %v activities %v\n", x.Counted, x.Directed, x.Activities)
	for _, v := range x.Verdicts {
		fmt.Fprintf(&b, "  seq %d rev %d by %s: %s", v.Seq, v.Revision, v.Author, v.Reason)
		if v.Directed {
			b.WriteString(", directed")
		}
		b.WriteByte('\n')
	}
	return b.String()
}
