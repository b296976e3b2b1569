package httpapi

// snapshotFigures are those of an engine without facts of its own. Other engines do not have
// them.
var snapshotFigures = []figure{
	describeFigure("tidemark_snapshot_backlog_rows", "Rows that wait for a flush.", gauge,
		func(r *reading) float64 { return float64(r.intake.Books.Backlog) }),
	describeFigure("tidemark_snapshot_oldest_dirty_seconds", "Age of the oldest change that was "+
		"not flushed yet.", gauge,
		func(r *reading) float64 { return float64(r.intake.Books.OldestDirty) / 1000 }),
	describeFigure("tidemark_snapshot_withheld_rows", "Rows withheld until the backlog has room.",
		gauge, func(r *reading) float64 { return float64(r.intake.Books.Owed) }),
	describeFigure("tidemark_snapshot_cached_rows", "Rows of members that are kept.", gauge,
		func(r *reading) float64 { return float64(r.intake.Books.Rows) }),
	describeFigure("tidemark_snapshot_refused_rows_total", "Changes that the backlog had no room for.",
		counter, func(r *reading) float64 { return float64(r.intake.Books.Refused) }),
	describeFigure("tidemark_snapshot_flushes_total", "Batches written.", counter,
		func(r *reading) float64 { return float64(r.intake.Flush.Flushes) }),
	describeFigure("tidemark_snapshot_flushed_rows_total", "Rows written.", counter,
		func(r *reading) float64 { return float64(r.intake.Flush.Rows) }),
	describeFigure("tidemark_snapshot_flush_failures_total", "Batches that could not be written.",
		counter, func(r *reading) float64 { return float64(r.intake.Flush.Failures) }),
	describeFigure("tidemark_snapshot_damaged_rows_total", "Rows of the table that were not usable.",
		counter, func(r *reading) float64 { return float64(r.intake.Books.Damaged) }),
	describeFigure("tidemark_snapshot_lost_entries_total", "Entries of scopes nobody told of.", counter,
		func(r *reading) float64 { return float64(r.intake.Books.Lost) }),
	describeFigure("tidemark_snapshot_contradictions_total", "Rows withheld because an event took "+
		"back what they never had.", counter,
		func(r *reading) float64 { return float64(r.intake.Books.Contradictions) }),

	describeFigure("tidemark_intake_queued_events", "Events that wait for rows or rosters.", gauge,
		func(r *reading) float64 { return float64(r.intake.Queued) }),
	describeFigure("tidemark_intake_pending_scopes", "Scopes that have such events.", gauge,
		func(r *reading) float64 { return float64(r.intake.PendingScopes) }),
	describeFigure("tidemark_intake_events_total", "Events taken in.", counter,
		func(r *reading) float64 { return float64(r.intake.Events) }),
	describeFigure("tidemark_intake_dropped_events_total", "Events refused by a budget.", counter,
		func(r *reading) float64 { return float64(r.intake.DroppedEvents) }),
	describeFigure("tidemark_intake_repeated_events_total", "Events older than what they change.",
		counter, func(r *reading) float64 { return float64(r.intake.RepeatedEvents) }),
	describeFigure("tidemark_intake_pending_frontiers_total", "Times a scope was found to have "+
		"missed something.", counter,
		func(r *reading) float64 { return float64(r.intake.PendingFrontiers) }),
	describeFigure("tidemark_intake_retries_total", "Reads of rows and rosters to be tried again.",
		counter, func(r *reading) float64 { return float64(r.intake.Retries) }),
	describeFigure("tidemark_intake_failures_total", "Events that contradicted memory.", counter,
		func(r *reading) float64 { return float64(r.intake.Failures) }),
	describeFigure("tidemark_intake_rosters_total", "Rosters read to the end.", counter,
		func(r *reading) float64 { return float64(r.intake.Rosters) }),
	describeFigure("tidemark_intake_refused_rosters_total", "Rosters over their budget.", counter,
		func(r *reading) float64 { return float64(r.intake.RefusedRosters) }),
}
