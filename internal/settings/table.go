package settings

import (
	"time"

	"github.com/tidemark-im/tidemark/live"
)

// parts is the table. Nobody writes to it.
func parts() []Part {
	return []Part{
		{
			Title: "Counts in memory", Prefix: "TIDEMARK_UNREAD_RUNTIME_", Settings: memory,
			About: "What the counts of this process may take, and how members are loaded.",
		},
		{
			Title: "Snapshot mode", Prefix: "TIDEMARK_UNREAD_RUNTIME_", Settings: snapshots,
			About: "For programs that embed the runtime, keep their facts elsewhere and restart " +
				"from snapshots: package `unread/intake` reads them there. `serve` keeps its facts " +
				"itself: it checks these values and does nothing with them.",
		},
		{
			Title: "The write lane", Prefix: "TIDEMARK_LANE_", Settings: lane,
			About: "How operations wait and are committed together.",
		},
		{
			Title: "Streams", Prefix: "TIDEMARK_LIVE_", Settings: streams,
			About: "Server-sent events and WebSockets.",
		},
		{
			Title: "HTTP", Prefix: "TIDEMARK_HTTP_", Settings: requests,
			About: "What one client may ask for, and how long it may take.",
		},
		{
			Title: "The outbox", Prefix: "TIDEMARK_OUTBOX_", Settings: outboxRows,
			About: "What facts of tasks cause once they are committed: how their rows are worked off.",
		},
		{
			Title: "Wakes and webhooks", Prefix: "TIDEMARK_OUTBOX_", Settings: wakes,
			About: "What is sent to agents and webhooks, and how often it is tried.",
		},
		{
			Title: "Inboxes", Prefix: "TIDEMARK_INBOX_", Settings: inboxes,
			About: "The newly-unread badge: how it is derived, and how long what it is derived from is kept.",
		},
	}
}

const mebi = 1 << 20

