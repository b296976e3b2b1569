package nostrx

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// authLeeway is how far the time of an authorisation may be from the clock of who checks it.
const authLeeway = 60 * time.Second

// ErrUnauthorized says that a request carries no authorisation for exactly what it asks.
var ErrUnauthorized = errors.New("no authorisation of this request")

// Authorize returns the Authorization header of one request (NIP-98): bound to the address, the
// method and the body, and good for once.
func (k *Key) Authorize(method, address string, body []byte, now time.Time) (string, error) {
	sum := sha256.Sum256(body)
	signed, err := k.Sign(Event{Kind: KindHTTPAuth, CreatedAt: now.Unix(), Tags: []Tag{
		{"u", address}, {"method", method}, {"payload", hex.EncodeToString(sum[:])},
		// Two requests in one second would else be one event, and the second a replay.
		{"nonce", rand.Text()},
	}})
	if err != nil {
		return "", fmt.Errorf("authorize %s: %w", method, err)
	}
	return "Nostr " + base64.StdEncoding.EncodeToString(signed.Encode()), nil
}

// CheckAuthorization verifies an Authorization header for a request and returns its event. Who
// calls it remembers the ids of events for twice a minute and refuses one that comes again.
func CheckAuthorization(header, method, address string, body []byte, now time.Time) (Event, error) {
	encoded, ok := strings.CutPrefix(header, "Nostr ")
	if !ok {
		return Event{}, ErrUnauthorized
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return Event{}, fmt.Errorf("%w: its encoding", ErrUnauthorized)
	}
	e, err := ParseEvent(raw, false)
	if err == nil {
		err = e.Verify()
	}
	if err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrUnauthorized, err)
	}
	sum := sha256.Sum256(body)
	at := time.Unix(e.CreatedAt, 0)
	switch {
	case e.Kind != KindHTTPAuth || e.Content != "":
		err = errors.New("its kind")
	case at.Before(now.Add(-authLeeway)) || at.After(now.Add(authLeeway)):
		err = errors.New("its time")
	case !only(e, "u", address):
		err = errors.New("another address")
	case !only(e, "method", method):
		err = errors.New("another method")
	case !only(e, "payload", hex.EncodeToString(sum[:])):
		err = errors.New("another body")
	}
	if err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrUnauthorized, err)
	}
	return e, nil
}

// only tells whether an event has exactly one tag of a name, with that value.
func only(e Event, name, value string) bool {
	values := e.Values(name)
	return len(values) == 1 && values[0] == value
}
