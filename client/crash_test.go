package client_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemark-im/tidemark/client"
)

// childEnv holds the orders of a child process.
const childEnv = "TIDEMARK_CLIENT_CHILD"

type orders struct {
	Base, Token, Path string
	Sessions          []string // to read, to mark, to read with all
	Step              string   // at which to stop and wait for the end; empty for none
	Stop              int64    // when it comes for so many times
	Lose              bool     // mark the one session, which is refused
}

// runChild is a process that does three things, says when each of them is shown, and then waits for
// the server. It is killed somewhere on the way.
func runChild() {
	var o orders
	if err := json.Unmarshal([]byte(os.Getenv(childEnv)), &o); err != nil {
		die(err)
	}
	var steps atomic.Int64
	moved := make(chan struct{}, 1)
	told := make(chan struct{}, 1)
	options := client.Options{OnEvent: func(e client.Event) {
		if e.Kind == client.EventLost {
			fmt.Println("lost", e.Loss.Operation.ID)
			defer func() { told <- struct{}{} }()
		}
		select {
		case moved <- struct{}{}:
		default:
		}
	}}
	options.OnStep(func(step string) {
		if step == o.Step && steps.Add(1) == o.Stop {
			fmt.Println("at", step)
			select {}
		}
	})
	token := func(context.Context) (string, error) { return o.Token, nil }
	c, err := client.OpenWith(context.Background(), o.Base, token, o.Path, options)
	if err != nil {
		die(err)
	}
	await := func(holds func() bool) {
		for !holds() {
			<-moved
		}
	}
	await(func() bool { _, complete := c.Sessions(); return complete })
	for i, id := range o.Sessions {
		s, err := c.Session(id)
		if err != nil {
			die(err)
		}
		switch {
		case i == 0 && !o.Lose:
			_, err = c.MarkRead(s)
		case i < 2:
			_, err = c.MarkUnread(s)
		default:
			err = c.MarkAllRead([]client.Session{s})
		}
		if err != nil {
			die(err)
		}
		fmt.Println("shown", id)
	}
	await(func() bool { return c.Status().Pending == 0 })
	if o.Lose {
		<-told
	}
	if err := c.Close(); err != nil {
		die(err)
	}
	fmt.Println("done")
}

func die(err error) {
	fmt.Println("error", err)
	os.Exit(1)
}

// blow says where a child is killed: at one of its own steps, or by the server, when it has an
// operation and before it carries it out, or after that and before it answers.
type blow struct {
	step          string
	nth           int64 // time that the step comes, from 1
	before, after int   // the number of the operation's request, from 1
}

// steps are those that a child is stopped and killed at: a change is planned, but nothing of it
// written; written, but not committed; committed, but not shown; shown. An operation is under way, but
// not sent; answered, but not settled, of which planning, writing and showing are steps again. Between
// sent and answered it is the server that kills, before it carries the operation out and after that.
var steps = []string{"answered", "applied", "commit", "send", "write", "written"}

// A client that is killed at any moment loses nothing of what it has shown, and does nothing twice:
// another device undoes the mark meanwhile, and it stays undone.
func TestKilledAnywhere(t *testing.T) {
	w := newWorld(t)
	blows := []blow{{before: 1}, {before: 2}, {before: 3}, {after: 1}, {after: 2}, {after: 3}}
	for _, b := range blows {
		w.killed(b)
	}
	for _, step := range steps {
		for n := int64(1); w.killed(blow{step: step, nth: n}); n++ {
			if n == 100 {
				t.Fatal("it never ends")
			}
		}
	}
	if got := slices.Sorted(maps.Keys(w.steps)); !slices.Equal(got, steps) {
		t.Errorf("killed at %v, want all of %v", got, steps)
	}
	t.Logf("killed %d times, at its own steps %v", w.rounds-len(steps), w.steps)
}

// killed runs a child into a blow and judges what is left; false when it came through.
func (w *world) killed(b blow) bool {
	w.t.Helper()
	w.rounds++
	name := func(what string) string { return fmt.Sprintf("%s-%d", what, w.rounds) }
	o := orders{
		Base: w.http.URL, Token: w.token("A"), Step: b.step, Stop: b.nth,
		Path:     filepath.Join(w.t.TempDir(), "client.db"),
		Sessions: []string{name("read"), name("mark"), name("all")},
	}
	for _, s := range o.Sessions {
		w.session(s, 2)
	}
	var puts atomic.Int64
	started := make(chan *os.Process, 1)
	kill := func() {
		_ = (<-started).Kill() // it may be through
		panic(http.ErrAbortHandler)
	}
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method != http.MethodPut || r.Header.Get("Direct") != "" {
			next.ServeHTTP(rw, r)
			return
		}
		n := int(puts.Add(1))
		if n == b.before {
			kill()
		}
		next.ServeHTTP(rw, r)
		if n == b.after {
			kill()
		}
	})
	ran := w.run(o, started)
	w.guard(nil)
	w.judge(o, ran.shown, fmt.Sprintf("killed by %+v at %q", b, ran.at))
	return !ran.through
}

// ran is what a child said before its end.
type ran struct {
	shown   map[string]bool // sessions
	lost    []string        // operations
	at      string          // the step at which it was killed
	through bool
}

// run runs a child, kills it where it stops, and hears it out.
func (w *world) run(o orders, started chan<- *os.Process) ran {
	w.t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	started <- cmd.Process
	said := ran{shown: map[string]bool{}}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "shown":
			said.shown[rest] = true
		case "lost":
			said.lost = append(said.lost, rest)
		case "at":
			said.at = rest
			w.steps[rest]++
			_ = cmd.Process.Kill()
		case "done":
			said.through = true
		case "error":
			w.t.Errorf("%+v: the child says %s", o, rest)
		}
	}
	_ = cmd.Wait() // it was killed
	return said
}

// judge undoes the mark where the server has it, lets a client come back, and looks at the end.
func (w *world) judge(o orders, shown map[string]bool, how string) {
	w.t.Helper()
	read, mark, all := o.Sessions[0], o.Sessions[1], o.Sessions[2]
	applied := w.said(mark) == "2 0 true 1"
	if applied {
		w.read(mark, 1, 1)
	}
	d := w.open(func(dev *deviceOptions) { dev.path = o.Path })
	d.ready(3 * w.rounds)
	d.drained()
	for _, s := range []string{read, all} {
		said := w.said(s)
		if shown[s] && said != "2 2 false 0" || said != "2 2 false 0" && said != "2 0 false 0" {
			w.t.Errorf("%s: %s is %s", how, s, said)
		}
	}
	said := w.said(mark)
	switch {
	case applied && said != "2 1 false 2":
		w.t.Errorf("%s: the mark was set twice: %s", how, said)
	case !applied && shown[mark] && said != "2 0 true 1":
		w.t.Errorf("%s: the mark was lost: %s", how, said)
	}
	if lost := d.Status().Lost; len(lost) > 1 || len(lost) == 1 && !applied {
		w.t.Errorf("%s: lost %+v", how, lost)
	}
	for _, s := range o.Sessions {
		d.shows(s, w.said(s))
	}
	if err := d.Close(); err != nil {
		w.t.Fatal(err)
	}
}
