//go:build unix

package main

import (
	"fmt"
	"strings"
	"testing"
)

// A session that is merged away takes the open room with it; a mark that came too late is told.
func TestChatToldOfOthers(t *testing.T) {
	o := newOffice(t)
	w := newWire(t, o.url)
	o.ask("POST", "/api/sessions", o.ada, `{"id":"plan","title":"Plan"}`)
	o.ask("POST", "/api/sessions/parser/messages", o.ada, `{"localId":"1","payload":"All tests pass."}`)
	x := o.chat(w.url(), "chat.db")
	x.room("Parser", "•")
	x.keys("n\r")
	x.shows("  All tests pass.")
	x.room("Parser", "")
	o.ask("POST", "/api/sessions/parser/merge", o.ada, `{"opId":"m","into":"plan"}`)
	x.shows("This session was merged into another one, which is shown now.")
	x.await("the other one", func(screen string) bool {
		return strings.Contains(screen, "│ Plan") && strings.Contains(screen, "  All tests pass.") &&
			!strings.Contains(screen, "Parser")
	})

	x.keys("\x1b")
	x.shows("q quit")
	w.drop()
	x.shows("offline")
	x.keys("ju")
	x.room("General", "↑ ●")
	read := "/api/v1/workspaces/acme/scopes/General/read-state"
	o.says("General", "Nobody waits", "")
	o.ask("PUT", read, o.ada, `{"type":"unread","expectedVersion":0}`)
	o.ask("PUT", read, o.ada, `{"type":"read","readRevision":1,"expectedVersion":1}`)
	w.mend()
	x.keys("c")
	x.shows("What you marked in General was not taken: another device was first.")
	x.room("General", "")
	x.keys("q")
	x.leaves(exitDone)
}

// Older messages are loaded by scrolling up, and newer ones do not move them.
func TestChatHistory(t *testing.T) {
	o := newOffice(t)
	for i := range 130 {
		o.says("General", fmt.Sprintf("line %d.", i+1), "")
	}
	x := o.chat(o.url, "chat.db")
	x.room("General", "130")
	x.keys("n\r")
	x.shows("line 130.")
	x.room("General", "")
	x.await("the first line", func(screen string) bool {
		if strings.Contains(screen, "  line 1.") {
			return true
		}
		if !strings.Contains(screen, "loading older ones") {
			x.keys("\x1b[5~")
		}
		return false
	})
	o.says("General", "line 131.", "")
	x.room("General", "1") // it is below the screen, and nobody has seen it
	x.shows("  line 1.")
	x.keys(strings.Repeat("\x1b[6~", 20))
	x.shows("line 131.")
	x.room("General", "")
	x.keys("\x03")
	x.leaves(exitDone)
}
