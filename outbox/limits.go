package outbox

import (
	"errors"
	"fmt"
	"time"
)

// Limits that nobody needs to change. Each is part of the documented contract.
const (
	// MaxURLBytes bounds an endpoint's address: what any proxy lets through.
	MaxURLBytes = 2048
	// MinSecretBytes and MaxSecretBytes bound a signing secret: fewer are guessed too easily,
	// and more than a block of the hash add nothing.
	MinSecretBytes = 24
	MaxSecretBytes = 64
	// MaxWebhookMembers bounds the members of one webhook: each is kept in memory.
	MaxWebhookMembers = 1000
	// MaxIdle bounds the idle time of a webhook: beyond it nobody waits for the answer.
	MaxIdle = 30 * 24 * time.Hour
	// MaxWakes bounds the wakes of one answer to a reader, and the letters of one answer.
	MaxWakes = 500
	// MaxWait bounds how long a reader waits for wakes: proxies close what is silent for longer.
	MaxWait = time.Minute
	// maxResponseBytes is what is read of an answer, so that its connection can be used again
	// where it may be. Nothing in it means anything.
	maxResponseBytes = 4 << 10
	// maxHeaderBytes bounds the head of an answer.
	maxHeaderBytes = 16 << 10
	// maxErrorBytes bounds what is kept of an error, for people.
	maxErrorBytes = 256
	// maxHosts bounds the hosts of which something is remembered: one that is forgotten gets
	// another chance among the quick ones, or another connection.
	maxHosts = 10_000
	// dropsAtOnce bounds the rows of one purge, so that writers do not wait for it.
	dropsAtOnce = 500
	// behindFor is how long a row waits for another one before somebody looks, if nothing moves
	// it. It is moved at once when that other one is finished.
	behindFor = time.Minute
)

// Limits are what an operator may change. The zero value of each field is its default.
type Limits struct {
	// BatchRows is how many outbox rows one claim takes, of which at most FreshRows are of one
	// workspace's newest, so that a busy workspace keeps none of the others waiting. Defaults
	// 256 and 64: a claim and a settlement are one fsync each.
	BatchRows int
	FreshRows int
	// BatchRecipients bounds the recipients of all rows of a claim: two rows of the largest kind.
	// Default 4,096.
	BatchRecipients int
	// CommitWakes is how many wakes one transaction queues at most, but for those of one row.
	// Default 2,000, as a group of the lane.
	CommitWakes int
	// Stages is how many rows of a claim are worked on at once. Default 8: a port that waits
	// for one scope does not hold up the others.
	Stages int
	// StageTimeout bounds one call of a port. Default 5 s.
	StageTimeout time.Duration
	// LeaseFor is how long a claim lasts: the longest time that something lies still after a
	// process has died without a new owner. Default one minute.
	LeaseFor time.Duration
	// DeferFirst and DeferMost are the shortest and the longest pause of a deferred row; the pause
	// doubles each time. Defaults 50 ms and 5 s: what it waits for is in memory.
	DeferFirst time.Duration
	DeferMost  time.Duration
	// RetryFirst and RetryMost are the same after a failure. Defaults 1 s and 1 h.
	RetryFirst time.Duration
	RetryMost  time.Duration
	// RowAttempts is how often a row may fail before it is a dead letter. Default 20: with the
	// pauses above about nine hours.
	RowAttempts int

	// WakeAttempts is how often a wake may fail. Default 20.
	WakeAttempts int
	// WakeAge is how long a wake may wait to be sent. Default 72 h: a weekend and a day.
	WakeAge time.Duration
	// WakeTimeout bounds one request, from the look-up of its host to the end of the answer.
	// Default 10 s.
	WakeTimeout time.Duration
	// RetryAfterMost bounds how long a receiver may ask to be left alone. Default 1 h.
	RetryAfterMost time.Duration
	// Burst is how many wakes of one recipient are sent with one claim. Default 64.
	Burst int
	// Senders and SlowSenders are how many recipients are sent to at once: those that answer in
	// time, and apart from them those whose last answer took longer than SlowAfter or did not
	// come. So whoever is slow waits for the slow only. Defaults 48, 16 and 1 s.
	Senders     int
	SlowSenders int
	SlowAfter   time.Duration
	// PerHost is how many of the senders one host may take, and a quarter of it how many of the
	// slow ones. Default 16: what is new and silent takes a third of the senders, until so many of
	// its answers in a row were late.
	PerHost int
	// Queue is how many wakes wait for one recipient; the oldest beyond it are dead letters.
	// Default 10,000: a month of an agent that is woken every four minutes.
	Queue int
	// Readers is how many readers may wait for wakes at once. Default 10,000.
	Readers int

	// Webhooks is how many webhooks a workspace may have, and AllWebhooks how many this process
	// watches. Each keeps up to a thousand members loaded. Defaults 16 and 256.
	Webhooks    int
	AllWebhooks int

	// KeepDelivered is how long a delivered row is kept for people to look at. Default 1 h.
	KeepDelivered time.Duration
	// KeepDead is how long a dead letter is kept. Default 30 days.
	KeepDead time.Duration
	// Rescan is how often every workspace is looked through for rows that nobody was told of,
	// and old rows are dropped. Default 30 s: such rows are those of a process that died.
	Rescan time.Duration
	// Drain is how long requests under way may take when the outbox is closed. Default 5 s.
	Drain time.Duration
}

