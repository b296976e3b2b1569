package httpapi

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/outbox"
)

// surveyTime bounds how long a look at the metrics waits for the store.
const surveyTime = 2 * time.Second

// readOutbox surveys the outbox. Counted is false where the store did not answer: the figures of
// what it holds are left out then, since no number would be true.
func (c survey) readOutbox() (s outbox.Stats, counted bool) {
	ctx, stop := context.WithTimeout(context.Background(), surveyTime)
	defer stop()
	s, err := c.s.outbox.Stats(ctx)
	return s, err == nil
}

// outboxFigures are those of a server with an outbox: what this process did and does.
var outboxFigures = []figure{
	ofOutbox("tidemark_outbox_claimed_rows_total", "Outbox rows taken to be worked on.",
		func(s *outbox.Stats) uint64 { return s.Claimed }),
	ofOutbox("tidemark_outbox_delivered_rows_total", "Outbox rows delivered.",
		func(s *outbox.Stats) uint64 { return s.Delivered }),
	ofOutbox("tidemark_outbox_deferrals_total", "Attempts at rows that found a condition not met.",
		func(s *outbox.Stats) uint64 { return s.Deferred }),
	ofOutbox("tidemark_outbox_failures_total", "Attempts at rows that failed.",
		func(s *outbox.Stats) uint64 { return s.Failed }),
	ofOutbox("tidemark_outbox_behind_total", "Attempts at rows that had to wait for an earlier one.",
		func(s *outbox.Stats) uint64 { return s.Behind }),
	ofOutbox("tidemark_outbox_dead_rows_total", "Outbox rows given up.",
		func(s *outbox.Stats) uint64 { return s.DeadRows }),
	ofOutbox("tidemark_outbox_lost_rows_total", "Outbox rows worked on for longer than their lease.",
		func(s *outbox.Stats) uint64 { return s.LostRows }),
	ofOutbox("tidemark_outbox_released_leases_total", "Leases of earlier owners that were ended.",
		func(s *outbox.Stats) uint64 { return s.Released }),
	ofOutbox("tidemark_outbox_barriers_total", "Calls of the barrier of an engine without facts.",
		func(s *outbox.Stats) uint64 { return s.Barriers }),
	ofOutbox("tidemark_outbox_purged_rows_total", "Settled rows and letters dropped for their age.",
		func(s *outbox.Stats) uint64 { return s.Purged }),

	ofOutbox("tidemark_wakes_queued_total", "Wakes queued by rows and webhooks.",
		func(s *outbox.Stats) uint64 { return s.Wakes }),
	ofOutbox("tidemark_wakes_sent_total", "Attempts to send a wake that were accepted.",
		func(s *outbox.Stats) uint64 { return s.Sent }),
	ofOutbox("tidemark_wakes_refused_total", "Attempts to send a wake that failed.",
		func(s *outbox.Stats) uint64 { return s.Refused }),
	ofOutbox("tidemark_wakes_asked_to_wait_total", "Attempts answered with a time to come back.",
		func(s *outbox.Stats) uint64 { return s.AskedToWait }),
	ofOutbox("tidemark_wakes_gone_total", "Attempts that disabled an endpoint.",
		func(s *outbox.Stats) uint64 { return s.Gone }),
	describeFigure("tidemark_wake_attempt_seconds_total", "Time of all attempts together.", counter,
		func(r *reading) float64 { return seconds(r.outbox.AttemptTime) }),
	ofOutbox("tidemark_wakes_done_total", "Wakes that were delivered or read.",
		func(s *outbox.Stats) uint64 { return s.Done }),
	ofOutbox("tidemark_wakes_read_total", "Wakes handed to readers.",
		func(s *outbox.Stats) uint64 { return s.Read }),
	ofOutbox("tidemark_wakes_dead_total", "Wakes given up after too many attempts.",
		func(s *outbox.Stats) uint64 { return s.DeadWakes }),
	ofOutbox("tidemark_wakes_expired_total", "Wakes given up for their age.",
		func(s *outbox.Stats) uint64 { return s.ExpiredWakes }),
	ofOutbox("tidemark_wakes_overflow_total", "Wakes given up for want of room.",
		func(s *outbox.Stats) uint64 { return s.OverflowWakes }),
	ofOutbox("tidemark_wake_lost_queues_total", "Outcomes of queues that could not be recorded.",
		func(s *outbox.Stats) uint64 { return s.LostQueues }),
	ofOutbox("tidemark_wake_moved_queues_total", "Queues that joined the slow ones.",
		func(s *outbox.Stats) uint64 { return s.Moved }),
	ofOutbox("tidemark_wake_bounced_queues_total", "Queues put back because their host was busy.",
		func(s *outbox.Stats) uint64 { return s.Bounced }),
	ofOutbox("tidemark_webhook_thresholds_total", "Badges that reached a webhook's number.",
		func(s *outbox.Stats) uint64 { return s.Thresholds }),
	ofOutbox("tidemark_webhook_idles_total", "Badges left unread for a webhook's time.",
		func(s *outbox.Stats) uint64 { return s.Idles }),

	describeFigure("tidemark_wake_senders", "Recipients that are being sent to.", gauge,
		func(r *reading) float64 { return float64(r.outbox.Sending) }),
	describeFigure("tidemark_wake_slow_senders", "The same of those whose answers are late.", gauge,
		func(r *reading) float64 { return float64(r.outbox.SendingSlow) }),
	describeFigure("tidemark_wake_readers", "Readers that wait for wakes.", gauge,
		func(r *reading) float64 { return float64(r.outbox.Readers) }),
	describeFigure("tidemark_webhooks", "Webhooks being watched.", gauge,
		func(r *reading) float64 { return float64(r.outbox.Webhooks) }),
}

