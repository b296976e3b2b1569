package httpapi

import "slices"

// snapshotFigures are those of an engine without facts of its own. Other engines do not have
// them.
var snapshotFigures = slices.Concat(tableFigures, intakeFigures, snapshotLimits)

var tableFigures = []figure{
	describeFigure("tidemark_snapshot_backlog_rows", "Rows that wait for a flush.", gauge,
		func(r *reading) float64 { return float64(r.intake.Books.Backlog) }),
	describeFigure("tidemark_snapshot_workspace_backlog_rows", "Rows that wait for a flush, in the "+
		"workspace that has most.", gauge,
		func(r *reading) float64 { return float64(r.intake.WorkspaceBacklog) }),
	describeFigure("tidemark_snapshot_oldest_dirty_seconds", "Age of the oldest change that was "+
		"not flushed yet.", gauge,
		func(r *reading) float64 { return float64(r.intake.Books.OldestDirty) / 1000 }),
	describeFigure("tidemark_snapshot_oldest_hint_seconds", "How long the member has been served "+
		"what came back from the table for whom that is longest.", gauge,
		func(r *reading) float64 { return float64(r.intake.OldestHint) / 1000 }),
	describeFigure("tidemark_snapshot_withheld_rows", "Rows withheld until the backlog has room.",
		gauge, func(r *reading) float64 { return float64(r.intake.Books.Owed) }),
	describeFigure("tidemark_snapshot_cached_rows", "Rows of members that are kept.", gauge,
		func(r *reading) float64 { return float64(r.intake.Books.Rows) }),
	describeFigure("tidemark_snapshot_cached_members", "Members that are kept apart from scopes.",
		gauge, func(r *reading) float64 { return float64(r.intake.Books.People) }),
	describeFigure("tidemark_snapshot_workspace_cached_rows", "Both, in the workspace that keeps "+
		"most.", gauge, func(r *reading) float64 { return float64(r.intake.WorkspaceCached) }),
	describeFigure("tidemark_snapshot_scopes", "Scopes that are kept.", gauge,
		func(r *reading) float64 { return float64(r.intake.Books.Scopes) }),
	describeFigure("tidemark_snapshot_workspace_scopes", "Scopes that are kept, in the workspace "+
		"that keeps most.", gauge,
		func(r *reading) float64 { return float64(r.intake.WorkspaceScopes) }),
	describeFigure("tidemark_snapshot_workspace_held", "Newest messages and activities that are "+
		"held, in the workspace that holds most.", gauge,
		func(r *reading) float64 { return float64(r.intake.WorkspaceHeld) }),
	describeFigure("tidemark_snapshot_forgotten_scopes_total", "Scopes let go.", counter,
		func(r *reading) float64 { return float64(r.intake.Books.Forgotten) }),
	describeFigure("tidemark_snapshot_cut_tails_total", "Scopes whose newest messages were let go.",
		counter, func(r *reading) float64 { return float64(r.intake.Books.CutTails) }),
	describeFigure("tidemark_snapshot_refused_rows_total", "Changes that the backlog had no room for.",
		counter, func(r *reading) float64 { return float64(r.intake.Books.Refused) }),
	describeFigure("tidemark_snapshot_flushes_total", "Batches written.", counter,
		func(r *reading) float64 { return float64(r.intake.Flush.Flushes) }),
	describeFigure("tidemark_snapshot_flushed_rows_total", "Rows written.", counter,
		func(r *reading) float64 { return float64(r.intake.Flush.Rows) }),
	describeFigure("tidemark_snapshot_flush_failures_total", "Batches that could not be written.",
		counter, func(r *reading) float64 { return float64(r.intake.Flush.Failures) }),
	describeFigure("tidemark_snapshot_barriers_total", "Deliveries to be made durable at once.",
		counter, func(r *reading) float64 { return float64(r.intake.Flush.Barriers) }),
	describeFigure("tidemark_snapshot_deferred_barriers_total", "Deliveries that could not be.",
		counter, func(r *reading) float64 { return float64(r.intake.Flush.Deferred) }),
	describeFigure("tidemark_snapshot_damaged_rows_total", "Rows of the table that were not usable.",
		counter, func(r *reading) float64 { return float64(r.intake.Books.Damaged) }),
	describeFigure("tidemark_snapshot_lost_entries_total", "Entries of scopes nobody told of.", counter,
		func(r *reading) float64 { return float64(r.intake.Books.Lost) }),
	describeFigure("tidemark_snapshot_contradictions_total", "Rows withheld because they and "+
		"what was told contradict each other.", counter,
		func(r *reading) float64 { return float64(r.intake.Books.Contradictions) }),
}