// DefaultLimits are those of a Limits in which nothing is set.
func DefaultLimits() Limits {
	return Limits{
		BatchRows: 256, FreshRows: 64, BatchRecipients: 4096, CommitWakes: 2000,
		Stages: 8, StageTimeout: 5 * time.Second, LeaseFor: time.Minute,
		DeferFirst: 50 * time.Millisecond, DeferMost: 5 * time.Second,
		RetryFirst: time.Second, RetryMost: time.Hour, RowAttempts: 20,
		WakeAttempts: 20, WakeAge: 72 * time.Hour, WakeTimeout: 10 * time.Second,
		RetryAfterMost: time.Hour, Burst: 64, Senders: 48, SlowSenders: 16,
		SlowAfter: time.Second, PerHost: 16, Queue: 10_000, Readers: 10_000,
		Webhooks: 16, AllWebhooks: 256,
		KeepDelivered: time.Hour, KeepDead: 30 * 24 * time.Hour,
		Rescan: 30 * time.Second, Drain: 5 * time.Second,
	}
}

// number is a limit with its default.
type number[N int | time.Duration] struct {
	name  string
	value *N
	or    N
}

func (l *Limits) numbers(or *Limits) []number[int] {
	return []number[int]{
		{"BatchRows", &l.BatchRows, or.BatchRows},
		{"FreshRows", &l.FreshRows, or.FreshRows},
		{"BatchRecipients", &l.BatchRecipients, or.BatchRecipients},
		{"CommitWakes", &l.CommitWakes, or.CommitWakes},
		{"Stages", &l.Stages, or.Stages},
		{"RowAttempts", &l.RowAttempts, or.RowAttempts},
		{"WakeAttempts", &l.WakeAttempts, or.WakeAttempts},
		{"Burst", &l.Burst, or.Burst},
		{"Senders", &l.Senders, or.Senders},
		{"SlowSenders", &l.SlowSenders, or.SlowSenders},
		{"PerHost", &l.PerHost, or.PerHost},
		{"Queue", &l.Queue, or.Queue},
		{"Readers", &l.Readers, or.Readers},
		{"Webhooks", &l.Webhooks, or.Webhooks},
		{"AllWebhooks", &l.AllWebhooks, or.AllWebhooks},
	}
}

func (l *Limits) spans(or *Limits) []number[time.Duration] {
	return []number[time.Duration]{
		{"StageTimeout", &l.StageTimeout, or.StageTimeout},
		{"LeaseFor", &l.LeaseFor, or.LeaseFor},
		{"DeferFirst", &l.DeferFirst, or.DeferFirst},
		{"DeferMost", &l.DeferMost, or.DeferMost},
		{"RetryFirst", &l.RetryFirst, or.RetryFirst},
		{"RetryMost", &l.RetryMost, or.RetryMost},
		{"WakeAge", &l.WakeAge, or.WakeAge},
		{"WakeTimeout", &l.WakeTimeout, or.WakeTimeout},
		{"RetryAfterMost", &l.RetryAfterMost, or.RetryAfterMost},
		{"SlowAfter", &l.SlowAfter, or.SlowAfter},
		{"KeepDelivered", &l.KeepDelivered, or.KeepDelivered},
		{"KeepDead", &l.KeepDead, or.KeepDead},
		{"Rescan", &l.Rescan, or.Rescan},
		{"Drain", &l.Drain, or.Drain},
	}
}

// withDefaults fills in what is not set, and refuses what cannot work.
func (l Limits) withDefaults() (Limits, error) {
	or := DefaultLimits()
	bad := append(settle(l.numbers(&or)), settle(l.spans(&or))...)
	if l.LeaseFor < 2*l.WakeTimeout {
		bad = append(bad, fmt.Errorf("LeaseFor %v is shorter than two WakeTimeouts of %v",
			l.LeaseFor, l.WakeTimeout))
	}
	if l.LeaseFor < 2*l.StageTimeout {
		bad = append(bad, fmt.Errorf("LeaseFor %v is shorter than two StageTimeouts of %v",
			l.LeaseFor, l.StageTimeout))
	}
	if err := errors.Join(bad...); err != nil {
		return l, fmt.Errorf("outbox limits: %w", err)
	}
	return l, nil
}

func settle[N int | time.Duration](all []number[N]) (bad []error) {
	for _, n := range all {
		if *n.value == 0 {
			*n.value = n.or
		}
		if *n.value < 0 {
			bad = append(bad, fmt.Errorf("%s is %v, must be positive", n.name, *n.value))
		}
	}
	return bad
}