// outboxStoreFigures are what the store holds; each number of rows counts up to
// facts.GaugeBound.
var outboxStoreFigures = []figure{
	inOutbox("tidemark_outbox_fresh_rows", "Rows that nobody has looked at.",
		func(g *facts.OutboxGauges) int { return g.Fresh }),
	inOutbox("tidemark_outbox_leased_rows", "Rows that are being worked on.",
		func(g *facts.OutboxGauges) int { return g.Leased }),
	inOutbox("tidemark_outbox_deferred_rows", "Rows that wait for a condition.",
		func(g *facts.OutboxGauges) int { return g.Deferred }),
	inOutbox("tidemark_outbox_failed_rows", "Rows that wait for another attempt.",
		func(g *facts.OutboxGauges) int { return g.Failed }),
	inOutbox("tidemark_outbox_behind_rows", "Rows that wait for an earlier one.",
		func(g *facts.OutboxGauges) int { return g.Behind }),
	describeFigure("tidemark_outbox_oldest_row_seconds", "Age of the oldest row that is not "+
		"delivered yet.", gauge, func(r *reading) float64 { return seconds(r.outbox.OldestAge) }),
	inOutbox("tidemark_outbox_dead_letters", "Rows and wakes that were given up and are kept.",
		func(g *facts.OutboxGauges) int { return g.Dead }),
	inOutbox("tidemark_wakes_waiting", "Wakes that wait to be delivered or read.",
		func(g *facts.OutboxGauges) int { return g.Waiting }),
	inOutbox("tidemark_wake_queues", "Recipients with such wakes.",
		func(g *facts.OutboxGauges) int { return g.Queues }),
	inOutbox("tidemark_wake_endpoints", "Recipients with an address.",
		func(g *facts.OutboxGauges) int { return g.Endpoints }),
	inOutbox("tidemark_wake_disabled_endpoints", "Recipients whose address answered that it is gone.",
		func(g *facts.OutboxGauges) int { return g.Disabled }),
}

