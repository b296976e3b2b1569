package readstate_test

import (
	"fmt"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
)

func TestWords(t *testing.T) {
	for _, c := range []struct {
		value fmt.Stringer
		word  string
	}{
		{readstate.Channel, "channel"}, {readstate.DM, "dm"}, {readstate.Thread, "thread"},
		{readstate.Task, "task"}, {readstate.Session, "session"},
		{readstate.ScopeType(0), "ScopeType(0)"}, {readstate.ScopeType(6), "ScopeType(6)"},
		{readstate.LevelInherit, "inherit"}, {readstate.LevelAll, "all"},
		{readstate.LevelMentions, "mentions"}, {readstate.LevelNone, "none"},
		{readstate.Level(4), "Level(4)"},
		{readstate.HistoryJoined, "joined"}, {readstate.HistoryShared, "shared"},
		{readstate.Applied, "applied"}, {readstate.Unchanged, "unchanged"},
		{readstate.DisplayMessages, "messages"}, {readstate.DisplayConversations, "conversations"},
		{readstate.DisplayAttention, "attention"}, {readstate.BadgeDisplay(3), "BadgeDisplay(3)"},
	} {
		if got := c.value.String(); got != c.word {
			t.Errorf("%#v prints %q, not %q", c.value, got, c.word)
		}
		kind, kindOK := readstate.ParseScopeType(c.word)
		level, levelOK := readstate.ParseLevel(c.word)
		display, displayOK := readstate.ParseBadgeDisplay(c.word)
		switch v := c.value.(type) {
		case readstate.ScopeType:
			wellKnown := v >= readstate.Channel && v <= readstate.Session
			if kindOK != wellKnown || wellKnown && kind != v || levelOK || displayOK {
				t.Errorf("%q parses as %v (%t)", c.word, kind, kindOK)
			}
		case readstate.Level:
			wellKnown := v <= readstate.LevelNone
			if levelOK != wellKnown || wellKnown && level != v || kindOK || displayOK {
				t.Errorf("%q parses as %v (%t)", c.word, level, levelOK)
			}
		case readstate.BadgeDisplay:
			wellKnown := v <= readstate.DisplayAttention
			if displayOK != wellKnown || wellKnown && display != v || kindOK || levelOK {
				t.Errorf("%q parses as %v (%t)", c.word, display, displayOK)
			}
		}
	}
	for _, word := range []string{"", "Channel", " dm", "al"} {
		if _, ok := readstate.ParseScopeType(word); ok {
			t.Errorf("%q is a scope type", word)
		}
		if _, ok := readstate.ParseLevel(word); ok {
			t.Errorf("%q is a level", word)
		}
		if _, ok := readstate.ParseBadgeDisplay(word); ok {
			t.Errorf("%q is a display", word)
		}
	}
}

func TestLevelAt(t *testing.T) {
	inherit := readstate.Notification{}
	none := readstate.Notification{Level: readstate.LevelNone}
	brief := readstate.Notification{Level: readstate.LevelNone, Until: 10}
	mentions := readstate.Notification{Level: readstate.LevelMentions, Until: 20}
	for _, c := range []struct {
		name   string
		now    int64
		own    readstate.Notification
		parent *readstate.Notification
		want   readstate.Level
	}{
		{"nothing set", 5, inherit, nil, readstate.LevelAll},
		{"own", 5, none, nil, readstate.LevelNone},
		{"own without end", 1 << 50, none, nil, readstate.LevelNone},
		{"own before its end", 9, brief, nil, readstate.LevelNone},
		{"own at its end", 10, brief, nil, readstate.LevelAll},
		{"own after its end", 11, brief, nil, readstate.LevelAll},
		{"own wins", 5, none, &mentions, readstate.LevelNone},
		{"ended own hides the parent's", 10, brief, &none, readstate.LevelAll},
		{"parent's", 19, inherit, &mentions, readstate.LevelMentions},
		{"parent's ended", 20, inherit, &mentions, readstate.LevelAll},
		{"parent has none", 5, inherit, &inherit, readstate.LevelAll},
	} {
		if got := readstate.LevelAt(c.now, c.own, c.parent); got != c.want {
			t.Errorf("%s: %s, not %s", c.name, got, c.want)
		}
	}
}

func TestRulesByType(t *testing.T) {
	for kind, rules := range map[readstate.ScopeType]struct{ targeted, neutral bool }{
		readstate.Channel: {false, true}, readstate.DM: {false, true},
		readstate.Thread: {false, true}, readstate.Task: {true, true},
		readstate.Session: {false, false},
	} {
		if kind.Targeted() != rules.targeted || kind.NeutralWriters() != rules.neutral {
			t.Errorf("%s: targeted %t, neutral writers %t", kind, kind.Targeted(), kind.NeutralWriters())
		}
	}
}
