package redisset

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/redis/rueidis"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/inbox"
	"github.com/tidemark-im/tidemark/readstate"
)

// ErrUnreached means that the server has not been reached since Dial.
var ErrUnreached = errors.New("the server of summaries has not been reached yet")

// Dialed is a Set on a server that may come later than the process. Until then it knows nothing; each
// use begins one attempt more, none beside another, and waits for none of them. Once reached, the
// client finds the server again by itself. It is safe for concurrent use.
type Dialed struct {
	options rueidis.ClientOption
	log     *slog.Logger
	work    sync.WaitGroup

	mu      sync.Mutex
	set     *Set
	client  rueidis.Client
	dialing bool
	closed  bool
}

var _ inbox.Summary = (*Dialed)(nil)

// Dial attempts once to reach a server. A failure is in the log, and no error: the store answers.
func Dial(options rueidis.ClientOption, log *slog.Logger) *Dialed {
	d := &Dialed{options: options, log: log, dialing: true}
	if err := d.attempt(); err != nil {
		log.Warn("the substrate cannot be reached; the store answers until it can", "error", err)
	}
	return d
}

// attempt connects, or reports why not.
func (d *Dialed) attempt() error {
	client, err := rueidis.NewClient(d.options)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dialing = false
	switch {
	case err != nil:
		return err
	case d.closed:
		client.Close()
	default:
		d.client, d.set = client, New(client)
	}
	return nil
}

// reached returns the set of the server, or begins to look for the server.
func (d *Dialed) reached() (*Set, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.set != nil {
		return d.set, nil
	}
	if !d.dialing && !d.closed {
		d.dialing = true
		d.work.Go(func() {
			if err := d.attempt(); err == nil {
				d.log.Info("the substrate is reached")
			}
		})
	}
	return nil, ErrUnreached
}

// Above implements inbox.Summary.
func (d *Dialed) Above(
	ctx context.Context, m readstate.MemberKey, above facts.Position,
) (inbox.Summarized, bool, error) {
	s, err := d.reached()
	if err != nil {
		return inbox.Summarized{}, false, err
	}
	return s.Above(ctx, m, above)
}

// Put implements inbox.Summary.
func (d *Dialed) Put(ctx context.Context, m readstate.MemberKey, sum inbox.Summarized) (bool, error) {
	s, err := d.reached()
	if err != nil {
		return false, err
	}
	return s.Put(ctx, m, sum)
}

// Close ends the connection, and waits for an attempt that is under way. Close the inbox before.
func (d *Dialed) Close() {
	d.mu.Lock()
	d.closed = true
	if d.client != nil {
		d.client.Close()
	}
	d.mu.Unlock()
	d.work.Wait()
}
