package replay_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidemark-im/tidemark/internal/replay"
	"github.com/tidemark-im/tidemark/internal/trace"
)

// describe writes a plan in the order in which it is carried out.
func describe(p replay.Plan) string {
	var out []string
	if p.Channel != nil {
		out = append(out, fmt.Sprintf("make %s %s", p.Channel.Type, p.Channel.ID))
	}
	for _, j := range p.Joins {
		out = append(out, fmt.Sprintf("join %s %s", j.Scope, j.Member))
	}
	if s := p.Thread; s != nil {
		out = append(out, fmt.Sprintf("make %s %s under %s root %s", s.Type, s.ID, s.Parent, s.RootMessage))
	}
	m := p.Post
	text := fmt.Sprintf("%s %s in %s by %s having seen %d", m.OpID, m.MessageID, m.Scope, m.Author, *m.AdvanceCursor)
	if len(m.Mentions) > 0 {
		text += fmt.Sprint(" names ", m.Mentions)
	}
	if m.Everyone {
		text += " names everyone"
	}
	return strings.Join(append(out, text), "; ")
}

func TestPlan(t *testing.T) {
	const rows = "unix_seconds,channel,topic,sender,mentions,length\n" +
		"1,0,0,1,,1\n" + // a channel's first message
		"2,0,1,1,2 3,1\n" + // the next topic names people
		"3,0,0,2,,1\n" + // a reply opens the thread
		"4,0,0,2,1,1\n" +
		"5,0,1,4,* 4,1\n" + // a reply by a newcomer, to everyone and themself
		"6,7,5,1,,1\n" // another channel, where nobody has joined
	want := []string{
		"make channel c0; join c0 u1; row-1 m1 in c0 by u1 having seen 0",
		"join c0 u2; join c0 u3; row-2 m2 in c0 by u1 having seen 1 names [u2 u3]",
		"make thread t0 under c0 root m1; row-3 m3 in t0 by u2 having seen 0",
		"row-4 m4 in t0 by u2 having seen 1 names [u1]",
		"join c0 u4; make thread t1 under c0 root m2; " +
			"row-5 m5 in t1 by u4 having seen 0 names [u4] names everyone",
		"make channel c7; join c7 u1; row-6 m6 in c7 by u1 having seen 0",
	}
	for range 2 { // the plan follows from the rows alone
		in, err := trace.NewReader(strings.NewReader(rows))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		planner := replay.NewPlanner()
		for {
			row, err := in.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, describe(planner.Next(row)))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}
