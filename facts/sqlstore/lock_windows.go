package sqlstore

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/windows"

	"github.com/tidemark-im/tidemark/facts"
)

// lockFile takes the exclusive lock that is the ownership of a database. The operating system
// gives it up with the process. The file stays: removing it would let two owners in.
func lockFile(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		err = fmt.Errorf("%w: database is owned by another process", facts.ErrNotOwner)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
