package httpapi

import (
	"fmt"
	"time"
)

// Limits of requests. Each is part of the documented contract.
const (
	// MaxBody bounds a body: four payloads' worth, so that the largest message fits.
	MaxBody = 256 << 10
	// MaxBatchBody bounds the body of a batch, which is held in memory as a whole.
	MaxBatchBody = 8 << 20
	// MaxBatch bounds the items of a batch, so that one request is a few groups of the lane.
	MaxBatch = 1000
	// MaxReadAll bounds the scopes of one read-all.
	MaxReadAll = 500
	// MaxQueryMembers bounds the members of one query of unread state.
	MaxQueryMembers = 200
	// MaxQueryRows bounds the rows of its answer.
	MaxQueryRows = 5000
	// DefaultPage and MaxPage bound the items of a page: one short read transaction.
	DefaultPage = 100
	MaxPage     = 500
	// maxQueryText bounds the query part of an address: 10,000 members of 128 bytes, escaped,
	// would not fit a request line of any proxy, but what our own server takes must be bounded.
	maxQueryText = 900 << 10
	// retrySeconds is what Retry-After says where nothing better is known.
	retrySeconds = 1
)

// Limits are what an operator may change. The zero value of each field is its documented
// default.
type Limits struct {
	// MemberRate is how many requests a second one member token may make in the long run, and
	// MemberBurst how many at once. Defaults 100 and 500: far above what an app does, and low
	// enough that one broken client in a loop leaves the rest of the machine to others.
	MemberRate  float64
	MemberBurst int
	// ServiceRate and ServiceBurst are the same for services and admins, who speak for many.
	// Defaults 5,000 and 10,000.
	ServiceRate  float64
	ServiceBurst int
	// Streams is how many streams one token may have open. Default 32: tabs and devices.
	Streams int
	// Tokens is how many tokens are remembered for the limits above. Default 100,000.
	Tokens int
	// RequestTimeout bounds one request that is not a stream. Default 30 s.
	RequestTimeout time.Duration
	// BodyTimeout is how long the body of a request may take to arrive, whether the request is
	// refused or not. Default 30 s.
	BodyTimeout time.Duration
	// WriteTimeout is how long a client may take to read an answer, from its first byte on;
	// streams have their own for each frame. Default 30 s.
	WriteTimeout time.Duration

	// The rest is for whoever makes the http.Server around this one, which alone can enforce it.

	// HeaderTimeout is how long the head of a request may take to arrive. Default 10 s.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a connection is kept between two requests. Default two minutes:
	// longer than load balancers keep theirs.
	IdleTimeout time.Duration
	// HeaderBytes bounds the head of a request. Default 1 MiB: a query may name many members.
	HeaderBytes int
}

// DefaultLimits are those of a Limits in which nothing is set.
func DefaultLimits() Limits {
	return Limits{
		MemberRate: 100, MemberBurst: 500, ServiceRate: 5000, ServiceBurst: 10_000,
		Streams: 32, Tokens: 100_000,
		RequestTimeout: 30 * time.Second, BodyTimeout: 30 * time.Second,
		WriteTimeout: 30 * time.Second, HeaderTimeout: 10 * time.Second,
		IdleTimeout: 2 * time.Minute, HeaderBytes: 1 << 20,
	}
}

func (l *Limits) defaults() error {
	or := DefaultLimits()
	for _, n := range []struct{ value, or *float64 }{
		{&l.MemberRate, &or.MemberRate}, {&l.ServiceRate, &or.ServiceRate},
	} {
		orElse(n.value, *n.or)
	}
	for _, n := range []struct{ value, or *int }{
		{&l.MemberBurst, &or.MemberBurst}, {&l.ServiceBurst, &or.ServiceBurst},
		{&l.Streams, &or.Streams}, {&l.Tokens, &or.Tokens}, {&l.HeaderBytes, &or.HeaderBytes},
	} {
		orElse(n.value, *n.or)
	}
	for _, d := range []struct{ value, or *time.Duration }{
		{&l.RequestTimeout, &or.RequestTimeout}, {&l.BodyTimeout, &or.BodyTimeout},
		{&l.WriteTimeout, &or.WriteTimeout}, {&l.HeaderTimeout, &or.HeaderTimeout},
		{&l.IdleTimeout, &or.IdleTimeout},
	} {
		orElse(d.value, *d.or)
	}
	if l.MemberRate < 0 || l.ServiceRate < 0 || l.MemberBurst < 0 || l.ServiceBurst < 0 ||
		l.Streams < 0 || l.Tokens < 0 || l.RequestTimeout < 0 || l.BodyTimeout < 0 ||
		l.WriteTimeout < 0 || l.HeaderTimeout < 0 || l.IdleTimeout < 0 || l.HeaderBytes < 0 {
		return fmt.Errorf("httpapi: limits must be positive: %+v", *l)
	}
	return nil
}

func orElse[N int | float64 | time.Duration](value *N, or N) {
	if *value == 0 {
		*value = or
	}
}
