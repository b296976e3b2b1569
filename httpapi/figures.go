package httpapi

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/inbox"
	"github.com/tidemark-im/tidemark/live"
	"github.com/tidemark-im/tidemark/outbox"
	"github.com/tidemark-im/tidemark/unread"
	"github.com/tidemark-im/tidemark/unread/intake"
)

// reading is one look at everything that is counted elsewhere.
type reading struct {
	runtime   unread.Stats
	intake    intake.Stats // of snapshot mode
	lane      facts.LaneStats
	outbox    outbox.Stats // of a server that has one
	inbox     inbox.Stats  // likewise
	hub       live.Stats
	streams   live.Options
	limits    Limits
	tokens    int
	forgotten uint64
	verified  int
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// figures are the metrics that are taken when somebody asks. Each budget has its limit beside
// them, in limitFigures; snapshotFigures come with them in snapshot mode, and the figures of an
// outbox where there is one.
var figures = slices.Concat(streamFigures, requestFigures, laneFigures, memoryFigures, limitFigures)

var streamFigures = []figure{
	describeFigure("tidemark_streams", "Open streams.", gauge,
		func(r *reading) float64 { return float64(r.hub.Streams) }),
	describeFigure("tidemark_streams_opened_total", "Streams opened.", counter,
		func(r *reading) float64 { return float64(r.hub.Opened) }),
	describeFigure("tidemark_streams_resumed_total", "Streams that went on without a snapshot.",
		counter, func(r *reading) float64 { return float64(r.hub.Resumed) }),
	describeFigure("tidemark_streams_slow_total", "Streams ended because the client did not read.",
		counter, func(r *reading) float64 { return float64(r.hub.Slow) }),
	describeFigure("tidemark_streams_lost_total", "Streams ended because message changes were dropped.",
		counter, func(r *reading) float64 { return float64(r.hub.Lost) }),
	describeFigure("tidemark_streams_expired_total", "Streams ended with their token.", counter,
		func(r *reading) float64 { return float64(r.hub.Expired) }),
	describeFigure("tidemark_streams_moved_total", "Streams ended because their workspace is served "+
		"elsewhere.", counter, func(r *reading) float64 { return float64(r.hub.Moved) }),
	describeFigure("tidemark_stream_frames_total", "Frames written, heartbeats left out.", counter,
		func(r *reading) float64 { return float64(r.hub.Frames) }),
	describeFigure("tidemark_stream_snapshot_pages_total", "Snapshot pages written.", counter,
		func(r *reading) float64 { return float64(r.hub.Snapshots) }),
}

var requestFigures = []figure{
	describeFigure("tidemark_http_tokens", "Tokens whose budgets are remembered.", gauge,
		func(r *reading) float64 { return float64(r.tokens) }),
	describeFigure("tidemark_http_tokens_forgotten_total", "Tokens forgotten to make room.", counter,
		func(r *reading) float64 { return float64(r.forgotten) }),
	describeFigure("tidemark_http_verified_tokens", "Tokens that are not verified again.", gauge,
		func(r *reading) float64 { return float64(r.verified) }),
}

var laneFigures = []figure{
	describeFigure("tidemark_lane_queue", "Requests that wait for the lane.", gauge,
		func(r *reading) float64 { return float64(r.lane.Queued) }),
	describeFigure("tidemark_lane_full_total", "Requests that found the lane's queue full.", counter,
		func(r *reading) float64 { return float64(r.lane.Full) }),
}

var memoryFigures = []figure{
	describeFigure("tidemark_unread_workspaces", "Workspaces in memory.", gauge,
		func(r *reading) float64 { return float64(r.runtime.Workspaces) }),
	describeFigure("tidemark_unread_members", "Loaded members.", gauge,
		func(r *reading) float64 { return float64(r.runtime.Members) }),
	describeFigure("tidemark_unread_entries", "Loaded rows of members in scopes.", gauge,
		func(r *reading) float64 { return float64(r.runtime.Entries) }),
	describeFigure("tidemark_unread_scopes", "Loaded scopes.", gauge,
		func(r *reading) float64 { return float64(r.runtime.Scopes) }),
	describeFigure("tidemark_unread_watches", "Watches of streams.", gauge,
		func(r *reading) float64 { return float64(r.runtime.Watches) }),
	describeFigure("tidemark_unread_pending_batches", "Waiter lists being worked off.", gauge,
		func(r *reading) float64 { return float64(r.runtime.PendingBatches) }),
	describeFigure("tidemark_unread_ring_events", "Events kept for pages being read.", gauge,
		func(r *reading) float64 { return float64(r.runtime.RingEvents) }),
	describeFigure("tidemark_unread_hydrating", "Members being loaded.", gauge,
		func(r *reading) float64 { return float64(r.runtime.Hydrating) }),
	describeFigure("tidemark_unread_oldest_hydration_seconds", "Age of the oldest load.", gauge,
		func(r *reading) float64 { return float64(r.runtime.OldestHydration) / 1000 }),
	describeFigure("tidemark_unread_reading_pages", "Pages being read.", gauge,
		func(r *reading) float64 { return float64(r.runtime.ReadingPages) }),
	describeFigure("tidemark_unread_most_reading_pages", "Most pages read at once.", gauge,
		func(r *reading) float64 { return float64(r.runtime.MaxReadingPages) }),
	describeFigure("tidemark_unread_workspace_hydrating", "Members being loaded in the "+
		"workspace that loads most.", gauge,
		func(r *reading) float64 { return float64(r.runtime.WorkspaceHydrating) }),
	describeFigure("tidemark_unread_workspace_ring_events", "Events kept by the workspace that "+
		"keeps most.", gauge,
		func(r *reading) float64 { return float64(r.runtime.WorkspaceRingEvents) }),
	describeFigure("tidemark_unread_workspace_idle_entries", "Rows of members without a stream, "+
		"in the workspace that holds most.", gauge,
		func(r *reading) float64 { return float64(r.runtime.WorkspaceIdleEntries) }),
	describeFigure("tidemark_unread_bytes", "Memory of rows, members, scopes and texts.", gauge,
		func(r *reading) float64 { return float64(r.runtime.Bytes) }),
	describeFigure("tidemark_unread_reserved_bytes", "Memory taken from the system for them.", gauge,
		func(r *reading) float64 { return float64(r.runtime.ReservedBytes) }),
	describeFigure("tidemark_unread_pages_total", "Pages installed.", counter,
		func(r *reading) float64 { return float64(r.runtime.Pages) }),
	describeFigure("tidemark_unread_page_failures_total", "Pages the store could not read.", counter,
		func(r *reading) float64 { return float64(r.runtime.PageFailures) }),
	describeFigure("tidemark_unread_ring_overruns_total", "Pages read again after an overrun.",
		counter, func(r *reading) float64 { return float64(r.runtime.RingOverruns) }),
	describeFigure("tidemark_unread_refused_loads_total", "Loads refused by a budget.", counter,
		func(r *reading) float64 { return float64(r.runtime.RefusedJobs) }),
	describeFigure("tidemark_unread_refused_watches_total", "Streams that asked for too many members.",
		counter, func(r *reading) float64 { return float64(r.runtime.RefusedWatches) }),
	describeFigure("tidemark_unread_restarts_total", "Loads begun anew because memory went.", counter,
		func(r *reading) float64 { return float64(r.runtime.Restarts) }),
	describeFigure("tidemark_unread_repeated_commits_total", "Commits that were applied before.",
		counter, func(r *reading) float64 { return float64(r.runtime.RepeatedCommits) }),
	describeFigure("tidemark_unread_dropped_events_total", "Events that left the ring too early.",
		counter, func(r *reading) float64 { return float64(r.runtime.DroppedEvents) }),
	describeFigure("tidemark_unread_gaps_total", "Gaps in the order of commits.", counter,
		func(r *reading) float64 { return float64(r.runtime.Gaps) }),
	describeFigure("tidemark_unread_alarms_total", "Broken invariants.", counter,
		func(r *reading) float64 { return float64(r.runtime.Alarms) }),
	describeFigure("tidemark_unread_evicted_total", "Members let go.", counter,
		func(r *reading) float64 { return float64(r.runtime.Evicted) }),
	describeFigure("tidemark_unread_candidate_checks_total", "Rows evaluated for a badge or dot.",
		counter, func(r *reading) float64 { return float64(r.runtime.CandidateChecks) }),
	describeFigure("tidemark_unread_suppressed_total", "Answers withheld.", counter,
		func(r *reading) float64 { return float64(r.runtime.Suppressed) }),
	describeFigure("tidemark_unread_ticks_total", "Steps of pending work.", counter,
		func(r *reading) float64 { return float64(r.runtime.Ticks) }),
	describeFigure("tidemark_unread_deltas_total", "Deltas handed to streams.", counter,
		func(r *reading) float64 { return float64(r.runtime.Deltas) }),
	describeFigure("tidemark_unread_lost_watches_total", "Watches whose memory went.", counter,
		func(r *reading) float64 { return float64(r.runtime.LostWatches) }),
}
