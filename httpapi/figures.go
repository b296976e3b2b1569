package httpapi

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-im/tidemark/live"
	"github.com/tidemark-im/tidemark/unread"
)

// reading is one look at everything that is counted elsewhere.
type reading struct {
	runtime unread.Stats
	hub     live.Stats
	tokens  int
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// figures are the metrics that are taken when somebody asks.
var figures = []figure{
	describeFigure("tidemark_streams", "Open streams.", gauge,
		func(r *reading) float64 { return float64(r.hub.Streams) }),
	describeFigure("tidemark_streams_opened_total", "Streams opened.", counter,
		func(r *reading) float64 { return float64(r.hub.Opened) }),
	describeFigure("tidemark_streams_resumed_total", "Streams that went on without a snapshot.",
		counter, func(r *reading) float64 { return float64(r.hub.Resumed) }),
	describeFigure("tidemark_streams_slow_total", "Streams ended because the client did not read.",
		counter, func(r *reading) float64 { return float64(r.hub.Slow) }),
	describeFigure("tidemark_streams_expired_total", "Streams ended with their token.", counter,
		func(r *reading) float64 { return float64(r.hub.Expired) }),
	describeFigure("tidemark_stream_frames_total", "Frames written, heartbeats left out.", counter,
		func(r *reading) float64 { return float64(r.hub.Frames) }),
	describeFigure("tidemark_stream_snapshot_pages_total", "Snapshot pages written.", counter,
		func(r *reading) float64 { return float64(r.hub.Snapshots) }),
	describeFigure("tidemark_http_tokens", "Tokens whose budgets are remembered.", gauge,
		func(r *reading) float64 { return float64(r.tokens) }),

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
	describeFigure("tidemark_unread_pages_total", "Pages installed.", counter,
		func(r *reading) float64 { return float64(r.runtime.Pages) }),
	describeFigure("tidemark_unread_page_failures_total", "Pages the store could not read.", counter,
		func(r *reading) float64 { return float64(r.runtime.PageFailures) }),
	describeFigure("tidemark_unread_ring_overruns_total", "Pages read again after an overrun.",
		counter, func(r *reading) float64 { return float64(r.runtime.RingOverruns) }),
	describeFigure("tidemark_unread_refused_loads_total", "Loads refused by a budget.", counter,
		func(r *reading) float64 { return float64(r.runtime.RefusedJobs) }),
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
