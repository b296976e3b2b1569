//go:build unix

package sqlstore

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile reports whether it got the lock.
func lockFile(f *os.File) (held bool, err error) {
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// discardFile removes a locked file, and only then unlocks it: in this order nobody can lock the
// file at the path while it is being removed.
func discardFile(f *os.File) error {
	return errors.Join(os.Remove(f.Name()), f.Close())
}
