package snapshot

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Config holds the store and the budgets of a Flusher. A zero budget takes its default; a
// negative one is refused.
type Config struct {
	// Store keeps the rows. Required.
	Store Store
	// Log takes failures of flushes; nil discards it.
	Log *slog.Logger

	// FlushInterval is the time between two flushes: what a crash may lose, backlog apart.
	// Default 30 s, operators set it as TIDEMARK_UNREAD_RUNTIME_SNAPSHOT_FLUSH_INTERVAL. A
	// shorter one makes the lag of a hint shorter, and never makes it exact.
	FlushInterval time.Duration
	// FlushBatchSize is how many rows one flush writes at most; a tick makes as many flushes as
	// the backlog at its start needs. Default 1,000, operators set it as
	// TIDEMARK_UNREAD_RUNTIME_SNAPSHOT_FLUSH_BATCH_SIZE.
	FlushBatchSize int
	// FlushRetry is the pause after a failed flush. It doubles with each failure in a row, up
	// to FlushInterval or to itself, whichever is longer. Default 1 s, operators set it as
	// TIDEMARK_UNREAD_RUNTIME_SNAPSHOT_FLUSH_RETRY.
	FlushRetry time.Duration
	// FlushTimeout bounds one write. Default 10 s, operators set it as
	// TIDEMARK_UNREAD_RUNTIME_SNAPSHOT_FLUSH_TIMEOUT.
	FlushTimeout time.Duration
}

// Defaults of Config and Limits.
const (
	DefaultFlushInterval  = 30 * time.Second
	DefaultFlushBatchSize = 1_000
	DefaultFlushRetry     = time.Second
	DefaultFlushTimeout   = 10 * time.Second
	// DefaultBacklog is TIDEMARK_UNREAD_RUNTIME_SNAPSHOT_MAX_BACKLOG.
	DefaultBacklog = 100_000
	// DefaultCached is TIDEMARK_UNREAD_RUNTIME_SNAPSHOT_MAX_CACHED_ROWS.
	DefaultCached = 100_000
	// DefaultScopes is TIDEMARK_UNREAD_RUNTIME_SNAPSHOT_MAX_CACHED_SCOPES.
	DefaultScopes = 100_000
	// DefaultHeld is TIDEMARK_UNREAD_RUNTIME_MAX_HELD_MESSAGES_PER_SCOPE.
	DefaultHeld = 200
	// DefaultHeldTotal is TIDEMARK_UNREAD_RUNTIME_MAX_HELD_MESSAGES.
	DefaultHeldTotal = 1_000_000
)

func (c Config) withDefaults() (Config, error) {
	if c.Store == nil {
		return c, errors.New("snapshot: Config.Store is required")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		or    time.Duration
	}{
		{"FlushInterval", &c.FlushInterval, DefaultFlushInterval},
		{"FlushRetry", &c.FlushRetry, DefaultFlushRetry},
		{"FlushTimeout", &c.FlushTimeout, DefaultFlushTimeout},
	} {
		if *d.value < 0 {
			return c, fmt.Errorf("snapshot: Config.%s is %v, must be positive", d.name, *d.value)
		}
		if *d.value == 0 {
			*d.value = d.or
		}
	}
	if c.FlushBatchSize < 0 {
		return c, fmt.Errorf("snapshot: Config.FlushBatchSize is %d, must be positive",
			c.FlushBatchSize)
	}
	if c.FlushBatchSize == 0 {
		c.FlushBatchSize = DefaultFlushBatchSize
	}
	return c, nil
}
