//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Two terminals of one person, and somebody who writes.
func TestChat(t *testing.T) {
	o := newOffice(t)
	o.says("General", "Good morning", "")
	o.says("General", "The guests arrive at three", "")
	here, there := o.chat(o.url, "here.db"), o.chat(o.url, "there.db")
	for _, x := range []*terminal{here, there} {
		x.room("General", "2")
		x.room("Parser", "")
		x.shows("online · ada in acme")
	}
	o.says("General", "ada, do you know the room?", "ada")
	here.room("General", "3 @1")
	there.room("General", "3 @1")

	here.keys("n\r") // looking at it reads it, everywhere
	here.shows("The guests arrive at three")
	here.shows("─ new")
	here.room("General", "")
	there.room("General", "")

	here.keys("The red one.\r")
	here.shows("  The red one.")
	here.await("an empty composer", func(screen string) bool { return !strings.Contains(screen, "> The red") })
	if said := o.read("General", o.ben); !strings.Contains(said, `"unread":1,`) {
		t.Errorf("for ben it is %s", said)
	}

	here.keys("\x1b[O") // another window comes to the front
	o.says("General", "Thanks!", "")
	here.shows("  Thanks!")
	here.room("General", "1")
	there.room("General", "1")
	here.keys("\x1b[I")
	there.room("General", "")

	there.keys("ju") // in the list
	there.room("General", "●")
	here.room("General", "●")
	if said := o.read("General", o.ada); !strings.Contains(said, `"manualUnread":true`) {
		t.Errorf("for ada it is %s", said)
	}
	there.keys("r")
	here.room("General", "")

	o.ask("POST", "/api/sessions/parser/messages", o.ada, `{"localId":"1","payload":{"text":"All tests pass."}}`)
	here.room("Parser", "•")
	there.keys("k\r")
	there.shows("  All tests pass.")
	here.room("Parser", "")
	there.keys("Go on.\r")
	there.shows("  Go on.")
	here.keys("\x1b")
	here.shows("q quit")
	here.keys("?")
	here.shows("mark as unread and leave")
	here.keys("?q")
	here.leaves(exitDone)
	there.keys("\x03")
	there.leaves(exitDone)
}

// What is marked without a connection waits in the file, also for another run, and reaches the server.
func TestChatOffline(t *testing.T) {
	o := newOffice(t)
	w := newWire(t, o.url)
	x := o.chat(w.url(), "marks.db")
	x.room("Parser", "")
	x.shows("online")
	w.drop()
	x.shows("offline")
	x.keys("u")
	x.room("Parser", "↑ ●")
	x.shows("offline · 1 mark waiting")
	x.keys("ju")
	x.room("General", "↑ ●")
	x.shows("2 marks waiting")
	x.keys("\rHello?\r")
	x.shows("Not sent: the server does not answer. Enter sends it again.")
	x.shows("> Hello?")
	x.keys("\x1b")
	x.shows("q quit")
	x.keys("q")
	x.leaves(exitDone)
	if said := o.read("General", o.ada); !strings.Contains(said, `"manualUnread":false`) {
		t.Errorf("before, the server has %s", said)
	}

	x = o.chat(w.url(), "marks.db")
	x.shows("Connecting…")
	x.shows("Not connected: the server does not answer.")
	x.shows("offline")
	there := o.chat(o.url, "there.db")
	there.shows("online")
	w.mend()
	x.keys("c")
	x.room("Parser", "●")
	x.room("General", "●")
	x.shows("online")
	there.room("Parser", "●")
	there.room("General", "●")
	if said := o.read("General", o.ada); !strings.Contains(said, `"manualUnread":true`) {
		t.Errorf("afterwards the server has %s", said)
	}
	if said := o.ask("GET", "/api/sessions/parser", o.ada, ""); !strings.Contains(said, `"manualUnread":true`) {
		t.Errorf("afterwards the server has %s", said)
	}
	x.keys("q")
	x.leaves(exitDone)
}

// The screen follows the terminal's size; without colours it says the same.
func TestChatScreen(t *testing.T) {
	o := newOffice(t)
	o.says("General", "A longer text that has to be broken where the terminal is not as wide as it was", "")
	x := o.chat(o.url, "chat.db")
	x.room("General", "1")
	if !x.coloured() {
		t.Error("it has no colours")
	}
	x.keys("j\r")
	x.shows("  A longer text that has to be broken where the terminal is not")
	x.resize(30, 12)
	x.await("the room alone, broken anew", func(screen string) bool {
		lines := strings.Split(screen, "\n")
		return len(lines) == 12 && strings.HasPrefix(lines[0], "General") && !strings.Contains(screen, "│") &&
			strings.Contains(screen, "  A longer text that has to")
	})
	x.keys("\t")
	x.shows(" Quiet")
	x.resize(10, 4)
	x.shows("The termi")
	x.resize(80, 24)
	x.await("all of it", func(screen string) bool {
		lines := strings.Split(screen, "\n")
		return len(lines) == 24 && strings.Contains(lines[23], "online") && strings.Contains(screen, "│")
	})
	if err := x.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	x.leaves(exitDone)

	x = o.chat(o.url, "chat.db", "NO_COLOR=1")
	x.shows("General")
	x.shows("online")
	if x.coloured() {
		t.Error("it has colours though NO_COLOR is set")
	}
	busy := o.chat(o.url, "chat.db")
	busy.shows("is in use by another chat")
	busy.leaves(exitFailed)
	x.keys("q")
	x.leaves(exitDone)
}

// A token that is not taken is said, and one that is put into the file is taken.
func TestChatSignedOut(t *testing.T) {
	o := newOffice(t)
	file := filepath.Join(o.dir, "token")
	write := func(token string) {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("nonsense")
	x := startChat(t, 90, 20, []string{"TIDEMARK_URL=" + o.url, "TIDEMARK_TOKEN_FILE=" + file})
	x.shows("signed out: the server takes no token that there is")
	write(o.ada)
	x.keys("c")
	x.room("General", "")
	x.shows("online · ada in acme")
	x.keys("q")
	x.leaves(exitDone)
	if made, _ := filepath.Glob(filepath.Join(homeOf(x), "*", "tidemark", "chat.db")); len(made) != 1 {
		made, _ = filepath.Glob(filepath.Join(homeOf(x), "*"))
		t.Errorf("its file is not among the settings, which are %v", made)
	}

	x = startChat(t, 90, 20, nil, o.url+"/#device=laptop&token="+o.ada)
	x.room("General", "")
	x.keys("q")
	x.leaves(exitDone)
}

// homeOf is the directory of the settings, hidden or not.
func homeOf(x *terminal) string {
	for _, v := range x.cmd.Env {
		if home, ok := strings.CutPrefix(v, "HOME="); ok {
			if _, err := os.Stat(filepath.Join(home, ".config")); err == nil {
				return home + string(filepath.Separator)
			}
			return filepath.Join(home, "Library")
		}
	}
	return ""
}