var memory = []Setting{
	{
		Name: "TIDEMARK_UNREAD_RUNTIME_HYDRATE_MAX_CONCURRENCY", Kind: Count,
		Does: "pages of members read from the store at once", Beyond: "the next ones wait",
		Why:   "each holds a reader of the store; more only move the waiting there",
		Limit: "tidemark_unread_reading_pages_limit", Use: "tidemark_unread_reading_pages",
		Over:  "tidemark_unread_oldest_hydration_seconds",
		least: 1, most: 64, field: func(v *Values) any { return &v.Runtime.HydrateConcurrency },
	},
	{
		Name: "TIDEMARK_UNREAD_RUNTIME_HYDRATE_BATCH_SIZE", Kind: Count,
		Does: "rows of one such page", Beyond: "the rest comes with further pages",
		Why:   "a page is one short read transaction, and is installed under the workspace's lock",
		Limit: "tidemark_unread_page_rows_limit", Over: "tidemark_unread_pages_total",
		least: 1, most: 10_000, field: func(v *Values) any { return &v.Runtime.HydratePageSize },
	},
	{
		Name: "TIDEMARK_UNREAD_RUNTIME_HYDRATE_RETRY", Kind: Duration,
		Does:   "pause before a page that the store could not read is tried again",
		Beyond: "the member stays `hydrating` meanwhile",
		Why:    "shorter ones hammer a store that is in trouble already",
		Limit:  "tidemark_unread_page_retry_seconds", Over: "tidemark_unread_page_failures_total",
		least: ms(10), most: ms(3_600_000), field: func(v *Values) any { return &v.Runtime.HydrateRetry },
	},
	{
		Name: "TIDEMARK_UNREAD_RUNTIME_HYDRATE_WAIT", Kind: Duration,
		Does:   "time that a read of a member who is not loaded waits",
		Beyond: "the answer is `hydrating`, with nothing shown",
		Why:    "a request ends on its own after a while",
		Limit:  "tidemark_unread_load_wait_seconds_limit", Over: "tidemark_unread_suppressed_total",
		least: ms(1), most: ms(30_000), field: func(v *Values) any { return &v.Runtime.HydrateWait },
	},
	{
		Name: "TIDEMARK_UNREAD_RUNTIME_MAX_HYDRATIONS", Kind: Count,
		Does:   "members being loaded, in the process",
		Beyond: "`over_budget`, or `unavailable` with nothing shown",
		Why:    "each holds what its waiting readers need",
		Limit:  "tidemark_unread_hydrating_limit", Use: "tidemark_unread_hydrating",
		Over:  "tidemark_unread_refused_loads_total",
		least: 1, most: 1_000_000, field: func(v *Values) any { return &v.Runtime.MaxHydrations },
	},
	{
		Name: "TIDEMARK_UNREAD_RUNTIME_MAX_WORKSPACE_HYDRATIONS", Kind: Count,
		Does:   "members being loaded, in one workspace",
		Beyond: "as above: one workspace cannot take the whole process",
		Why:    "as above",
		Limit:  "tidemark_unread_workspace_hydrating_limit", Use: "tidemark_unread_workspace_hydrating",
		Over:  "tidemark_unread_refused_loads_total",
		least: 1, most: 1_000_000, field: func(v *Values) any { return &v.Runtime.MaxWorkspaceHydrations },
	},
	{
		Name: "TIDEMARK_UNREAD_RUNTIME_MAX_RING_EVENTS", Kind: Count,
		Does:   "events that a workspace keeps for pages which are being read",
		Beyond: "the oldest go, and a page that needs them is read again; counts stay exact",
		Why:    "one commit may carry a thousand, so that fewer would never be enough",
		Limit:  "tidemark_unread_workspace_ring_events_limit", Use: "tidemark_unread_workspace_ring_events",
		Over:  "tidemark_unread_dropped_events_total",
		least: 1_000, most: 10_000_000, field: func(v *Values) any { return &v.Runtime.RingEvents },
	},
	{
		Name: "TIDEMARK_UNREAD_RUNTIME_MAX_ENTRIES", Kind: Count,
		Does:   "rows of members without a stream, in one workspace",
		Beyond: "members whom nobody asked for lately are let go; the next read loads them again",
		Why:    "less than a few members' rows would be loaded and let go for ever",
		Limit:  "tidemark_unread_workspace_idle_entries_limit", Use: "tidemark_unread_workspace_idle_entries",
		Over:  "tidemark_unread_evicted_total",
		least: 1_000, most: 1 << 30, field: func(v *Values) any { return &v.Runtime.MaxEntries },
	},
	{
		Name: "TIDEMARK_UNREAD_RUNTIME_MAX_BYTES", Kind: Bytes,
		Does:   "memory of all rows, members, scopes and texts, in the process",
		Beyond: "members without a stream are let go, as above; those with one stay",
		Why:    "below it not even one large workspace's scopes fit",
		Limit:  "tidemark_unread_bytes_limit", Use: "tidemark_unread_bytes",
		Over:  "tidemark_unread_evicted_total",
		least: 16 * mebi, most: 1 << 44, field: func(v *Values) any { return &v.Runtime.MaxBytes },
	},
	{
		Name: "TIDEMARK_UNREAD_RUNTIME_MAX_STEP_ROWS", Kind: Count,
		Does:   "rows that one event moves, or tells streams of, at once",
		Beyond: "the rest follows in further steps; reads stay exact meanwhile",
		Why:    "a step holds the workspace's lock",
		Limit:  "tidemark_unread_step_rows_limit", Use: "tidemark_unread_pending_batches",
		Over:  "tidemark_unread_ticks_total",
		least: 1, most: 1_000_000, field: func(v *Values) any { return &v.Runtime.MaxFirePerTick },
	},
	{
		Name: "TIDEMARK_UNREAD_RUNTIME_MAX_WATCH_MEMBERS", Kind: Count,
		Does: "members of one stream", Beyond: "event `refused`, `over_budget`",
		Why:   "a stream's request takes no more",
		Limit: "tidemark_unread_watch_members_limit", Use: "tidemark_unread_watches",
		Over:  "tidemark_unread_refused_watches_total",
		least: 1, most: live.MaxMembers, field: func(v *Values) any { return &v.Runtime.MaxWatchMembers },
	},
}