// outboxLimitFigures are the budgets of an outbox in force.
var outboxLimitFigures = []figure{
	outboxLimit("tidemark_outbox_batch_rows_limit", "outbox rows of one claim",
		func(l *outbox.Limits) int { return l.BatchRows }),
	outboxLimit("tidemark_outbox_workspace_rows_limit", "new rows of one workspace in a claim",
		func(l *outbox.Limits) int { return l.FreshRows }),
	outboxLimit("tidemark_outbox_batch_recipients_limit", "recipients of all rows of a claim",
		func(l *outbox.Limits) int { return l.BatchRecipients }),
	outboxLimit("tidemark_outbox_commit_wakes_limit", "wakes that one transaction queues",
		func(l *outbox.Limits) int { return l.CommitWakes }),
	outboxLimit("tidemark_outbox_stages_limit", "rows that are worked on at once",
		func(l *outbox.Limits) int { return l.Stages }),
	outboxTime("tidemark_outbox_stage_seconds_limit", "time of one stage of a row",
		func(l *outbox.Limits) time.Duration { return l.StageTimeout }),
	outboxTime("tidemark_outbox_lease_seconds", "time of a claim",
		func(l *outbox.Limits) time.Duration { return l.LeaseFor }),
	outboxTime("tidemark_outbox_defer_seconds", "first pause of a row that has to wait",
		func(l *outbox.Limits) time.Duration { return l.DeferFirst }),
	outboxTime("tidemark_outbox_defer_seconds_limit", "longest pause of a row that has to wait",
		func(l *outbox.Limits) time.Duration { return l.DeferMost }),
	outboxLimit("tidemark_outbox_row_attempts_limit", "attempts of a row that may fail",
		func(l *outbox.Limits) int { return l.RowAttempts }),
	outboxTime("tidemark_outbox_rescan_seconds", "time after which everything is looked through",
		func(l *outbox.Limits) time.Duration { return l.Rescan }),
	outboxTime("tidemark_outbox_keep_delivered_seconds", "time that a delivered row is kept",
		func(l *outbox.Limits) time.Duration { return l.KeepDelivered }),
	outboxTime("tidemark_outbox_keep_dead_seconds", "time that a dead letter is kept",
		func(l *outbox.Limits) time.Duration { return l.KeepDead }),
	outboxTime("tidemark_outbox_retry_seconds", "pause after a first failure",
		func(l *outbox.Limits) time.Duration { return l.RetryFirst }),
	outboxTime("tidemark_outbox_retry_seconds_limit", "longest pause after a failure",
		func(l *outbox.Limits) time.Duration { return l.RetryMost }),
	outboxTime("tidemark_outbox_drain_seconds_limit", "time of requests when the process is stopped",
		func(l *outbox.Limits) time.Duration { return l.Drain }),

	outboxLimit("tidemark_wake_attempts_limit", "attempts to send a wake that may fail",
		func(l *outbox.Limits) int { return l.WakeAttempts }),
	outboxTime("tidemark_wake_age_seconds_limit", "age up to which a wake is sent",
		func(l *outbox.Limits) time.Duration { return l.WakeAge }),
	outboxTime("tidemark_wake_request_seconds_limit", "time of one request to a receiver",
		func(l *outbox.Limits) time.Duration { return l.WakeTimeout }),
	outboxTime("tidemark_wake_retry_after_seconds_limit", "time a receiver may ask for",
		func(l *outbox.Limits) time.Duration { return l.RetryAfterMost }),
	outboxLimit("tidemark_wake_burst_limit", "wakes of one recipient sent with one claim",
		func(l *outbox.Limits) int { return l.Burst }),
	outboxLimit("tidemark_wake_senders_limit", "recipients that are sent to at once",
		func(l *outbox.Limits) int { return l.Senders }),
	outboxLimit("tidemark_wake_slow_senders_limit", "slow recipients that are sent to at once",
		func(l *outbox.Limits) int { return l.SlowSenders }),
	outboxTime("tidemark_wake_slow_seconds_limit", "time after which an answer is late",
		func(l *outbox.Limits) time.Duration { return l.SlowAfter }),
	outboxLimit("tidemark_wake_host_senders_limit", "senders of one host",
		func(l *outbox.Limits) int { return l.PerHost }),
	outboxLimit("tidemark_wake_queue_limit", "wakes that wait for one recipient",
		func(l *outbox.Limits) int { return l.Queue }),
	outboxLimit("tidemark_wake_readers_limit", "readers that wait for wakes",
		func(l *outbox.Limits) int { return l.Readers }),
	outboxLimit("tidemark_workspace_webhooks_limit", "webhooks of one workspace",
		func(l *outbox.Limits) int { return l.Webhooks }),
	outboxLimit("tidemark_webhooks_limit", "webhooks being watched",
		func(l *outbox.Limits) int { return l.AllWebhooks }),
}

func ofOutbox(name, help string, value func(*outbox.Stats) uint64) figure {
	return describeFigure(name, help, prometheus.CounterValue,
		func(r *reading) float64 { return float64(value(&r.outbox)) })
}

func inOutbox(name, help string, value func(*facts.OutboxGauges) int) figure {
	return describeFigure(name, help, prometheus.GaugeValue,
		func(r *reading) float64 { return float64(value(&r.outbox.Gauges)) })
}

func outboxLimit(name, of string, value func(*outbox.Limits) int) figure {
	return limit(name, of, func(r *reading) float64 { return float64(value(&r.outbox.Limits)) })
}

func outboxTime(name, of string, value func(*outbox.Limits) time.Duration) figure {
	return limit(name, of, func(r *reading) float64 { return seconds(value(&r.outbox.Limits)) })
}
