package sqlstore

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile reports whether it got the lock. It locks a byte far behind the text: others can read
// no byte that is locked.
func lockFile(f *os.File) (held bool, err error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	at := windows.Overlapped{OffsetHigh: 1}
	err = windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// discardFile closes a file and removes it. A file that somebody else has opened meanwhile cannot
// be removed here, and stays for them.
func discardFile(f *os.File) error {
	err := f.Close()
	_ = os.Remove(f.Name())
	return err
}
