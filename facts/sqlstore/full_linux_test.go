package sqlstore_test

import (
	"errors"
	"os/signal"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/facts/sqlstore"
	"github.com/tidemark-im/tidemark/readstate"
)

// A disk that fills up under a commit is a commit that did not happen.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("a small disk needs the right to mount one: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	st, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(dir, "facts.db"), sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lsn := readstate.LSN(0)
	for ; lsn < 10_000; lsn++ {
		if err = advance(t.Context(), st, facts.Fence{Term: 1, LSN: lsn}); err != nil {
			break
		}
	}
	if !errors.Is(err, facts.ErrAborted) || !errors.Is(err, facts.ErrUnavailable) ||
		!errors.Is(err, sqlstore.ErrFull) {
		t.Errorf("after %d commits: %v", lsn, err)
	}
	full(t, st, lsn)
	// It stays so, and is no less exact for it.
	err = advance(t.Context(), st, facts.Fence{Term: 1, LSN: lsn})
	if !errors.Is(err, sqlstore.ErrFull) {
		t.Errorf("once more: %v", err)
	}
	full(t, st, lsn)
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	if err := advance(t.Context(), st, facts.Fence{Term: 1, LSN: lsn}); err != nil {
		t.Errorf("with more room: %v", err)
	}
	full(t, st, lsn+1)
	if err := st.Close(); err != nil {
		t.Error(err)
	}
}

// A commit that fails in another way leaves it open what became of it; the fence tells.
func TestUncertainCommit(t *testing.T) {
	st, path := open(t, sqlstore.Options{})
	defer st.Close()
	for lsn := range readstate.LSN(3) {
		if err := advance(t.Context(), st, facts.Fence{Term: 1, LSN: lsn}); err != nil {
			t.Fatal(err)
		}
	}
	var log unix.Stat_t
	if err := unix.Stat(path+"-wal", &log); err != nil {
		t.Fatal(err)
	}
	// A file may not grow beyond what the log has now, so the commit cannot be written.
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	limit := func(n uint64) {
		t.Helper()
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: was.Max}); err != nil {
			t.Fatal(err)
		}
	}
	limit(uint64(log.Size))
	err := advance(t.Context(), st, facts.Fence{Term: 1, LSN: 3})
	limit(was.Cur)
	if !errors.Is(err, facts.ErrUnavailable) || errors.Is(err, facts.ErrAborted) {
		t.Errorf("commit that cannot be written: %v", err)
	}
	oneLine(t, err)
	full(t, st, 3)
	if err := advance(t.Context(), st, facts.Fence{Term: 1, LSN: 3}); err != nil {
		t.Errorf("commit after it: %v", err)
	}
	full(t, st, 4)
}
