package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tidemark-im/tidemark/internal/filelock"
)

// ErrBusy says that another process publishes for the same partition and did not end in time.
var ErrBusy = errors.New("another process publishes")

// lockPoll is how often a lock that somebody else holds is tried again.
const lockPoll = 20 * time.Millisecond

// lockPath names the lock of a partition: a file beside the journal, never removed, whose text is of
// no meaning. The operating system gives the lock up with the process.
func (p Partition) lockPath(path string) string {
	sum := sha256.Sum256([]byte(p.Scope + "\x00" + string(p.Viewer)))
	return path + "-" + hex.EncodeToString(sum[:8]) + ".publisher"
}

// takeLock waits for a lock until the context ends.
func takeLock(ctx context.Context, path string) (release func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("publisher lock: %w", err)
	}
	for {
		held, err := filelock.Try(f)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("publisher lock: %w", err), f.Close())
		}
		if held {
			return f.Close, nil // closing gives it up
		}
		timer := time.NewTimer(lockPoll)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, errors.Join(ErrBusy, f.Close())
		}
	}
}
