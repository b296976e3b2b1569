package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tidemark-im/tidemark/facts"
)

// Options configure a store. The zero value is right for a server.
type Options struct {
	// Readers is the number of read transactions at a time; 4 when zero.
	Readers int
	// BusyTimeout is how long a statement waits for a lock of another process, and an open of a
	// database on a server for its owner to end; 5 s when zero. The owner of a file is alone, but for
	// a backup.
	BusyTimeout time.Duration
	// MaxBytes bounds the size of a database file, zero for the disk's size. A commit beyond
	// it fails like one on a full disk.
	MaxBytes int64
	// OnStatement, where set, is called with every statement before it runs.
	OnStatement func(ctx context.Context, query string)
	// Unsafe leaves out the sync after a commit where a session can choose: a crash of the machine
	// may lose what was acknowledged. For tests and benchmarks.
	Unsafe bool
	// Shared opens a database on a server without owning it: whoever does so owns its workspaces by
	// other means. A file has one owner in any case.
	Shared bool
	// Idle is how long a writing transaction of a shared store may keep others waiting, for its next
	// statement or with its locks: a process that was stopped, or whose way to the server broke, has its
	// transaction ended by the server, so that another one can have its workspaces. Servers that count in
	// seconds take the next whole one. Zero is DefaultIdle.
	Idle time.Duration
}

// DefaultIdle is the Idle of a shared store for which nothing else is said.
const DefaultIdle = 3 * time.Second

// idle is how long a writing transaction of a session in a role may keep others waiting, zero for any
// time.
func (o *Options) idle(r role) time.Duration {
	switch {
	case !o.Shared || r != roleWriting:
		return 0
	case o.Idle > 0:
		return o.Idle
	}
	return DefaultIdle
}

// Store implements facts.Store on a database of database/sql.
type Store struct {
	d       *dialect
	writer  *pool
	readers *pool
	// registrar is for the registry of nodes, which waits for no group that is being committed; nil
	// where there is one writer at a time in any case.
	registrar *pool
	owner     io.Closer

	once     sync.Once
	closeErr error
}

var _ facts.Store = (*Store)(nil)

// TakeOver implements facts.Store.
func (st *Store) TakeOver(ctx context.Context) ([]facts.WorkspaceRow, error) {
	t, err := st.begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("take over: %w", err)
	}
	defer t.Rollback()
	if _, err := t.exec(ctx, raiseTerms, 0); err != nil {
		return nil, err
	}
	rows, err := t.Workspaces(ctx)
	if err != nil {
		return nil, fmt.Errorf("take over: %w", err)
	}
	if err := t.Commit(ctx); err != nil {
		return nil, fmt.Errorf("take over: %w", err)
	}
	return rows, nil
}

// Fences implements facts.Store. It holds the write lock while it reads.
func (st *Store) Fences(
	ctx context.Context, keys []facts.WorkspaceKey,
) (map[facts.WorkspaceKey]facts.Fence, error) {
	t, err := st.begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("fences: %w", err)
	}
	defer t.Rollback()
	return t.fences(ctx, keys)
}

// Close implements facts.Store. It gives the ownership up last.
func (st *Store) Close() error {
	st.once.Do(func() {
		err := errors.Join(st.readers.close(), st.writer.close())
		if st.registrar != nil {
			err = errors.Join(err, st.registrar.close())
		}
		if err = errors.Join(err, st.owner.Close()); err != nil {
			st.closeErr = st.d.fail("close", err)
		}
	})
	return st.closeErr
}
