package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidemark-im/tidemark/facts"
)

// Causes of an unavailable store that an operator can do something about. Each comes wrapped
// together with facts.ErrUnavailable.
var (
	// ErrFull means that the disk, or the size allowed for the database, is used up.
	ErrFull = errors.New("no space left for the database")
	// ErrWrite means that the system refused a write for another reason: a quota, a limit on the
	// size of files, a failing disk.
	ErrWrite = errors.New("cannot write the database: quota, file size limit or disk failure")
	// ErrCorrupt means that the file is damaged, or is not a database of this program.
	ErrCorrupt = errors.New("database is damaged or not a tidemark database")
	// ErrReadOnly means that the file or its directory cannot be opened or written, or that the server
	// lets this user in for reading at most.
	ErrReadOnly = errors.New("database cannot be opened or written")
	// ErrBusy means that somebody else holds a lock on the file or the rows.
	ErrBusy = errors.New("database is locked")
	// ErrNewer means that a newer version of this program has migrated the database.
	ErrNewer = errors.New("database is of a newer version")
)

// fail gives an error of the driver the store's meaning, on one line. The end of a context
// stays what it is.
func (d *dialect) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", op, err)
	}
	if errors.Is(err, facts.ErrUnavailable) || errors.Is(err, facts.ErrNotOwner) {
		return fmt.Errorf("%s: %w", op, err)
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	err = &driverError{err: err, text: text}
	switch d.classify(err) {
	case failureTaken:
		return fmt.Errorf("%s: %w: %w: %w", op, facts.ErrUnavailable, facts.ErrTaken, err)
	case failureFull:
		return fmt.Errorf("%s: %w: %w: %w", op, facts.ErrUnavailable, ErrFull, err)
	case failureWrite:
		return fmt.Errorf("%s: %w: %w: %w", op, facts.ErrUnavailable, ErrWrite, err)
	case failureCorrupt:
		return fmt.Errorf("%s: %w: %w: %w", op, facts.ErrUnavailable, ErrCorrupt, err)
	case failureReadOnly:
		return fmt.Errorf("%s: %w: %w: %w", op, facts.ErrUnavailable, ErrReadOnly, err)
	case failureAborted:
		return fmt.Errorf("%s: %w: %w: %w", op, facts.ErrUnavailable, facts.ErrAborted, err)
	case failureBusy:
		return fmt.Errorf("%s: %w: %w: %w", op, facts.ErrUnavailable, ErrBusy, err)
	}
	return fmt.Errorf("%s: %w: %w", op, facts.ErrUnavailable, err)
}

// driverError keeps an error of the driver and its text on one line.
type driverError struct {
	err  error
	text string
}

func (e *driverError) Error() string { return e.text }
func (e *driverError) Unwrap() error { return e.err }
