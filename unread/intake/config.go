package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// Roster tells who is in a scope. It reads memberships and notification facts, page by page.
type Roster interface {
	// Roster answers the members that follow After, at most Limit of them.
	Roster(ctx context.Context, q RosterQuery) (RosterPage, error)
}

// RosterQuery asks for a page of a scope's members.
type RosterQuery struct {
	Workspace readstate.WorkspaceID
	Scope     readstate.ScopeID
	After     string // the Next of the page before, empty for the first
	Limit     int
}

// RosterPage is a page of members. All pages of one roster have its generation.
type RosterPage struct {
	Members    []RosterMember
	Generation uint64
	Next       string // empty after the last page
}

// RosterMember is a member who may have something unread in the scope.
type RosterMember struct {
	ID readstate.MemberID
	// EffectiveFrom is the first revision that may count for the member.
	EffectiveFrom readstate.Revision
	Level         readstate.Level
	Until         int64
	Hidden        bool
}

// Facts reads the program's facts again, for an operator. Nothing that serves has a way to it: only
// Repair and Compare ask.
type Facts interface {
	// Facts answers what the facts say of one member in one scope, read in one snapshot.
	Facts(ctx context.Context, q FactsQuery) (MemberFacts, error)
}

// FactsQuery names a member and a scope.
type FactsQuery struct {
	Workspace readstate.WorkspaceID
	Member    readstate.MemberID
	Scope     readstate.ScopeID
}

// MemberFacts are the facts of a member in a scope, with what the scope holds above the member's
// point: the cursor, or the entry before EffectiveFrom or before the start of a manual mark.
type MemberFacts struct {
	Joined        bool
	Hidden        bool
	Level         readstate.Level
	Until         int64
	EffectiveFrom readstate.Revision
	Read          readstate.Revision
	ActivityRead  readstate.Seq
	Manual        bool
	ManualFrom    readstate.Revision

	Head           readstate.Revision // of the scope
	LatestActivity readstate.Seq
	Entries        []EntryFacts    // every readable entry above the point, ascending
	Activities     []ActivityFacts // high-signal ones above the activity cursor, ascending
}

// EntryFacts is one entry, and whether it was taken back.
type EntryFacts struct {
	MessageFacts
	Removed bool
}

// Config holds the ports and budgets of an Intake. A zero budget takes its default; a negative one
// is refused by New.
type Config struct {
	// Store keeps the snapshot rows. Required; it stays open until the intake is closed.
	Store snapshot.Store
	// Roster says who is in a scope of which memory does not know. Nil means that every member
	// is told of by MembershipChanged, and has a row from then on.
	Roster Roster
	// Facts reads the program's facts for Repair and Compare; nil refuses both.
	Facts Facts
	// Comparison switches Compare on, which reads facts and changes nothing.
	Comparison bool
	// Now is the present in milliseconds since the Unix epoch; nil takes the system's clock.
	Now func() int64
	// Log takes what went wrong; nil discards it.
	Log *slog.Logger
	// Runtime tunes the memory; Source, Hints and Now are the intake's.
	Runtime unread.Config
	// Flush tunes the writing of rows; Store and Log are the intake's.
	Flush snapshot.Config
	// Limits bound what each workspace keeps in memory, beside what a budget of the runtime bounds.
	// Operators set them as TIDEMARK_UNREAD_RUNTIME_ and a name:
	//
	//	Backlog     100,000  SNAPSHOT_MAX_BACKLOG         rows that wait for a flush
	//	Cached      100,000  SNAPSHOT_MAX_CACHED_ROWS     rows that are kept after it
	//	Scopes      100,000  SNAPSHOT_MAX_CACHED_SCOPES   scopes without a loaded row
	//	Held            200  MAX_HELD_MESSAGES_PER_SCOPE  newest messages of a scope, so that a
	//	                                                  cursor that stops among them is exact
	//	HeldTotal 1,000,000  MAX_HELD_MESSAGES            those of all scopes
	Limits snapshot.Limits

	// MaxQueuedEvents bounds the events of the process that wait for rows or rosters. Default
	// 10,000, operators set it as TIDEMARK_UNREAD_RUNTIME_MAX_QUEUED_EVENTS.
	MaxQueuedEvents int
	// MaxPendingEvents bounds those of one scope. Default 1,000, operators set it as
	// TIDEMARK_UNREAD_RUNTIME_MAX_PENDING_EVENTS_PER_SCOPE.
	MaxPendingEvents int
	// MaxWarmScopes bounds the scopes that are being read at once or wait for it. Default 1,000,
	// operators set it as TIDEMARK_UNREAD_RUNTIME_MAX_PENDING_SCOPES.
	MaxWarmScopes int
	// DrainBatch is how many waiting events are taken in under one lock. Default 500, operators
	// set it as TIDEMARK_UNREAD_RUNTIME_PENDING_DRAIN_BATCH.
	DrainBatch int
	// MaxRoster bounds the roster of a cold scope; a larger one is not read to the end, and the
	// scope is not ready. Default 10,000, operators set it as
	// TIDEMARK_UNREAD_RUNTIME_MAX_COLD_ROSTER_MEMBERS.
	MaxRoster int
}

