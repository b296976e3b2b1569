package httpapi

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-im/tidemark/inbox"
)

// inboxFigures are those of a server with inboxes.
var inboxFigures = []figure{
	inInbox("tidemark_inbox_tail_rows", "Items beyond the projection in the badge read last.",
		func(s *inbox.Stats) float64 { return float64(s.TailRows) }),
	inInbox("tidemark_inbox_lag_positions", "Positions that the inbox looked at last is behind.",
		func(s *inbox.Stats) float64 { return float64(s.Lag) }),
	inInbox("tidemark_inbox_lag_seconds", "Age of an item when it was projected.",
		func(s *inbox.Stats) float64 { return s.Age.Seconds() }),
	inInbox("tidemark_inbox_pending", "Inboxes that may be behind.",
		func(s *inbox.Stats) float64 { return float64(s.Pending) }),
	ofInbox("tidemark_inbox_projected_total", "Items projected.",
		func(s *inbox.Stats) uint64 { return s.Projected }),
	ofInbox("tidemark_inbox_opened_total", "Inboxes opened.",
		func(s *inbox.Stats) uint64 { return s.Opened }),
	ofInbox("tidemark_inbox_acknowledged_total", "Acknowledgements, repetitions left out.",
		func(s *inbox.Stats) uint64 { return s.Acknowledged }),
	ofInbox("tidemark_inbox_behind_total", "Reads that had to wait for the projection.",
		func(s *inbox.Stats) uint64 { return s.Behind }),
	ofInbox("tidemark_inbox_gaps_total", "Inboxes that could not be projected for missing items.",
		func(s *inbox.Stats) uint64 { return s.Gaps }),
	ofInbox("tidemark_inbox_summary_hits_total", "Badges that a prepared summary answered.",
		func(s *inbox.Stats) uint64 { return s.SummaryHits }),
	ofInbox("tidemark_inbox_summary_misses_total", "Badges that found no summary of the moment.",
		func(s *inbox.Stats) uint64 { return s.SummaryMisses }),
	ofInbox("tidemark_inbox_summary_errors_total", "Failures of the store of summaries.",
		func(s *inbox.Stats) uint64 { return s.SummaryErrors }),
	inboxLimit("tidemark_inbox_tail_rows_limit", "items beyond the projection that a read merges",
		func(l *inbox.Limits) int { return l.TailRows }),
	inboxLimit("tidemark_inbox_batch_rows_limit", "items that one transaction projects",
		func(l *inbox.Limits) int { return l.BatchRows }),
	inboxLimit("tidemark_inbox_batch_inboxes_limit", "inboxes that share a transaction",
		func(l *inbox.Limits) int { return l.BatchInboxes }),
	inboxLimit("tidemark_inbox_open_items_limit", "items that an opened inbox lists",
		func(l *inbox.Limits) int { return l.OpenItems }),
	inboxTime("tidemark_inbox_rescan_seconds", "time after which all inboxes are looked through",
		func(l *inbox.Limits) time.Duration { return l.Rescan }),
	inboxLimit("tidemark_inbox_keep_items_days", "days that items are kept, 36500 for ever",
		func(l *inbox.Limits) int { return l.KeepItems }),
	inboxLimit("tidemark_inbox_keep_snapshots_days", "days that openings are kept, 36500 for ever",
		func(l *inbox.Limits) int { return l.KeepSnapshots }),
	inboxLimit("tidemark_inbox_keep_receipts_days", "days that receipts are kept, 36500 for ever",
		func(l *inbox.Limits) int { return l.KeepReceipts }),
}

func inboxLimit(name, of string, value func(*inbox.Limits) int) figure {
	return limit(name, of, func(r *reading) float64 { return float64(value(&r.inbox.Limits)) })
}

func inboxTime(name, of string, value func(*inbox.Limits) time.Duration) figure {
	return limit(name, of, func(r *reading) float64 { return seconds(value(&r.inbox.Limits)) })
}

func inInbox(name, help string, value func(*inbox.Stats) float64) figure {
	return describeFigure(name, help, gauge, func(r *reading) float64 { return value(&r.inbox) })
}

func ofInbox(name, help string, value func(*inbox.Stats) uint64) figure {
	return describeFigure(name, help, counter,
		func(r *reading) float64 { return float64(value(&r.inbox)) })
}

var badgeSeconds = prometheus.NewDesc("tidemark_inbox_badge_seconds", "Time of badge reads.", nil, nil)

// badgeHistogram has one sample a read.
func badgeHistogram(s *inbox.Stats) prometheus.Metric {
	return prometheus.MustNewConstHistogram(badgeSeconds, s.BadgeReads, s.BadgeTime.Seconds(),
		s.BadgeBuckets)
}