var snapshots = []Setting{
	{
		Name: "TIDEMARK_UNREAD_RUNTIME_SNAPSHOT_FLUSH_INTERVAL", Kind: Duration,
		Limit: "tidemark_snapshot_flush_interval_seconds",
		Use:   "tidemark_snapshot_oldest_dirty_seconds", Over: "tidemark_snapshot_flushes_total",
		Does: "time between two flushes of what changed",
		Beyond: "a crash loses at most what one interval and the backlog hold; a shorter one " +
			"makes that window smaller and never makes counts after a restart exact",
		Why:   "shorter ones write busy rows again and again",
		least: ms(100), most: ms(3_600_000), field: func(v *Values) any { return &v.Intake.Flush.FlushInterval },
	},
	{
		Name: "TIDEMARK_UNREAD_RUNTIME_SNAPSHOT_FLUSH_BATCH_SIZE", Kind: Count,
		Limit: "tidemark_snapshot_flush_batch_rows_limit", Over: "tidemark_snapshot_flushed_rows_total",
		Does: "rows that one flush writes", Beyond: "the rest is written by the next one",
		Why:   "one flush is one write of the store",
		least: 1, most: 100_000, field: func(v *Values) any { return &v.Intake.Flush.FlushBatchSize },
	},
	{
		Name: "TIDEMARK_UNREAD_RUNTIME_SNAPSHOT_FLUSH_RETRY", Kind: Duration,
		Limit: "tidemark_snapshot_flush_retry_seconds", Over: "tidemark_snapshot_flush_failures_total",
		Does:   "pause after a flush that failed; it doubles with each failure, up to the interval",
		Beyond: "rows stay in the backlog", Why: "shorter ones hammer a store that is in trouble already",
		least: ms(10), most: ms(3_600_000), field: func(v *Values) any { return &v.Intake.Flush.FlushRetry },
	},
	{
		Name: "TIDEMARK_UNREAD_RUNTIME_SNAPSHOT_FLUSH_TIMEOUT", Kind: Duration,
		Limit: "tidemark_snapshot_write_seconds_limit", Over: "tidemark_snapshot_flush_failures_total",
		Does: "time of one write", Beyond: "the flush has failed",
		Why:   "a write that takes longer has lost its store",
		least: ms(100), most: ms(600_000), field: func(v *Values) any { return &v.Intake.Flush.FlushTimeout },
	},
	{
		Name: "TIDEMARK_UNREAD_RUNTIME_SNAPSHOT_MAX_BACKLOG", Kind: Count,
		Limit: "tidemark_snapshot_workspace_backlog_rows_limit",
		Use:   "tidemark_snapshot_workspace_backlog_rows", Over: "tidemark_snapshot_refused_rows_total",
		Does: "rows of members that wait for a flush, in one workspace",
		Beyond: "a row above it is withheld until there is room, and never guessed; above four " +
			"times as many, events are dropped and counted",
		Why: "the backlog is memory", least: 1_000, most: 100_000_000,
		field: func(v *Values) any { return &v.Intake.Limits.Backlog },
	},
	{
		Name: "TIDEMARK_UNREAD_RUNTIME_SNAPSHOT_MAX_CACHED_ROWS", Kind: Count,
		Limit:  "tidemark_snapshot_workspace_cached_rows_limit",
		Use:    "tidemark_snapshot_workspace_cached_rows",
		Does:   "rows of members in memory, members' own included, in one workspace",
		Beyond: "written ones are let go; those that wait stay", Why: "as above",
		least: 1_000, most: 100_000_000, field: func(v *Values) any { return &v.Intake.Limits.Cached },
	},
	{
		Name: "TIDEMARK_UNREAD_RUNTIME_SNAPSHOT_MAX_CACHED_SCOPES", Kind: Count,
		Limit: "tidemark_snapshot_workspace_scopes_limit",
		Use:   "tidemark_snapshot_workspace_scopes", Over: "tidemark_snapshot_forgotten_scopes_total",
		Does: "scopes in memory, in one workspace",
		Beyond: "written ones of which no row is loaded and for which nothing waits are let go, those " +
			"used least recently first; they come back from their row",
		Why:   "fewer than those in use would be read again and again",
		least: 100, most: 100_000_000, field: func(v *Values) any { return &v.Intake.Limits.Scopes },
	},
	held("MAX_HELD_MESSAGES_PER_SCOPE", "newest messages of a scope that are held, and activities",
		"a cursor below them leaves the row withheld until one settles it",
		"tidemark_snapshot_scope_held_limit", "", "",
		1_000_000, func(v *Values) any { return &v.Intake.Limits.Held }),
	held("MAX_HELD_MESSAGES", "such messages and activities of all scopes, in one workspace",
		"those of scopes that were not used for longest are let go",
		"tidemark_snapshot_workspace_held_limit", "tidemark_snapshot_workspace_held",
		"tidemark_snapshot_cut_tails_total",
		1_000_000_000, func(v *Values) any { return &v.Intake.Limits.HeldTotal }),
	pending("MAX_QUEUED_EVENTS", "events of the process that wait for rows or rosters", withheld,
		"tidemark_intake_queued_events_limit", "tidemark_intake_queued_events",
		"tidemark_intake_dropped_events_total",
		"they are memory", 10_000_000, func(v *Values) any { return &v.Intake.MaxQueuedEvents }),
	pending("MAX_PENDING_EVENTS_PER_SCOPE", "such events of one scope", withheld,
		"tidemark_intake_scope_pending_events_limit", "tidemark_intake_scope_pending_events",
		"tidemark_intake_dropped_events_total", "as above",
		10_000_000, func(v *Values) any { return &v.Intake.MaxPendingEvents }),
	pending("MAX_PENDING_SCOPES", "scopes that are being read or wait for it", withheld,
		"tidemark_intake_pending_scopes_limit", "tidemark_intake_pending_scopes",
		"tidemark_intake_dropped_events_total",
		"as above", 1_000_000, func(v *Values) any { return &v.Intake.MaxWarmScopes }),
	pending("PENDING_DRAIN_BATCH", "waiting events taken in at once", "the rest follows in further steps",
		"tidemark_intake_drain_events_limit", "", "", "a step holds a lock", 1_000_000,
		func(v *Values) any { return &v.Intake.DrainBatch }),
	pending("MAX_COLD_ROSTER_MEMBERS", "members of a scope of which memory knows nothing",
		"the roster is given up, and exact rows of the scope are withheld until a cursor settles them",
		"tidemark_intake_roster_members_limit", "tidemark_intake_largest_roster_members",
		"tidemark_intake_refused_rosters_total", "as above", 10_000_000,
		func(v *Values) any { return &v.Intake.MaxRoster }),
}

