package settings

// The outbox has two parts of the table and one family of names: what rows may take on their way
// to being delivered, and what is sent to those who are woken.

const (
	rowsWait  = "the rest comes with the next claim"
	untilTold = "nothing is lost: it is taken up again"
	letters   = "it becomes a dead letter, which can be requeued"
)

var outboxRows = []Setting{
	{
		Name: "TIDEMARK_OUTBOX_BATCH_ROWS", Kind: Count,
		Does: "outbox rows that one claim takes", Beyond: rowsWait,
		Why:   "a claim and what becomes of it are one durable write each",
		Limit: "tidemark_outbox_batch_rows_limit", Use: "tidemark_outbox_leased_rows",
		least: 1, most: 10_000, field: func(v *Values) any { return &v.Outbox.BatchRows },
	},
	{
		Name: "TIDEMARK_OUTBOX_FRESH_ROWS", Kind: Count,
		Does: "new rows of one workspace in a claim", Beyond: "those of other workspaces come first",
		Why:   "a busy workspace shall keep none of the others waiting",
		Limit: "tidemark_outbox_workspace_rows_limit", Use: "tidemark_outbox_fresh_rows",
		least: 1, most: 10_000, field: func(v *Values) any { return &v.Outbox.FreshRows },
	},
	{
		Name: "TIDEMARK_OUTBOX_BATCH_RECIPIENTS", Kind: Count,
		Does: "recipients of all rows of a claim", Beyond: rowsWait,
		Why:   "they are memory; the first row comes in any case",
		Limit: "tidemark_outbox_batch_recipients_limit",
		least: 1, most: 1_000_000, field: func(v *Values) any { return &v.Outbox.BatchRecipients },
	},
	{
		Name: "TIDEMARK_OUTBOX_COMMIT_WAKES", Kind: Count,
		Does: "wakes that one transaction queues", Beyond: "the rest follows in the next one",
		Why:   "writers wait for a transaction; one row's wakes are never parted",
		Limit: "tidemark_outbox_commit_wakes_limit", Over: "tidemark_wakes_queued_total",
		least: 1, most: 100_000, field: func(v *Values) any { return &v.Outbox.CommitWakes },
	},
	{
		Name: "TIDEMARK_OUTBOX_STAGES", Kind: Count,
		Does: "rows that are worked on at once where a stage may wait", Beyond: "the next ones wait",
		Why:   "each is a call of a port",
		Limit: "tidemark_outbox_stages_limit",
		least: 1, most: 1_000, field: func(v *Values) any { return &v.Outbox.Stages },
	},
	{
		Name: "TIDEMARK_OUTBOX_STAGE_TIMEOUT", Kind: Duration,
		Does: "time of one stage of a row", Beyond: "the row is deferred, which costs it nothing",
		Why:   "a lease lasts at least twice as long",
		Limit: "tidemark_outbox_stage_seconds_limit", Over: "tidemark_outbox_deferrals_total",
		least: ms(10), most: ms(30_000), field: func(v *Values) any { return &v.Outbox.StageTimeout },
	},
	{
		Name: "TIDEMARK_OUTBOX_LEASE", Kind: Duration,
		Does:   "time for which rows and queues are claimed",
		Beyond: untilTold,
		Why:    "it lasts two stages and two requests; longer ones lie still if nobody ends them",
		Limit:  "tidemark_outbox_lease_seconds", Over: "tidemark_outbox_lost_rows_total",
		least: ms(20_000), most: ms(3_600_000), field: func(v *Values) any { return &v.Outbox.LeaseFor },
	},
	{
		Name: "TIDEMARK_OUTBOX_DEFER_FIRST", Kind: Duration,
		Does:   "shortest pause of a row that has to wait; it doubles each time",
		Beyond: "", Why: "shorter ones keep asking what cannot have changed",
		Limit: "tidemark_outbox_defer_seconds", Over: "tidemark_outbox_deferrals_total",
		least: ms(1), most: ms(5_000), field: func(v *Values) any { return &v.Outbox.DeferFirst },
	},
	{
		Name: "TIDEMARK_OUTBOX_DEFER_MOST", Kind: Duration,
		Does: "longest such pause", Beyond: "",
		Why:   "it is how late a row may be noticed; not below the shortest",
		Limit: "tidemark_outbox_defer_seconds_limit", Use: "tidemark_outbox_deferred_rows",
		least: ms(50), most: ms(600_000), field: func(v *Values) any { return &v.Outbox.DeferMost },
	},
	{
		Name: "TIDEMARK_OUTBOX_ROW_ATTEMPTS", Kind: Count,
		Does: "attempts of a row that may fail", Beyond: letters,
		Why:   "waiting for a condition is no failure and is never counted",
		Limit: "tidemark_outbox_row_attempts_limit", Use: "tidemark_outbox_failed_rows",
		Over:  "tidemark_outbox_dead_rows_total",
		least: 1, most: 1_000, field: func(v *Values) any { return &v.Outbox.RowAttempts },
	},
	{
		Name: "TIDEMARK_OUTBOX_RESCAN", Kind: Duration,
		Does:   "time after which everything is looked through for rows that nobody was told of",
		Beyond: "", Why: "such rows are those of a process that died: a new one begins with them",
		Limit: "tidemark_outbox_rescan_seconds", Over: "tidemark_outbox_released_leases_total",
		least: ms(100), most: ms(3_600_000), field: func(v *Values) any { return &v.Outbox.Rescan },
	},
	{
		Name: "TIDEMARK_OUTBOX_KEEP_DELIVERED", Kind: Duration,
		Does: "time that a delivered row is kept to be looked at", Beyond: "it is dropped",
		Why:   "it is disk; nothing needs it any more",
		Limit: "tidemark_outbox_keep_delivered_seconds", Over: "tidemark_outbox_purged_rows_total",
		least: ms(1_000), most: ms(86_400_000 * 30),
		field: func(v *Values) any { return &v.Outbox.KeepDelivered },
	},
	{
		Name: "TIDEMARK_OUTBOX_KEEP_DEAD", Kind: Duration,
		Does: "time that a dead letter is kept", Beyond: "it is lost for good",
		Why:   "somebody has to have had the time to look",
		Limit: "tidemark_outbox_keep_dead_seconds", Use: "tidemark_outbox_dead_letters",
		least: ms(3_600_000), most: ms(86_400_000 * 90),
		field: func(v *Values) any { return &v.Outbox.KeepDead },
	},
}

