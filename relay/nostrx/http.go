package nostrx

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	maxInfo    = 256 << 10 // bytes of a NIP-11 document
	maxReceipt = 16 << 10  // bytes of an answer to a publication, or of an error
)

// ErrUnsupported says that the relay has no such query, or that there is no key to ask with.
var ErrUnsupported = errors.New("not supported by this relay")

// StatusError is an answer other than the one that was hoped for.
type StatusError struct {
	Code int    // of HTTP
	Text string // what the relay said, at most 16 KiB; it is the relay's word, and not escaped
}

func (e *StatusError) Error() string { return fmt.Sprintf("the relay answered %d", e.Code) }

// Web is the HTTP side of a relay: documents, queries that are complete, and publications. It is
// safe for concurrent use and holds no connection of its own.
type Web struct {
	base   *url.URL
	client *http.Client
	key    *Key
	now    func() time.Time
}

// NewWeb returns the HTTP side of the relay at a ws, wss, http or https address. A nil key asks
// without authorisation. No answer is followed elsewhere: what is signed for one address says
// nothing at another. A nil client is a fresh one; a nil clock is the system's.
func NewWeb(address string, key *Key, client *http.Client, now func() time.Time) (*Web, error) {
	base, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("relay address: %w", err)
	}
	switch base.Scheme {
	case "ws":
		base.Scheme = "http"
	case "wss":
		base.Scheme = "https"
	case "http", "https":
	default:
		return nil, fmt.Errorf("relay address: scheme %q, want ws or wss", base.Scheme)
	}
	if base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, errors.New("relay address: a host and a path is all that it has")
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	if client == nil {
		client = &http.Client{}
	}
	if now == nil {
		now = time.Now
	}
	stay := *client
	stay.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Web{base: base, client: &stay, key: key, now: now}, nil
}

// Info asks for the relay's document (NIP-11).
func (w *Web) Info(ctx context.Context) (Info, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base.String()+"/", http.NoBody)
	if err != nil {
		return Info{}, fmt.Errorf("relay information: %w", err)
	}
	req.Header.Set("Accept", "application/nostr+json")
	data, err := w.do(req, maxInfo)
	if err != nil {
		return Info{}, fmt.Errorf("relay information: %w", err)
	}
	return ParseInfo(data)
}

// Snapshot asks for the complete read state of the key. The descriptor comes from the same relay's
// Info; nil is ErrUnsupported, and nothing is sent. An answer that is not complete is ErrSnapshot.
func (w *Web) Snapshot(ctx context.Context, d *SnapshotDescriptor) (Snapshot, error) {
	if d == nil || w.key == nil {
		return Snapshot{}, fmt.Errorf("snapshot: %w", ErrUnsupported)
	}
	data, err := w.post(ctx, "/query", snapshotQuery(w.key.Public()), maxSnapshotAnswer)
	if err != nil {
		return Snapshot{}, fmt.Errorf("snapshot: %w", err)
	}
	return ParseSnapshot(data, *d, w.key.Public())
}

// Query asks for stored events. Those that do not match or are not genuine are left out, and
// counted; what is returned is verified, and of any order. A query proves nothing to be complete.
func (w *Web) Query(ctx context.Context, filters ...Filter) (events []Event, refused int, err error) {
	body, err := json.Marshal(filters)
	if err != nil {
		return nil, 0, fmt.Errorf("query: %w", err)
	}
	data, err := w.post(ctx, "/query", body, maxSnapshotAnswer)
	if err != nil {
		return nil, 0, fmt.Errorf("query: %w", err)
	}
	raws, err := elements(data, MaxStored)
	if err != nil {
		return nil, 0, fmt.Errorf("query: %w", err)
	}
	for _, raw := range raws {
		e, err := ParseEvent(raw, false)
		if err == nil {
			err = e.Verify()
		}
		if err != nil || !admits(filters, e) {
			refused++
			continue
		}
		events = append(events, e)
	}
	return events, refused, nil
}

// Publish gives the relay an event. The receipt says that the relay took it, or why it did not; an
// error says that nobody knows.
func (w *Web) Publish(ctx context.Context, e Event) (Receipt, error) {
	body, err := outgoing(e)
	if err != nil {
		return Receipt{}, fmt.Errorf("publish %s: %w", e.ID, err)
	}
	data, err := w.post(ctx, "/events", body, maxReceipt)
	var status *StatusError
	if errors.As(err, &status) && status.Code >= 400 && status.Code < 500 {
		return Receipt{Reason: reason(status.Text)}, nil
	}
	if err != nil {
		return Receipt{}, fmt.Errorf("publish %s: %w", e.ID, err)
	}
	var answer struct {
		Accepted bool    `json:"accepted"`
		ID       EventID `json:"event_id"`
		Message  string  `json:"message"`
	}
	if err := json.Unmarshal(data, &answer); err != nil || answer.ID != e.ID {
		return Receipt{}, fmt.Errorf("publish %s: %w", e.ID, ErrMalformed)
	}
	return Receipt{Accepted: answer.Accepted, Reason: answer.Message}, nil
}

// reason takes the sentence out of an error's body, which is JSON or plain text.
func reason(text string) string {
	var doc struct {
		Error   string `json:"error"`
		Message string `json:"message"`
	}
	if json.Unmarshal([]byte(text), &doc) != nil {
		return text
	}
	if doc.Message != "" {
		return doc.Message
	}
	return doc.Error
}

// outgoing encodes an event that is fit to be sent: what was signed may have been damaged since.
func outgoing(e Event) ([]byte, error) {
	if err := e.Verify(); err != nil {
		return nil, err
	}
	data := e.Encode()
	if len(data) > MaxEventOut {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrEventSize, len(data), MaxEventOut)
	}
	return data, nil
}

func (w *Web) post(ctx context.Context, path string, body []byte, limit int) ([]byte, error) {
	address := w.base.String() + path
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if w.key != nil {
		header, err := w.key.Authorize(http.MethodPost, address, body, w.now())
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", header)
	}
	return w.do(req, limit)
}

// do returns the body of a 200, and stops reading beyond the limit.
func (w *Web) do(req *http.Request, limit int) ([]byte, error) {
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(resp.Body, maxReceipt))
		if err != nil {
			return nil, err
		}
		return nil, &StatusError{Code: resp.StatusCode, Text: string(text)}
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(data) > limit {
		return nil, fmt.Errorf("an answer of more than %d bytes", limit)
	}
	return data, nil
}