const withheld = "an event above it is dropped and counted, and what it may have changed is withheld"

// pending is a setting of events that wait in snapshot mode.
func pending(
	name, does, beyond, limit, use, over, why string, most float64, field func(*Values) any,
) Setting {
	return Setting{
		Name: "TIDEMARK_UNREAD_RUNTIME_" + name, Kind: Count, Does: does, Beyond: beyond, Why: why,
		Limit: limit, Use: use, Over: over, least: 1, most: most, field: field,
	}
}

// held is a setting of messages that are held in snapshot mode.
func held(
	name, does, beyond, limit, use, over string, most float64, field func(*Values) any,
) Setting {
	return pending(name, does, beyond, limit, use, over, "they are memory", most, field)
}

var lane = []Setting{
	{
		Name: "TIDEMARK_LANE_GROUP_ROWS", Kind: Count,
		Does: "rows after which a group of operations is committed", Beyond: "the next group begins",
		Why:   "a group is one transaction, which everybody in it waits for",
		Limit: "tidemark_lane_group_rows_limit",
		least: 1, most: 100_000, field: func(v *Values) any { return &v.Lane.GroupRows },
	},
	{
		Name: "TIDEMARK_LANE_GROUP_WAIT", Kind: Duration,
		Does: "age at which a group is committed", Beyond: "the next group begins",
		Why:   "it is part of what a busy writer waits",
		Limit: "tidemark_lane_group_wait_seconds_limit",
		least: float64(100 * time.Microsecond), most: ms(1_000),
		field: func(v *Values) any { return &v.Lane.GroupWait },
	},
	{
		Name: "TIDEMARK_LANE_QUEUE_DEPTH", Kind: Count,
		Does:   "requests that wait for the lane",
		Beyond: "further callers wait outside it until their request's time is over, then 503",
		Why:    "each holds its request's operations",
		Limit:  "tidemark_lane_queue_limit", Use: "tidemark_lane_queue", Over: "tidemark_lane_full_total",
		least: 1, most: 1_000_000, field: func(v *Values) any { return &v.Lane.QueueDepth },
	},
}

func ms(n float64) float64 { return n * float64(time.Millisecond) }
