package sqlstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
)

// A refused open says who has the database.
func TestLockNamesItsOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "facts.db.lock")
	l, err := takeLock(path)
	if err != nil {
		t.Fatal(err)
	}
	for text, says := range map[string]string{
		fmt.Sprintln(os.Getpid()): fmt.Sprintf("owned by this process (%d): it is open already", os.Getpid()),
		"4194305\n":               "owned by process 4194305",
		"":                        "owned by another process",
		"somebody\n":              "owned by another process",
		"-1\n":                    "owned by another process",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := takeLock(path); !errors.Is(err, facts.ErrNotOwner) || !strings.HasSuffix(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || len(text) > 0 {
		t.Errorf("a lock that nobody has says %q, %v", text, err)
	}
}

// An open that fails removes a lock file that it made, and no other one.
func TestLockIsDiscarded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "facts.db.lock")
	for _, stays := range []bool{false, true} {
		if stays {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		l, err := takeLock(path)
		if err == nil {
			err = l.discard()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) == stays {
			t.Errorf("made before %v: %v", stays, err)
		}
	}
}

// However often the file is removed and made again, there is never a second owner.
func TestLockIsExclusiveWhileItsFileComesAndGoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "facts.db.lock")
	var owners, taken atomic.Int64
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 300 {
				l, err := takeLock(path)
				if errors.Is(err, facts.ErrNotOwner) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := owners.Add(1); n != 1 {
					t.Errorf("%d owners at once", n)
				}
				taken.Add(1)
				l.made = (worker+i)%3 != 0 // so that a file that stays goes, too
				owners.Add(-1)
				if err := l.discard(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if taken.Load() == 0 {
		t.Error("nobody got the lock")
	}
}
