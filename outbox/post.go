package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/tidemark-im/tidemark/facts"
)

// verdict is what became of one attempt.
type verdict uint8

const (
	accepted verdict = iota + 1
	refused          // try again later, and not for ever
	waiting          // the receiver asked for a pause; it costs nothing
	gone             // nobody is there any more
)

// answer is the end of one attempt.
type answer struct {
	verdict verdict
	after   time.Duration // of waiting
	err     error
}

// post sends one wake and judges the answer. Its errors do not tell the address.
func (b *Outbox) post(ctx context.Context, q *facts.WakeQueue, w *facts.Wake) answer {
	ctx, stop := context.WithTimeout(ctx, b.Limits.WakeTimeout)
	defer stop()
	to := string(q.MemberID)
	if to == "" {
		to = q.WebhookID
	}
	m := message(w, to)
	body := m.encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, q.URL, bytes.NewReader(body))
	if err != nil {
		return answer{verdict: refused, err: errors.New("address cannot be used")}
	}
	id, at := WakeID(&w.WakeRow), b.Now().Unix()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "tidemark")
	req.Header.Set("webhook-id", id)
	req.Header.Set("webhook-timestamp", strconv.FormatInt(at, 10))
	req.Header.Set("webhook-signature", Sign(q.Secret, id, at, body))
	host := hostOf(q.URL)
	req.Close = !b.streams.has(host)
	resp, err := b.client.Do(req)
	if err != nil {
		return answer{verdict: refused, err: reason(err)}
	}
	defer resp.Body.Close()
	b.streams.note(host, resp.ProtoMajor >= 2)
	// The rest of a longer answer is not read.
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxResponseBytes))
	return b.judge(resp)
}

func (b *Outbox) judge(resp *http.Response) answer {
	status := resp.StatusCode
	a := answer{verdict: refused, err: fmt.Errorf("answered %d", status)}
	switch {
	case status >= 200 && status < 300:
		return answer{verdict: accepted}
	case status == http.StatusGone:
		a.verdict = gone
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		if after, ok := b.retryAfter(resp.Header.Get("Retry-After")); ok {
			a.verdict, a.after = waiting, after
		}
	}
	return a
}

// retryAfter reads the header Retry-After: seconds or a date, held within bounds.
func (b *Outbox) retryAfter(text string) (time.Duration, bool) {
	least, most := b.Limits.RetryFirst, b.Limits.RetryAfterMost
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(most, max(least, time.Duration(n)*time.Second)), true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	return min(most, max(least, at.Sub(b.Now()))), true
}

// reason is an error of the transport without the address, which may hold a secret.
func reason(err error) error {
	switch {
	case errors.Is(err, errRefused):
		return errRefused
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("no answer in time")
	case errors.Is(err, context.Canceled):
		return errors.New("broken off")
	}
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return errors.New(err.Error())
}

// streams remembers the hosts that speak HTTP/2, where an answer names its request. Elsewhere a
// connection is used once: a receiver that answers twice would have its second answer taken for
// that to the next wake, which it may never have seen.
type streams struct {
	mu    sync.Mutex
	hosts map[string]struct{}
}

func (s *streams) has(host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.hosts[host]
	return ok
}

func (s *streams) note(host string, speaks bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !speaks:
		delete(s.hosts, host)
	case len(s.hosts) < maxHosts:
		if s.hosts == nil {
			s.hosts = map[string]struct{}{}
		}
		s.hosts[host] = struct{}{}
	}
}
