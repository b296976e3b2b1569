//go:build unix

package sqlstore

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tidemark-im/tidemark/facts"
)

// lockFile takes the exclusive lock that is the ownership of a database. The operating system
// gives it up with the process. The file stays: removing it would let two owners in.
func lockFile(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%w: database is owned by another process", facts.ErrNotOwner)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
