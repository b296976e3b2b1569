package evidence

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// maxHops bounds how far references are followed.
const maxHops = 32

// Content tells the kinds of messages.
func Content(kind int) bool {
	return kind == nostrx.KindChat || kind == nostrx.KindStream || kind == nostrx.KindDiff
}

// Refs are the marked references of a message.
type Refs struct {
	Channel string // "" when it names none, or several
	Reply   bool
	Parent  string // of a reply
	Root    string // of a reply, as it is marked; the parent when no root is
}

// ParseRefs reads them. A mark with a wrong id does not count, and of several the last one does. A root
// alone makes no reply.
func ParseRefs(e nostrx.Event) Refs {
	var r Refs
	if channels := e.Values("h"); len(channels) == 1 {
		r.Channel = channels[0]
	}
	var parent, root string
	for _, tag := range e.Tags {
		if tag.Name() != "e" {
			continue
		}
		id := strings.ToLower(tag.At(1))
		if !nostrx.IsHex(id, 64) {
			continue
		}
		switch tag.At(3) {
		case "reply":
			parent = id
		case "root":
			root = id
		}
	}
	if parent == "" {
		return r
	}
	if root == "" {
		root = parent
	}
	r.Reply, r.Parent, r.Root = true, parent, root
	return r
}

// millis reads the milliseconds of a message, for its place on screen: "0" to "999", written plainly.
func millis(e nostrx.Event) uint16 {
	text := e.Value("ms")
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n > 999 || strconv.FormatUint(n, 10) != text {
		return 0
	}
	return uint16(n)
}

// broadcast tells a message to everybody.
func broadcast(e nostrx.Event) bool { return e.Value("broadcast") == "1" }

// quiet tells messages that are for agents only: exactly one audience, and exactly that one.
func quiet(e nostrx.Event) bool {
	var audiences []nostrx.Tag
	for _, tag := range e.Tags {
		if tag.Name() == "audience" {
			audiences = append(audiences, tag)
		}
	}
	return len(audiences) == 1 && slices.Equal(audiences[0], nostrx.Tag{"audience", "agents"})
}

// mentions tells whether a message names somebody. Output of a workflow, which the relay has signed
// itself, names its owner as the one it is done for; that is a mention only if it says so besides.
func mentions(e nostrx.Event, who, relay nostrx.PubKey) bool {
	if !slices.Contains(e.Values("p"), string(who)) {
		return false
	}
	workflow := relay != "" && e.PubKey == relay && e.Kind == nostrx.KindChat &&
		slices.Equal(e.Values("buzz:workflow"), []string{"true"}) &&
		slices.Equal(e.Values("buzz:workflow-owner"), []string{string(who)})
	return !workflow || slices.Contains(e.Values("buzz:workflow-mention"), string(who))
}
