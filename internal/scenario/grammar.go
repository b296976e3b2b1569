package scenario

import "strings"

// form is one shape of statement. Pattern is what people read in an error message and in the
// document, and at the same time what the matcher follows:
//
//	word        itself                   <kind>      one word of this kind
//	[ ... ]     may be left out          <kind...>   one or more, commas and ranges allowed
//
// Fields lists key:kind pairs that may follow anywhere; flags are bare words after the pattern.
type form struct {
	pattern  string
	fields   string
	flags    string
	mentions bool
	answers  bool // may carry "->"
	part     Part
	about    string // one line for people

	verb     string
	elements []element
	keys     []fieldSpec
}

type element struct {
	literal  string
	slot     string
	many     bool
	optional []element
}

type fieldSpec struct {
	key, kind string
}

// Field kinds: n number, b true or false, w word, t time offset, m message, number, "head" or
// "none", M messages or "none", P members or "none", S scopes or "none", v number or "none".
const (
	rowFields = "unread:n attention:n activity:n shown:b shownUnread:n manual:b level:w " +
		"archived:b revision:n read:m version:n from:m replies:n latest:m state:w name:w " +
		"first:m firstAttention:m explained:M"
	totalFields  = "messages:n conversations:n attention:n"
	answerFields = "read:m manual:b version:n from:m unread:n attention:n shown:b " +
		"shownUnread:n revision:n seq:n"
	postFields = "kind:w principal:P seen:m via:w"
	postFlags  = "silent baseline broadcast readable unreadable"
)

// forms is the language. Order matters only among forms of one verb: the first that fits wins.
var forms = compileForms([]form{
	// People and places. Set up with the rights of a backend.
	{pattern: "member <new-member...>", about: "people who are in the workspace only"},
	{pattern: "bot <new-member...>", about: "members of kind agent"},
	{pattern: "channel <new-scope> [: <joined...>]", fields: "history:w tags:w name:w",
		about: "a channel and who joined it before the first message"},
	{pattern: "dm <new-scope> : <joined...>", about: "a direct conversation"},
	{pattern: "thread <new-scope> in <scope> [on <message>] [: <followers...>]",
		about: "a thread under a channel, its root message, and who follows it"},
	{pattern: "join <joiner> <scope>", fields: "from:m read:m", answers: true,
		about: "join, or join again; from= and read= back-fill"},
	{pattern: "leave <member> <scope>", answers: true, about: "leave"},
	{pattern: "hide <member> <scope>", answers: true, about: "take the right to read away"},
	{pattern: "show <member> <scope>", answers: true, about: "give the right to read back"},
	{pattern: "archive <scope>", answers: true, about: "archive for everybody"},
	{pattern: "unarchive <scope>", answers: true, about: "bring it back"},
	{pattern: "erase <member>", answers: true, about: "erase the person"},

	// What members decide for themselves. Sent with the member's own token.
	{pattern: "mute <actor> <scope>", answers: true, about: "level none"},
	{pattern: "unmute <actor> <scope>", answers: true, about: "level all"},
	{pattern: "level <actor> <scope> <level>", answers: true,
		about: "all, mentions, none or inherit"},
	{pattern: "follow <actor> <scope>", answers: true, about: "follow a thread"},
	{pattern: "unfollow <actor> <scope>", answers: true, about: "stop following a thread"},
	{pattern: "block <actor> <member>", answers: true, about: "ignore what this member writes"},
	{pattern: "unblock <actor> <member>", answers: true, about: "hear this member again"},
	{pattern: "settings <actor>", fields: "badge:w receipts:w", answers: true,
		about: "what the badge shows; who sees receipts"},
	{pattern: "clock <actor> <offset>",
		about: "this clock is wrong by so much in everything sent from here on"},

	// Messages.
	{pattern: "post <actor> <new-message...> in <scope>", fields: postFields, flags: postFlags,
		mentions: true, answers: true, about: "write messages, one after the other"},
	{pattern: "reply <actor> <new-message...> in <scope>", fields: postFields, flags: postFlags,
		mentions: true, answers: true, about: "the same word for threads"},
	{pattern: "edit <message>", fields: "via:w", flags: "no-mentions", mentions: true,
		answers: true, about: "change the text, or the mentions where some are written"},
	{pattern: "delete <message...>", fields: "via:w", answers: true, about: "delete"},
	{pattern: "rewind <scope> to <message>", answers: true,
		about: "remove every message after this one"},
	{pattern: "trim <scope> through <message>", answers: true,
		about: "retention drops everything up to and with this one"},
	{pattern: "move <message...> to <scope>", flags: "counted", answers: true,
		about: "move messages to another scope, by default as read history"},
	{pattern: "react <actor> <message>", answers: true,
		about: "a reaction, which is low-signal"},

	// Reading.
	{pattern: "read <actor> <mark> [in <scope>]", fields: "version:v threads:S via:w",
		flags: "by-message", answers: true, about: "read through a message, a rank, or head"},
	{pattern: "unread <actor> [from <mark>] [in <scope>]", fields: "version:v via:w",
		flags: "by-message", answers: true, about: "mark unread by hand, with or without a start"},
	{pattern: "read-all <actor>", answers: true, about: "read every listed scope to its head"},
	{pattern: "send <call>", answers: true, about: "send what was prepared"},
	{pattern: "repeat", answers: true, about: "send the last request once more, byte for byte"},

	// Devices.
	{pattern: "device <new-device> of <member>", about: "another sign-in of a member"},
	{pattern: "stream <actor> as <new-device>", about: "a device that listens"},
	{pattern: "watch <device>", about: "let everything arrive, then count deltas from zero"},
	{pattern: "drop <device>", about: "cut the connection"},
	{pattern: "resume <device>", fields: "at:w", about: "reconnect at the last position"},
	{pattern: "reconnect <device>", about: "reconnect without a position"},
	{pattern: "refresh <device>", about: "fetch the list and merge it by position"},
	{pattern: "replay <device> <how>", about: "apply what came again: twice or backwards"},
	{pattern: "restart", about: "stop the server and start it on the same data"},
	{pattern: "random <number> in <scope...> : <member...>", fields: "seed:n",
		about: "so many random operations, each followed by a recount"},

	// Parts that come later.
	{pattern: "open-inbox <actor> as <new-call>", about: "open the overview"},
	{pattern: "ack-inbox <actor> <call>", answers: true,
		about: "acknowledge what was shown"},
	{pattern: "app <device> <action...>", part: Client, about: "a gesture in the real app"},

	// Expectations.
	{pattern: "expect <device> hello", fields: "resumed:b", about: "how the connection began"},
	{pattern: "expect <device> deltas <scope>", fields: "count:n removed:b " + rowFields,
		about: "deltas since watch; other fields are those of the newest"},
	{pattern: "expect <device> label <scope>", fields: "text:w", part: Client,
		about: "the number as the app prints it"},
	{pattern: "expect <device> push", fields: "badge:n", part: Push,
		about: "the number in the last push"},
	{pattern: "expect <actor> badge", fields: totalFields + " display:n hasUnread:b",
		about: "the badge"},
	{pattern: "expect <actor> tag <tag>", fields: totalFields, about: "totals of a team or folder"},
	{pattern: "expect <actor> parent <scope>", fields: totalFields,
		about: "totals of what lies under a scope"},
	{pattern: "expect <actor> type <type>", fields: totalFields, about: "totals of a scope type"},
	{pattern: "expect <actor> rows [<type>]", fields: "count:n shown:n unread:n messages:n",
		about: "the listed rows, folded"},
	{pattern: "expect <actor> workspace", fields: "hasUnread:b",
		about: "the dot in the list of workspaces"},
	{pattern: "expect <actor> page <scope>", fields: "limit:n before:m after:m count:n " +
		"messages:M hasMore:b unreadBefore:v readThrough:m", about: "one page of messages"},
	{pattern: "expect <actor> readers <message>", fields: "are:P",
		about: "who has read through it"},
	{pattern: "expect <actor> inbox", fields: "count:n senders:P accepted:n acknowledged:n",
		about: "the newly-unread badge"},
	{pattern: "expect <actor> <scope> absent", about: "not listed, and not found when asked for"},
	{pattern: "expect <actor> <scope> [or hydrating]", fields: rowFields,
		about: "one row, equal on every surface"},
})