// budget is a number of Config with its default and its name in the environment.
type budget struct {
	env   string
	field string
	value *int
	or    int
}

func (c *Config) budgets() []budget {
	r, or := &c.Runtime, unread.Defaults()
	return []budget{
		{"SNAPSHOT_FLUSH_BATCH_SIZE", "Flush.FlushBatchSize", &c.Flush.FlushBatchSize,
			snapshot.DefaultFlushBatchSize},
		{"SNAPSHOT_MAX_BACKLOG", "Limits.Backlog", &c.Limits.Backlog, snapshot.DefaultBacklog},
		{"SNAPSHOT_MAX_CACHED_ROWS", "Limits.Cached", &c.Limits.Cached, snapshot.DefaultCached},
		{"SNAPSHOT_MAX_CACHED_SCOPES", "Limits.Scopes", &c.Limits.Scopes, snapshot.DefaultScopes},
		{"MAX_HELD_MESSAGES_PER_SCOPE", "Limits.Held", &c.Limits.Held, snapshot.DefaultHeld},
		{"MAX_HELD_MESSAGES", "Limits.HeldTotal", &c.Limits.HeldTotal, snapshot.DefaultHeldTotal},
		{"MAX_QUEUED_EVENTS", "MaxQueuedEvents", &c.MaxQueuedEvents, 10_000},
		{"MAX_PENDING_EVENTS_PER_SCOPE", "MaxPendingEvents", &c.MaxPendingEvents, 1_000},
		{"MAX_PENDING_SCOPES", "MaxWarmScopes", &c.MaxWarmScopes, 1_000},
		{"PENDING_DRAIN_BATCH", "DrainBatch", &c.DrainBatch, 500},
		{"MAX_COLD_ROSTER_MEMBERS", "MaxRoster", &c.MaxRoster, 10_000},

		{"HYDRATE_MAX_CONCURRENCY", "Runtime.HydrateConcurrency", &r.HydrateConcurrency,
			or.HydrateConcurrency},
		{"HYDRATE_BATCH_SIZE", "Runtime.HydratePageSize", &r.HydratePageSize, or.HydratePageSize},
		{"MAX_HYDRATIONS", "Runtime.MaxHydrations", &r.MaxHydrations, or.MaxHydrations},
		{"MAX_WORKSPACE_HYDRATIONS", "Runtime.MaxWorkspaceHydrations", &r.MaxWorkspaceHydrations,
			or.MaxWorkspaceHydrations},
		{"MAX_RING_EVENTS", "Runtime.RingEvents", &r.RingEvents, or.RingEvents},
		{"MAX_ENTRIES", "Runtime.MaxEntries", &r.MaxEntries, or.MaxEntries},
		{"MAX_BYTES", "Runtime.MaxBytes", &r.MaxBytes, or.MaxBytes},
		{"MAX_STEP_ROWS", "Runtime.MaxFirePerTick", &r.MaxFirePerTick, or.MaxFirePerTick},
		{"MAX_WATCH_MEMBERS", "Runtime.MaxWatchMembers", &r.MaxWatchMembers, or.MaxWatchMembers},
	}
}

