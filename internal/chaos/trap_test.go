package chaos

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
)

// place is where in its work a server is killed.
type place string

const (
	// answered: from outside, once the judge holds so many answers. What the server does at that
	// moment is chance.
	answered place = "answered"
	// resting: from outside, while nobody sends anything. The counts in memory are judged first.
	resting place = "resting"
	// opening: before one of the statements with which a process starts, migrations included.
	opening place = "opening"
	// loading: before a statement that reads, those of hydration among them.
	loading place = "loading"
	// beginning: before a writing transaction begins.
	beginning place = "beginning"
	// fencing: the transaction is open, its first statement has not run.
	fencing place = "fencing"
	// writing: between the statements that write.
	writing place = "writing"
	// committing: everything is written, COMMIT has not run.
	committing place = "committing"
	// syncing: COMMIT is running.
	syncing place = "syncing"
	// committed: COMMIT has come back, memory knows nothing of it.
	committed place = "committed"
	// answering: memory knows, the caller does not.
	answering place = "answering"
)

// inside are the places that lie within a commit and its way to the caller.
var inside = []place{beginning, fencing, writing, committing, syncing, committed, answering}

// blow is a planned kill.
type blow struct {
	Place place `json:"place"`
	After int   `json:"after"` // the place is reached so many times before; the last one kills
	// Spin is for syncing: how long another thread counts from the start of COMMIT before it
	// kills. It moves the kill through the writing and syncing of the log.
	Spin int `json:"spin,omitempty"`
}

func (b blow) String() string {
	if b.Place == syncing {
		return fmt.Sprintf("%s, time %d, after counting to %d", b.Place, b.After, b.Spin)
	}
	return fmt.Sprintf("%s, time %d", b.Place, b.After)
}

// trap kills its own process at one place. The zero value never does.
type trap struct {
	set        atomic.Pointer[blow]
	left       atomic.Int64
	statements atomic.Int64 // so far
}

func (t *trap) arm(b blow) {
	t.left.Store(int64(b.After))
	t.set.Store(&b)
}

// reach says that the process is at a place.
func (t *trap) reach(at place) {
	b := t.set.Load()
	if b == nil || b.Place != at || t.left.Add(-1) != 0 {
		return
	}
	if at != syncing {
		die()
	}
	go func() {
		sink := 0
		for i := range b.Spin {
			sink += i
		}
		if sink >= 0 {
			die()
		}
	}()
}

// beginnings are what a writing transaction begins with, on each kind of database.
var beginnings = []string{"BEGIN IMMEDIATE", "BEGIN ISOLATION LEVEL READ COMMITTED", "START TRANSACTION"}

// statement is told of every SQL statement before it runs.
func (t *trap) statement(query string) {
	t.statements.Add(1)
	t.reach(opening)
	query = strings.TrimSpace(query)
	switch verb, _, _ := strings.Cut(query, " "); {
	case slices.Contains(beginnings, query):
		t.reach(beginning)
	case query == "COMMIT":
		t.reach(committing)
		t.reach(syncing)
	case strings.HasPrefix(query, "UPDATE workspaces SET lsn"):
		t.reach(fencing)
	case verb == "SELECT":
		t.reach(loading)
	case verb == "INSERT" || verb == "UPDATE" || verb == "DELETE":
		t.reach(writing)
	}
}

// answers lets a killed server have done its work and not have said so.
func (t *trap) answers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w = answerTrap{w, t}
		}
		next.ServeHTTP(w, r)
	})
}

type answerTrap struct {
	http.ResponseWriter
	trap *trap
}

// WriteHeader implements http.ResponseWriter.
func (a answerTrap) WriteHeader(status int) {
	if status < http.StatusMultipleChoices {
		a.trap.reach(answering)
	}
	a.ResponseWriter.WriteHeader(status)
}

// die is kill -9 from within: nothing is closed, flushed or deferred.
func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	panic(fmt.Sprint("killed and still here: ", err))
}
