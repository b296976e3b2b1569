package sqlstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/internal/filelock"
)

const (
	// lockAttempts bounds how often a lock file may vanish while it is being locked.
	lockAttempts = 8
	lockText     = 32 // bytes that are read of a lock file, more than any process id has
)

// lock is the ownership of a database: an exclusive lock on a file beside it, which the
// operating system gives up with the process. The text of the file is its owner's process id,
// for people; who owns the database is decided by the lock alone.
//
// The file outlives the lock. Only an open that made it and then failed removes it again, while
// it is still locked. So whoever gets a lock looks whether the file is still the one at its path.
type lock struct {
	file *os.File
	made bool // the file was not there before
}

func takeLock(path string) (*lock, error) {
	for range lockAttempts {
		l, err := openLock(path)
		if err != nil {
			return nil, err
		}
		held, err := filelock.Try(l.file)
		if err == nil && held && l.inPlace(path) {
			l.sign()
			return l, nil
		}
		if err == nil && !held {
			err = fmt.Errorf("%w: database is owned by %s", facts.ErrNotOwner, l.owner())
		}
		if err = errors.Join(err, l.file.Close()); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: others open and give up the database all the time", facts.ErrNotOwner)
}

func openLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		return &lock{file: f, made: true}, nil
	}
	if !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	return &lock{file: f}, nil
}

// inPlace reports that nobody has removed the file since it was opened.
func (l *lock) inPlace(path string) bool {
	mine, err := l.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

// sign writes who the owner is. A failure is no obstacle: the text is left empty then.
func (l *lock) sign() {
	if l.file.Truncate(0) == nil {
		_, _ = l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
}

// owner names whoever holds a lock that cannot be had.
func (l *lock) owner() string {
	text := make([]byte, lockText)
	n, err := l.file.ReadAt(text, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		n = 0
	}
	switch pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n]))); {
	case err != nil || pid <= 0:
		return "another process"
	case pid == os.Getpid():
		return fmt.Sprintf("this process (%d): it is open already", pid)
	default:
		return fmt.Sprintf("process %d", pid)
	}
}

// Close gives the lock up. The file stays, without a name in it.
func (l *lock) Close() error {
	_ = l.file.Truncate(0) // nobody reads it before there is another owner
	return l.file.Close()
}

// discard gives the lock up after an open that failed, and leaves nothing that it brought along.
func (l *lock) discard() error {
	if !l.made {
		return l.Close()
	}
	return discardFile(l.file)
}