var wakes = []Setting{
	{
		Name: "TIDEMARK_OUTBOX_WAKE_ATTEMPTS", Kind: Count,
		Does: "attempts to send a wake that may fail", Beyond: letters,
		Why:   "each costs a place of a sender",
		Limit: "tidemark_wake_attempts_limit", Over: "tidemark_wakes_dead_total",
		least: 1, most: 1_000, field: func(v *Values) any { return &v.Outbox.WakeAttempts },
	},
	{
		Name: "TIDEMARK_OUTBOX_WAKE_AGE", Kind: Duration,
		Does: "age up to which a wake is sent", Beyond: letters,
		Why:   "shorter than a night nobody would notice in time",
		Limit: "tidemark_wake_age_seconds_limit", Over: "tidemark_wakes_expired_total",
		least: ms(60_000), most: ms(86_400_000 * 90),
		field: func(v *Values) any { return &v.Outbox.WakeAge },
	},
	{
		Name: "TIDEMARK_OUTBOX_WAKE_TIMEOUT", Kind: Duration,
		Does: "time of one request to a receiver", Beyond: "it has failed and is tried again",
		Why:   "a silent receiver holds a sender for so long; a lease lasts at least twice as long",
		Limit: "tidemark_wake_request_seconds_limit", Use: "tidemark_wake_attempt_seconds_total",
		Over:  "tidemark_wakes_refused_total",
		least: ms(100), most: ms(30_000), field: func(v *Values) any { return &v.Outbox.WakeTimeout },
	},
	{
		Name: "TIDEMARK_OUTBOX_RETRY_FIRST", Kind: Duration,
		Does: "pause after the first failure, of a row or a wake; it doubles each time", Beyond: "",
		Why:   "shorter ones hammer a receiver that is in trouble already",
		Limit: "tidemark_outbox_retry_seconds",
		least: ms(10), most: ms(3_600_000), field: func(v *Values) any { return &v.Outbox.RetryFirst },
	},
	{
		Name: "TIDEMARK_OUTBOX_RETRY_MOST", Kind: Duration,
		Does: "longest such pause", Beyond: "",
		Why:   "it is how late a receiver that is back may get what waited; not below the first",
		Limit: "tidemark_outbox_retry_seconds_limit",
		least: ms(1_000), most: ms(86_400_000), field: func(v *Values) any { return &v.Outbox.RetryMost },
	},
	{
		Name: "TIDEMARK_OUTBOX_RETRY_AFTER_MOST", Kind: Duration,
		Does: "time for which a receiver may ask to be left alone", Beyond: "it is asked again then",
		Why:   "such a pause costs no attempt, so that it must end",
		Limit: "tidemark_wake_retry_after_seconds_limit", Over: "tidemark_wakes_asked_to_wait_total",
		least: ms(1_000), most: ms(86_400_000),
		field: func(v *Values) any { return &v.Outbox.RetryAfterMost },
	},
	{
		Name: "TIDEMARK_OUTBOX_BURST", Kind: Count,
		Does:   "wakes of one recipient that are sent with one claim",
		Beyond: "others have their turn first", Why: "they are memory, and sent one after the other",
		Limit: "tidemark_wake_burst_limit",
		least: 1, most: 10_000, field: func(v *Values) any { return &v.Outbox.Burst },
	},
	{
		Name: "TIDEMARK_OUTBOX_SENDERS", Kind: Count,
		Does: "recipients that are sent to at once", Beyond: "the next ones wait",
		Why:   "each is a connection",
		Limit: "tidemark_wake_senders_limit", Use: "tidemark_wake_senders",
		least: 1, most: 10_000, field: func(v *Values) any { return &v.Outbox.Senders },
	},
	{
		Name: "TIDEMARK_OUTBOX_SLOW_SENDERS", Kind: Count,
		Does: "the same of those whose last answer was late", Beyond: "they wait for each other only",
		Why:   "as above",
		Limit: "tidemark_wake_slow_senders_limit", Use: "tidemark_wake_slow_senders",
		Over:  "tidemark_wake_moved_queues_total",
		least: 1, most: 10_000, field: func(v *Values) any { return &v.Outbox.SlowSenders },
	},
	{
		Name: "TIDEMARK_OUTBOX_SLOW_AFTER", Kind: Duration,
		Does: "time after which an answer is late", Beyond: "the recipient goes to the slow ones",
		Why:   "below what networks take everybody would be slow",
		Limit: "tidemark_wake_slow_seconds_limit", Over: "tidemark_wake_moved_queues_total",
		least: ms(10), most: ms(30_000), field: func(v *Values) any { return &v.Outbox.SlowAfter },
	},
	{
		Name: "TIDEMARK_OUTBOX_HOST_SENDERS", Kind: Count,
		Does:   "senders that one host may take, and a quarter of it of the slow ones",
		Beyond: "its queues wait, and are put back where too many do",
		Why:    "one host shall not take all places",
		Limit:  "tidemark_wake_host_senders_limit", Over: "tidemark_wake_bounced_queues_total",
		least: 1, most: 10_000, field: func(v *Values) any { return &v.Outbox.PerHost },
	},
	{
		Name: "TIDEMARK_OUTBOX_QUEUE", Kind: Count,
		Does: "wakes that wait for one recipient", Beyond: "the oldest become dead letters",
		Why:   "they are disk",
		Limit: "tidemark_wake_queue_limit", Use: "tidemark_wakes_waiting",
		Over:  "tidemark_wakes_overflow_total",
		least: 1, most: 10_000_000, field: func(v *Values) any { return &v.Outbox.Queue },
	},
	{
		Name: "TIDEMARK_OUTBOX_READERS", Kind: Count,
		Does: "readers that wait for wakes", Beyond: again, Why: "each is a connection",
		Limit: "tidemark_wake_readers_limit", Use: "tidemark_wake_readers", Over: overRate,
		least: 1, most: 1_000_000, field: func(v *Values) any { return &v.Outbox.Readers },
	},
	{
		Name: "TIDEMARK_OUTBOX_WEBHOOKS", Kind: Count,
		Does: "webhooks of one workspace", Beyond: again,
		Why:   "each keeps up to a thousand members loaded",
		Limit: "tidemark_workspace_webhooks_limit", Over: overRate,
		least: 1, most: 10_000, field: func(v *Values) any { return &v.Outbox.Webhooks },
	},
	{
		Name: "TIDEMARK_OUTBOX_ALL_WEBHOOKS", Kind: Count,
		Does: "webhooks that this process watches", Beyond: "no new ones: `over_budget` (429)",
		Why:   "as above",
		Limit: "tidemark_webhooks_limit", Use: "tidemark_webhooks", Over: overRate,
		least: 1, most: 100_000, field: func(v *Values) any { return &v.Outbox.AllWebhooks },
	},
	{
		Name: "TIDEMARK_OUTBOX_DRAIN", Kind: Duration,
		Does:   "time that requests under way have when the process is stopped",
		Beyond: "they are broken off, and sent again after the start",
		Why:    "a stop waits for it",
		Limit:  "tidemark_outbox_drain_seconds_limit",
		least:  ms(10), most: ms(600_000), field: func(v *Values) any { return &v.Outbox.Drain },
	},
}