var outcomes = []string{"ok", "applied", "unchanged", "conflict", "duplicate", "error"}

func compileForms(in []form) []form {
	for i := range in {
		f := &in[i]
		words := strings.Fields(strings.NewReplacer("[", " [ ", "]", " ] ").Replace(f.pattern))
		f.verb = words[0]
		f.elements, _ = compileElements(words[1:])
		for _, pair := range strings.Fields(f.fields) {
			key, kind, _ := strings.Cut(pair, ":")
			f.keys = append(f.keys, fieldSpec{key, kind})
		}
	}
	return in
}

func compileElements(words []string) (out []element, rest []string) {
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		switch {
		case word == "]":
			return out, words
		case word == "[":
			var e element
			e.optional, words = compileElements(words)
			out = append(out, e)
		case strings.HasPrefix(word, "<"):
			name := strings.Trim(word, "<>")
			out = append(out, element{
				slot: strings.TrimSuffix(name, "..."),
				many: strings.HasSuffix(name, "..."),
			})
		default:
			out = append(out, element{literal: word})
		}
	}
	return out, nil
}

func formsOf(verb string) []*form {
	var out []*form
	for i := range forms {
		if forms[i].verb == verb {
			out = append(out, &forms[i])
		}
	}
	return out
}

func (f *form) kindOf(key string) (string, bool) {
	for _, k := range f.keys {
		if k.key == key {
			return k.kind, true
		}
	}
	return "", false
}

func (f *form) keyNames() string {
	var names []string
	for _, k := range f.keys {
		names = append(names, k.key)
	}
	return strings.Join(names, ", ")
}

// reserved holds every literal of every pattern: no name may be spelled like one.
var reserved = func() map[string]bool {
	out := map[string]bool{"head": true, "none": true, "everyone": true, "prepare": true}
	var walk func([]element)
	walk = func(elements []element) {
		for _, e := range elements {
			if e.literal != "" {
				out[e.literal] = true
			}
			walk(e.optional)
		}
	}
	for _, f := range forms {
		walk(f.elements)
	}
	return out
}()
