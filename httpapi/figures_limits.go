package httpapi

import "time"

// limitFigures are the budgets in force, as those who keep them report them. Their names are
// those of the present use with _limit behind it, where there is such a figure.
var limitFigures = []figure{
	limit("tidemark_unread_reading_pages_limit", "pages read at once",
		func(r *reading) float64 { return float64(r.runtime.Budgets.HydrateConcurrency) }),
	limit("tidemark_unread_page_rows_limit", "rows of one page",
		func(r *reading) float64 { return float64(r.runtime.Budgets.HydratePageSize) }),
	limit("tidemark_unread_page_retry_seconds", "pause before a failed page is read again",
		func(r *reading) float64 { return seconds(r.runtime.Budgets.HydrateRetry) }),
	limit("tidemark_unread_load_wait_seconds_limit", "time a read waits for a member's rows",
		func(r *reading) float64 { return seconds(r.runtime.Budgets.HydrateWait) }),
	limit("tidemark_unread_hydrating_limit", "members being loaded",
		func(r *reading) float64 { return float64(r.runtime.Budgets.MaxHydrations) }),
	limit("tidemark_unread_workspace_hydrating_limit", "members being loaded in one workspace",
		func(r *reading) float64 { return float64(r.runtime.Budgets.MaxWorkspaceHydrations) }),
	limit("tidemark_unread_workspace_ring_events_limit", "events a workspace keeps for pages",
		func(r *reading) float64 { return float64(r.runtime.Budgets.RingEvents) }),
	limit("tidemark_unread_workspace_idle_entries_limit", "rows of members without a stream in "+
		"one workspace",
		func(r *reading) float64 { return float64(r.runtime.Budgets.MaxEntries) }),
	limit("tidemark_unread_bytes_limit", "memory of rows, members, scopes and texts",
		func(r *reading) float64 { return float64(r.runtime.Budgets.MaxBytes) }),
	limit("tidemark_unread_step_rows_limit", "rows one event moves or tells at once",
		func(r *reading) float64 { return float64(r.runtime.Budgets.MaxFirePerTick) }),
	limit("tidemark_unread_watch_members_limit", "members of one stream",
		func(r *reading) float64 { return float64(r.runtime.Budgets.MaxWatchMembers) }),

	limit("tidemark_lane_group_rows_limit", "rows of one group commit",
		func(r *reading) float64 { return float64(r.lane.GroupRows) }),
	limit("tidemark_lane_group_wait_seconds_limit", "age of one group commit",
		func(r *reading) float64 { return seconds(r.lane.GroupWait) }),
	limit("tidemark_lane_queue_limit", "requests that wait for the lane",
		func(r *reading) float64 { return float64(r.lane.QueueDepth) }),

	limit("tidemark_stream_heartbeat_seconds", "silence before a sign of life",
		func(r *reading) float64 { return seconds(r.streams.Heartbeat) }),
	limit("tidemark_stream_write_seconds_limit", "time one frame may take",
		func(r *reading) float64 { return seconds(r.streams.WriteTimeout) }),
	limit("tidemark_stream_retry_seconds", "pause before withheld values are asked for again",
		func(r *reading) float64 { return seconds(r.streams.Retry) }),
	limit("tidemark_stream_page_rows_limit", "scopes of one snapshot page",
		func(r *reading) float64 { return float64(r.streams.PageRows) }),

	limit("tidemark_http_member_rate_limit", "requests a second of a member token",
		func(r *reading) float64 { return r.limits.MemberRate }),
	limit("tidemark_http_member_burst_limit", "requests of a member token at once",
		func(r *reading) float64 { return float64(r.limits.MemberBurst) }),
	limit("tidemark_http_service_rate_limit", "requests a second of a service token",
		func(r *reading) float64 { return r.limits.ServiceRate }),
	limit("tidemark_http_service_burst_limit", "requests of a service token at once",
		func(r *reading) float64 { return float64(r.limits.ServiceBurst) }),
	limit("tidemark_http_token_streams_limit", "streams of one token",
		func(r *reading) float64 { return float64(r.limits.Streams) }),
	limit("tidemark_http_tokens_limit", "tokens that are remembered",
		func(r *reading) float64 { return float64(r.limits.Tokens) }),
	limit("tidemark_http_request_seconds_limit", "time of a request that is no stream",
		func(r *reading) float64 { return seconds(r.limits.RequestTimeout) }),
	limit("tidemark_http_body_seconds_limit", "time of a request's body",
		func(r *reading) float64 { return seconds(r.limits.BodyTimeout) }),
	limit("tidemark_http_write_seconds_limit", "time of an answer",
		func(r *reading) float64 { return seconds(r.limits.WriteTimeout) }),
	limit("tidemark_http_header_seconds_limit", "time of a request's head",
		func(r *reading) float64 { return seconds(r.limits.HeaderTimeout) }),
	limit("tidemark_http_idle_seconds_limit", "time between two requests of a connection",
		func(r *reading) float64 { return seconds(r.limits.IdleTimeout) }),
	limit("tidemark_http_header_bytes_limit", "size of a request's head",
		func(r *reading) float64 { return float64(r.limits.HeaderBytes) }),
}

func limit(name, of string, value func(*reading) float64) figure {
	return describeFigure(name, "Budget in force: "+of+".", gauge, value)
}

func seconds(d time.Duration) float64 { return d.Seconds() }
