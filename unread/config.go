package unread

import (
	"errors"
	"fmt"
	"time"
)

// Config holds the ports and the budgets of a Runtime. A zero budget takes its default; a
// negative one is refused by New.
type Config struct {
	// Source reads pages of durable facts. Required.
	Source Source
	// Hints says that the source's pages come from snapshots: what they lack is unknown, and a
	// member is Ready only once every row is.
	Hints bool
	// Now is the present in milliseconds since the Unix epoch; nil takes the system's clock.
	// An earlier answer than one before is as good as none.
	Now func() int64

	// HydratePageSize is how many rows one page may have. Default 100, operators set it as
	// TIDEMARK_UNREAD_RUNTIME_HYDRATE_BATCH_SIZE.
	HydratePageSize int
	// HydrateConcurrency is how many pages are read at once in the process. Default 2,
	// operators set it as TIDEMARK_UNREAD_RUNTIME_HYDRATE_MAX_CONCURRENCY.
	HydrateConcurrency int
	// HydrateRetry is how long a failed page waits before it is read again. Default 5 s.
	HydrateRetry time.Duration
	// HydrateWait is how long a read of a cold member waits for its rows. Default 2 s.
	HydrateWait time.Duration
	// MaxHydrations bounds the members being loaded in the process. Default 20,000.
	MaxHydrations int
	// MaxWorkspaceHydrations bounds the members being loaded in one workspace. Default 10,000.
	MaxWorkspaceHydrations int

	// RingEvents is how many events a workspace keeps for pages that are being read; a page
	// that needs older ones is read again. Default 10,000.
	RingEvents int
	// MaxEntries is how many rows of members without a watch a workspace may hold before whole
	// members are let go. Default 50,000,000.
	MaxEntries int
	// MaxBytes is how many bytes of memory the rows, members, scopes and texts of all workspaces
	// may take before members without a watch are let go; those who are watched stay. Default
	// 4 GiB, which is about 80 million rows.
	MaxBytes int
	// MaxFirePerTick is how many waiting rows or watched rows one event touches at once; the
	// rest follows in steps of as many, each holding the lock anew. Default 2,000.
	MaxFirePerTick int
	// MaxWatchMembers bounds the members of one watch. Default 10,000.
	MaxWatchMembers int
}

// Defaults are the budgets of a Config in which nothing is set. Its ports are nil.
func Defaults() Config {
	return Config{
		HydratePageSize: 100, HydrateConcurrency: 2,
		HydrateRetry: 5 * time.Second, HydrateWait: 2 * time.Second,
		MaxHydrations: 20_000, MaxWorkspaceHydrations: 10_000,
		RingEvents: 10_000, MaxEntries: 50_000_000, MaxBytes: 4 << 30,
		MaxFirePerTick: 2_000, MaxWatchMembers: 10_000,
	}
}

// Or returns c with the budgets of other where c has none. The ports and Hints stay those of c.
func (c Config) Or(other Config) Config {
	numbers, spans := other.budgets()
	own, ownSpans := c.budgets()
	for i, b := range own {
		if *b.value == 0 {
			*b.value = *numbers[i].value
		}
	}
	for i, d := range ownSpans {
		if *d.value == 0 {
			*d.value = *spans[i].value
		}
	}
	return c
}

// budget is a number or a duration of a Config, with the name of its field.
type budget[T any] struct {
	name  string
	value *T
}

func (c *Config) budgets() ([]budget[int], []budget[time.Duration]) {
	return []budget[int]{
			{"HydratePageSize", &c.HydratePageSize},
			{"HydrateConcurrency", &c.HydrateConcurrency},
			{"MaxHydrations", &c.MaxHydrations},
			{"MaxWorkspaceHydrations", &c.MaxWorkspaceHydrations},
			{"RingEvents", &c.RingEvents},
			{"MaxEntries", &c.MaxEntries},
			{"MaxBytes", &c.MaxBytes},
			{"MaxFirePerTick", &c.MaxFirePerTick},
			{"MaxWatchMembers", &c.MaxWatchMembers},
		}, []budget[time.Duration]{
			{"HydrateRetry", &c.HydrateRetry},
			{"HydrateWait", &c.HydrateWait},
		}
}

func (c Config) withDefaults() (Config, error) {
	if c.Source == nil {
		return c, errors.New("unread: Config.Source is required")
	}
	if c.Now == nil {
		c.Now = func() int64 { return time.Now().UnixMilli() }
	}
	numbers, spans := c.budgets()
	for _, b := range numbers {
		if *b.value < 0 {
			return c, fmt.Errorf("unread: Config.%s is %d, must be positive", b.name, *b.value)
		}
	}
	for _, d := range spans {
		if *d.value < 0 {
			return c, fmt.Errorf("unread: Config.%s is %v, must be positive", d.name, *d.value)
		}
	}
	return c.Or(Defaults()), nil
}
