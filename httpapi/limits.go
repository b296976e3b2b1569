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
}

func (l *Limits) defaults() error {
	set := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	if l.MemberRate == 0 {
		l.MemberRate = 100
	}
	if l.ServiceRate == 0 {
		l.ServiceRate = 5000
	}
	set(&l.MemberBurst, 500)
	set(&l.ServiceBurst, 10_000)
	set(&l.Streams, 32)
	set(&l.Tokens, 100_000)
	for _, d := range []*time.Duration{&l.RequestTimeout, &l.BodyTimeout, &l.WriteTimeout} {
		if *d == 0 {
			*d = 30 * time.Second
		}
	}
	if l.MemberRate < 0 || l.ServiceRate < 0 || l.MemberBurst < 0 || l.ServiceBurst < 0 ||
		l.Streams < 0 || l.Tokens < 0 || l.RequestTimeout < 0 ||
		l.BodyTimeout < 0 || l.WriteTimeout < 0 {
		return fmt.Errorf("httpapi: limits must be positive: %+v", *l)
	}
	return nil
}