var intakeFigures = []figure{
	describeFigure("tidemark_intake_queued_events", "Events that wait for rows or rosters.", gauge,
		func(r *reading) float64 { return float64(r.intake.Queued) }),
	describeFigure("tidemark_intake_scope_pending_events", "Such events of the scope that has most.",
		gauge, func(r *reading) float64 { return float64(r.intake.ScopePending) }),
	describeFigure("tidemark_intake_pending_scopes", "Scopes that have such events.", gauge,
		func(r *reading) float64 { return float64(r.intake.PendingScopes) }),
	describeFigure("tidemark_intake_largest_roster_members", "Members of the largest roster read.",
		gauge, func(r *reading) float64 { return float64(r.intake.LargestRoster) }),
	describeFigure("tidemark_intake_members", "Members who have been named by an event or a read.",
		gauge, func(r *reading) float64 { return float64(r.intake.MemberNames) }),
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
	describeFigure("tidemark_intake_repairs_total", "Rows repaired from the program's facts.", counter,
		func(r *reading) float64 { return float64(r.intake.Repairs) }),
	describeFigure("tidemark_intake_repair_failures_total", "Rows that could not be.", counter,
		func(r *reading) float64 { return float64(r.intake.FailedRepairs) }),
	describeFigure("tidemark_intake_comparisons_total", "Served rows held against the program's "+
		"facts, in comparison mode.", counter,
		func(r *reading) float64 { return float64(r.intake.Comparisons) }),
	describeFigure("tidemark_intake_mismatches_total", "Those that differed.", counter,
		func(r *reading) float64 { return float64(r.intake.Mismatches) }),
}

// snapshotLimits are the budgets of snapshot mode in force.
var snapshotLimits = []figure{
	limit("tidemark_snapshot_flush_interval_seconds", "time between two flushes",
		func(r *reading) float64 { return seconds(r.intake.Budgets.Flush.FlushInterval) }),
	limit("tidemark_snapshot_flush_batch_rows_limit", "rows of one flush",
		func(r *reading) float64 { return float64(r.intake.Budgets.Flush.FlushBatchSize) }),
	limit("tidemark_snapshot_flush_retry_seconds", "pause after a flush that failed",
		func(r *reading) float64 { return seconds(r.intake.Budgets.Flush.FlushRetry) }),
	limit("tidemark_snapshot_write_seconds_limit", "time of one write",
		func(r *reading) float64 { return seconds(r.intake.Budgets.Flush.FlushTimeout) }),
	limit("tidemark_snapshot_workspace_backlog_rows_limit", "rows of members that wait for a flush, "+
		"in one workspace",
		func(r *reading) float64 { return float64(r.intake.Budgets.Limits.Backlog) }),
	limit("tidemark_snapshot_workspace_cached_rows_limit", "rows and members kept, in one workspace",
		func(r *reading) float64 { return float64(r.intake.Budgets.Limits.Cached) }),
	limit("tidemark_snapshot_workspace_scopes_limit", "scopes kept, in one workspace",
		func(r *reading) float64 { return float64(r.intake.Budgets.Limits.Scopes) }),
	limit("tidemark_snapshot_scope_held_limit", "newest messages of a scope that are held",
		func(r *reading) float64 { return float64(r.intake.Budgets.Limits.Held) }),
	limit("tidemark_snapshot_workspace_held_limit", "newest messages held, in one workspace",
		func(r *reading) float64 { return float64(r.intake.Budgets.Limits.HeldTotal) }),
	limit("tidemark_intake_queued_events_limit", "events that wait",
		func(r *reading) float64 { return float64(r.intake.Budgets.MaxQueuedEvents) }),
	limit("tidemark_intake_scope_pending_events_limit", "events of one scope that wait",
		func(r *reading) float64 { return float64(r.intake.Budgets.MaxPendingEvents) }),
	limit("tidemark_intake_pending_scopes_limit", "scopes that have such events",
		func(r *reading) float64 { return float64(r.intake.Budgets.MaxWarmScopes) }),
	limit("tidemark_intake_drain_events_limit", "waiting events taken in at once",
		func(r *reading) float64 { return float64(r.intake.Budgets.DrainBatch) }),
	limit("tidemark_intake_roster_members_limit", "members of a cold scope's roster",
		func(r *reading) float64 { return float64(r.intake.Budgets.MaxRoster) }),
}