// parse reads a positive number. One of bytes may have KiB, MiB, GiB or TiB behind it.
func (b *budget) parse(text string) (int, error) {
	size := 1
	if b.env == "MAX_BYTES" {
		for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
			if number, ok := strings.CutSuffix(text, unit); ok {
				text, size = number, 1<<(10*(i+1))
			}
		}
	}
	n, err := strconv.Atoi(text)
	if err == nil && (n <= 0 || n > math.MaxInt/size) {
		err = strconv.ErrRange
	}
	return n * size, err
}

// span is a duration of Config likewise.
type span struct {
	env   string
	field string
	value *time.Duration
	or    time.Duration
}

func (c *Config) spans() []span {
	return []span{
		{"SNAPSHOT_FLUSH_INTERVAL", "Flush.FlushInterval", &c.Flush.FlushInterval,
			snapshot.DefaultFlushInterval},
		{"SNAPSHOT_FLUSH_RETRY", "Flush.FlushRetry", &c.Flush.FlushRetry,
			snapshot.DefaultFlushRetry},
		{"SNAPSHOT_FLUSH_TIMEOUT", "Flush.FlushTimeout", &c.Flush.FlushTimeout,
			snapshot.DefaultFlushTimeout},
		{"HYDRATE_RETRY", "Runtime.HydrateRetry", &c.Runtime.HydrateRetry,
			unread.Defaults().HydrateRetry},
		{"HYDRATE_WAIT", "Runtime.HydrateWait", &c.Runtime.HydrateWait,
			unread.Defaults().HydrateWait},
	}
}

// EnvPrefix begins the name of every variable that FromEnv reads.
const EnvPrefix = "TIDEMARK_UNREAD_RUNTIME_"

// FromEnv fills the budgets of c that the environment sets, those of Runtime included; lookup is
// os.LookupEnv. A value that
// is not a positive integer, or for a duration not a positive Go duration as "30s", is an error
// that names its variable: it never becomes the default by itself.
func (c *Config) FromEnv(lookup func(string) (string, bool)) error {
	var bad []error
	for _, b := range c.budgets() {
		text, ok := lookup(EnvPrefix + b.env)
		if !ok {
			continue
		}
		n, err := b.parse(text)
		if err != nil {
			bad = append(bad, fmt.Errorf("%s%s is %q, must be a positive integer",
				EnvPrefix, b.env, text))
			continue
		}
		*b.value = n
	}
	for _, d := range c.spans() {
		text, ok := lookup(EnvPrefix + d.env)
		if !ok {
			continue
		}
		n, err := time.ParseDuration(text)
		if err != nil || n <= 0 {
			bad = append(bad, fmt.Errorf("%s%s is %q, must be a positive duration like 30s",
				EnvPrefix, d.env, text))
			continue
		}
		*d.value = n
	}
	return errors.Join(bad...)
}

// WithDefaults returns c with a default for every budget that is zero, and refuses negative ones.
func (c Config) WithDefaults() (Config, error) {
	if c.Store == nil {
		return c, errors.New("intake: Config.Store is required")
	}
	if c.Now == nil {
		c.Now = func() int64 { return time.Now().UnixMilli() }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	for _, b := range c.budgets() {
		if *b.value < 0 {
			return c, fmt.Errorf("intake: Config.%s is %d, must be positive", b.field, *b.value)
		}
		if *b.value == 0 {
			*b.value = b.or
		}
	}
	for _, d := range c.spans() {
		if *d.value < 0 {
			return c, fmt.Errorf("intake: Config.%s is %v, must be positive", d.field, *d.value)
		}
		if *d.value == 0 {
			*d.value = d.or
		}
	}
	c.Flush.Store, c.Flush.Log = c.Store, c.Log
	c.Runtime.Now, c.Runtime.Hints = c.Now, true
	return c, nil
}
