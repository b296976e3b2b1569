package facts

import (
	"errors"
	"fmt"
)

// Refusals of an operation. An operation that returns one of them has changed nothing, and the
// operations committed beside it are not affected. Match with errors.Is; the text names the
// operation and the key.
var (
	// ErrInvalid is a request that no state could accept.
	ErrInvalid = errors.New("invalid request")
	// ErrNotFound is an unknown workspace, member, scope or message.
	ErrNotFound = errors.New("not found")
	// ErrForbidden is a known thing that the actor may not change.
	ErrForbidden = errors.New("forbidden")
	// ErrMismatch is an operation id, message id or fixed property reused with another content.
	ErrMismatch = errors.New("operation mismatch")
	// ErrConflict is a manual unread that names another version than the current one.
	ErrConflict = errors.New("version conflict")
	// ErrFuture is a revision above the scope's head.
	ErrFuture = errors.New("revision in future")
	// ErrReplaced is a session that was merged into another; see ReplacedError.
	ErrReplaced = errors.New("scope replaced")
	// ErrLimit is a documented limit that would be exceeded.
	ErrLimit = errors.New("over budget")
	// ErrNotOwner means that another process owns the workspace; this one can write nothing.
	ErrNotOwner = errors.New("not owner")
	// ErrUnavailable means that the store cannot answer; the operation may have to be repeated
	// with the same operation id to learn what became of it.
	ErrUnavailable = errors.New("facts store unavailable")
	// ErrAborted is a transaction that certainly did not happen: everything in it is rolled back,
	// because its commit was refused, or before it came to that because it was in the way of another
	// one. It comes wrapped together with ErrUnavailable and never reaches a caller of the lane.
	ErrAborted = errors.New("commit aborted")
	// ErrSkipped means that an earlier operation of a chained batch failed.
	ErrSkipped = errors.New("skipped after a failure")
	// ErrTaken comes from a store together with ErrUnavailable when a write names a unique key
	// that exists: an operation id that was used before. The lane answers it; callers never see it.
	ErrTaken = errors.New("key is taken")
	// ErrClosed means that the lane no longer takes operations.
	ErrClosed = errors.New("lane closed")
)

// storeError tells the caller of an operation what the store said. It is ErrUnavailable and
// nothing else, whatever else the store meant.
type storeError struct {
	operation string
	cause     error
}

func (e *storeError) Error() string {
	if errors.Is(e.cause, ErrUnavailable) {
		return e.operation + ": " + e.cause.Error()
	}
	return fmt.Sprintf("%s: %v: %v", e.operation, ErrUnavailable, e.cause)
}

func (e *storeError) Unwrap() error { return ErrUnavailable }

// refused is an error of the algebra that is one of this package, too. Its text says it once.
type refused struct {
	kind  error
	cause error
}

func (e *refused) Error() string   { return e.cause.Error() }
func (e *refused) Unwrap() []error { return []error{e.kind, e.cause} }

func notFound(what, id string) error { return fmt.Errorf("%s %q: %w", what, id, ErrNotFound) }

func forbidden(what, id, why string) error {
	return fmt.Errorf("%s %q: %w: %s", what, id, ErrForbidden, why)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
