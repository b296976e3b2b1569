package evidence

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark/relay/nostrx"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// id is the id of an event, or a key.
func id(n int) string { return fmt.Sprintf("%064x", n) }

func who(n int) nostrx.PubKey { return nostrx.PubKey(id(n)) }

const (
	viewer = 1
	peer   = 2
	relay  = 99
)

// event is a message of the peer in the channel c, with more tags.
func event(n int, tags ...nostrx.Tag) nostrx.Event {
	return nostrx.Event{ID: nostrx.EventID(id(n)), PubKey: who(peer), Kind: nostrx.KindChat, CreatedAt: int64(n),
		Tags: append([]nostrx.Tag{{"h", "c"}}, tags...)}
}

func by(author int, e nostrx.Event) nostrx.Event { e.PubKey = who(author); return e }

// answers are the tags of a reply.
func answers(parent, root int) []nostrx.Tag {
	tags := []nostrx.Tag{{"e", id(parent), "", "reply"}}
	if root >= 0 {
		tags = append(tags, nostrx.Tag{"e", id(root), "", "root"})
	}
	return tags
}

// One reading of marked references: any case, the last valid mark, and a reply only where one is marked.
// covers: RL-101, RL-102, RL-103
func TestParseRefs(t *testing.T) {
	a, b := id(10), id(11)
	upper := strings.ToUpper(a)
	for name, c := range map[string]struct {
		tags         []nostrx.Tag
		reply        bool
		parent, root string
	}{
		"nothing":                    {nil, false, "", ""},
		"reply and root":             {[]nostrx.Tag{{"e", a, "", "root"}, {"e", b, "", "reply"}}, true, b, a},
		"reply alone":                {[]nostrx.Tag{{"e", a, "", "reply"}}, true, a, a},
		"root alone":                 {[]nostrx.Tag{{"e", a, "", "root"}}, false, "", ""},
		"not marked":                 {[]nostrx.Tag{{"e", a}, {"e", b, "wss://x"}}, false, "", ""},
		"a mention":                  {[]nostrx.Tag{{"e", a, "", "mention"}}, false, "", ""},
		"upper case":                 {[]nostrx.Tag{{"e", upper, "", "reply"}}, true, a, a},
		"the last reply":             {[]nostrx.Tag{{"e", a, "", "reply"}, {"e", b, "", "reply"}}, true, b, b},
		"the last root":              {[]nostrx.Tag{{"e", b, "", "root"}, {"e", a, "", "root"}, {"e", b, "", "reply"}}, true, b, a},
		"the last valid one":         {[]nostrx.Tag{{"e", a, "", "reply"}, {"e", "x", "", "reply"}}, true, a, a},
		"the last valid root":        {[]nostrx.Tag{{"e", a, "", "root"}, {"e", id(1)[1:], "", "root"}, {"e", b, "", "reply"}}, true, b, a},
		"a word in place of an id":   {[]nostrx.Tag{{"e", strings.Repeat("g", 64), "", "reply"}}, false, "", ""},
		"another tag with the marks": {[]nostrx.Tag{{"q", a, "", "reply"}}, false, "", ""},
	} {
		got := ParseRefs(event(1, c.tags...))
		if got != (Refs{Channel: "c", Reply: c.reply, Parent: c.parent, Root: c.root}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for name, tags := range map[string][]nostrx.Tag{
		"no channel": nil, "two channels": {{"h", "c"}, {"h", "d"}}, "the same twice": {{"h", "c"}, {"h", "c"}}, "no value": {{"h"}},
	} {
		if got := ParseRefs(nostrx.Event{Tags: tags}); got.Channel != "" {
			t.Errorf("%s: %q", name, got.Channel)
		}
	}
}

// A message is for agents only if that is all it says of its audience, whoever says it.
// covers: RL-185, RL-193, RL-195, RL-196
func TestQuiet(t *testing.T) {
	for name, c := range map[string]struct {
		tags []nostrx.Tag
		want bool
	}{
		"agents":        {[]nostrx.Tag{{"audience", "agents"}}, true},
		"beside others": {[]nostrx.Tag{{"p", id(1)}, {"audience", "agents"}}, true},
		"nothing":       {nil, false},
		"everyone":      {[]nostrx.Tag{{"audience", "everyone"}}, false},
		"twice":         {[]nostrx.Tag{{"audience", "agents"}, {"audience", "agents"}}, false},
		"and everyone":  {[]nostrx.Tag{{"audience", "agents"}, {"audience", "everyone"}}, false},
		"two values":    {[]nostrx.Tag{{"audience", "agents", "everyone"}}, false},
		"no value":      {[]nostrx.Tag{{"audience"}}, false},
		"another case":  {[]nostrx.Tag{{"audience", "Agents"}}, false},
	} {
		for _, author := range []int{peer, 7} {
			if got := quiet(by(author, event(1, c.tags...))); got != c.want {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
}

// Output of a workflow names its owner without mentioning them, unless it says so; only the relay's own
// word makes it one. Text is never read.
// covers: RL-197, RL-198, RL-199, RL-200, RL-201, RL-205, RL-206
func TestMentions(t *testing.T) {
	owner, third := who(viewer), who(3)
	output := []nostrx.Tag{{"p", id(viewer)}, {"p", id(3)}, {"buzz:workflow", "true"}, {"buzz:workflow-owner", id(viewer)}}
	and := func(name, value string) []nostrx.Tag {
		return append(slices.Clone(output), nostrx.Tag{name, value})
	}
	said := and("buzz:workflow-mention", id(viewer))
	for name, c := range map[string]struct {
		tags         []nostrx.Tag
		author       int
		relay        nostrx.PubKey
		owner, third bool
	}{
		"a plain mention":        {[]nostrx.Tag{{"p", id(viewer)}}, peer, who(relay), true, false},
		"nobody":                 {nil, peer, who(relay), false, false},
		"output":                 {output, relay, who(relay), false, true},
		"output that mentions":   {said, relay, who(relay), true, true},
		"copied by a user":       {output, peer, who(relay), true, true},
		"with an unknown relay":  {output, relay, "", true, true},
		"two owners":             {and("buzz:workflow-owner", id(3)), relay, who(relay), true, true},
		"marked twice":           {and("buzz:workflow", "true"), relay, who(relay), true, true},
		"mentions somebody else": {and("buzz:workflow-mention", id(3)), relay, who(relay), false, true},
		"another's workflow":     {[]nostrx.Tag{{"p", id(viewer)}, {"buzz:workflow", "true"}, {"buzz:workflow-owner", id(3)}}, relay, who(relay), true, false},
		"not a workflow":         {[]nostrx.Tag{{"p", id(viewer)}, {"buzz:workflow", "false"}, {"buzz:workflow-owner", id(viewer)}}, relay, who(relay), true, false},
	} {
		e := by(c.author, event(1, c.tags...))
		e.Content = "@Owner " + id(viewer)
		if got := mentions(e, owner, c.relay); got != c.owner {
			t.Errorf("%s: the owner: %v", name, got)
		}
		if got := mentions(e, third, c.relay); got != c.third {
			t.Errorf("%s: the third: %v", name, got)
		}
	}
}

func TestMillis(t *testing.T) {
	for text, want := range map[string]uint16{"0": 0, "5": 5, "999": 999, "1000": 0, "007": 0, "-1": 0, "1.5": 0, "": 0, "x": 0} {
		if got := millis(event(1, nostrx.Tag{"ms", text})); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
}
