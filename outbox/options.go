package outbox

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/tidemark-im/tidemark/facts"
)

// Options wire an outbox. Store and Terms are required.
type Options struct {
	Store facts.OutboxStore
	// Terms says which workspaces this process owns. Where it owns none, nothing is done.
	Terms facts.TermOf
	// Accounting says when a row's humans are counted. Without one every row is deferred.
	Accounting Accounting
	// Projection is told of rows first, where there is one.
	Projection Projection
	// RequireBarrier says that counts are not facts: then each row waits for the Barrier, and
	// without one every row is deferred.
	RequireBarrier bool
	Barrier        Barrier
	// Badges drives the webhooks. Without one they fire nothing.
	Badges Badges
	// Network says where wakes may be sent.
	Network Network
	Limits  Limits
	// Owner names this process in leases, for people. Default the process's number.
	Owner string
	// Now is the clock. Nil is time.Now. It decides when something is due and orders nothing.
	Now func() time.Time
	// Rand spreads retries: a number in [0, 1). Nil is a good source.
	Rand func() float64
	// Log takes the outbox's log; nil discards it. It has no address, secret or body in it.
	Log *slog.Logger
	// OnStep, where set, is called around every stage of a row, from several goroutines. An error
	// makes the stage fail: a row before it is delivered is deferred, and a settlement that fails
	// is as one whose answer was lost. It is for tests and probes.
	OnStep func(ctx context.Context, s Step) error
}

// Network says where wakes may be sent. The zero value allows https to public addresses.
type Network struct {
	// AllowHTTP allows addresses without TLS.
	AllowHTTP bool
	// Allow are networks that may be reached although they are private, local or otherwise not
	// public. Each opens what is in it to whoever may set an endpoint.
	Allow []netip.Prefix
	// Roots are the authorities to trust. Nil is the system's.
	Roots *x509.CertPool
}

// AllowPrivate are the networks that have to be allowed where agents run on the same machine or
// in the same private network.
func AllowPrivate() []netip.Prefix {
	var out []netip.Prefix
	for _, text := range []string{
		"127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7",
	} {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

func (o Options) withDefaults() (Options, error) {
	if o.Store == nil || o.Terms == nil {
		return o, errors.New("outbox: Store and Terms are required")
	}
	var err error
	if o.Limits, err = o.Limits.withDefaults(); err != nil {
		return o, err
	}
	for _, p := range o.Network.Allow {
		if !p.IsValid() {
			return o, fmt.Errorf("outbox: network %v is not valid", p)
		}
	}
	if o.Owner == "" {
		o.Owner = strconv.Itoa(os.Getpid())
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, nil
}
