package nostrx

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	nostr "github.com/nbd-wtf/go-nostr"
)

// EventID is the hash of an event as 64 lower-case hexadecimal digits.
type EventID string

// Tag is one tag: a name and its values. A tag without a name is possible on the wire.
type Tag []string

// Name returns the first element, "" when there is none.
func (t Tag) Name() string { return t.At(0) }

// At returns an element, "" beyond the last.
func (t Tag) At(i int) string {
	if i < len(t) {
		return t[i]
	}
	return ""
}

// Event is a signed NIP-01 event. Times are whole seconds since 1970.
type Event struct {
	ID        EventID `json:"id"`
	PubKey    PubKey  `json:"pubkey"`
	CreatedAt int64   `json:"created_at"`
	Kind      int     `json:"kind"`
	Tags      []Tag   `json:"tags"`
	Content   string  `json:"content"`
	Sig       string  `json:"sig"`
}

// Limits of an event.
const (
	maxSafe = 1<<53 - 1 // the largest integer that every JSON reader keeps
	maxKind = 65535

	// MaxEventIn is the largest event that is taken from a relay, MaxEventOut the largest that is
	// given to one, in bytes of its compact JSON.
	MaxEventIn  = 98304
	MaxEventOut = 65536
)

// Errors of events. What the relay sent is not part of their messages.
var (
	ErrMalformed = errors.New("not an event")
	ErrForged    = errors.New("the id or signature is not that of the event")
	ErrEventSize = errors.New("the event is too large")
)

// The members of an event on the wire.
var eventMembers = []string{"id", "pubkey", "created_at", "kind", "tags", "content", "sig"}

// ParseEvent reads an event and checks its form; Verify checks that it is genuine. Members beyond
// the seven are ignored, or refused when exact. A member that stands twice is always refused: two
// readers would see two events.
func ParseEvent(data []byte, exact bool) (Event, error) {
	if len(data) > MaxEventIn {
		return Event{}, fmt.Errorf("%w: %d bytes, at most %d", ErrEventSize, len(data), MaxEventIn)
	}
	fields, err := members(data)
	if err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if exact && len(fields) != len(eventMembers) {
		return Event{}, fmt.Errorf("%w: %d members", ErrMalformed, len(fields))
	}
	var e Event
	into := []any{&e.ID, &e.PubKey, &e.CreatedAt, &e.Kind, &e.Tags, &e.Content, &e.Sig}
	for i, name := range eventMembers {
		raw, ok := fields[name]
		// null decodes into everything and changes nothing.
		if !ok || string(raw) == "null" || json.Unmarshal(raw, into[i]) != nil {
			return Event{}, fmt.Errorf("%w: its %s", ErrMalformed, name)
		}
	}
	if bytes.Contains(fields["tags"], []byte("null")) {
		if err := noNulls(fields["tags"]); err != nil {
			return Event{}, err
		}
	}
	return e, e.check()
}

// noNulls refuses null where a tag or one of its elements stands; it decodes as nothing at all.
func noNulls(raw []byte) error {
	var tags []*[]*string
	if err := json.Unmarshal(raw, &tags); err != nil {
		return fmt.Errorf("%w: its tags", ErrMalformed)
	}
	for _, tag := range tags {
		if tag == nil {
			return fmt.Errorf("%w: a tag is null", ErrMalformed)
		}
		for _, element := range *tag {
			if element == nil {
				return fmt.Errorf("%w: an element of a tag is null", ErrMalformed)
			}
		}
	}
	return nil
}

// check holds the form of every field.
func (e Event) check() error {
	switch {
	case !IsHex(string(e.ID), 64), !IsHex(string(e.PubKey), 64), !IsHex(e.Sig, 128):
		return fmt.Errorf("%w: id, author or signature", ErrMalformed)
	case e.CreatedAt < 0 || e.CreatedAt > maxSafe:
		return fmt.Errorf("%w: its time", ErrMalformed)
	case e.Kind < 0 || e.Kind > maxKind:
		return fmt.Errorf("%w: its kind", ErrMalformed)
	}
	return nil
}

// Verify checks form, id and signature. The error is ErrMalformed or ErrForged.
func (e Event) Verify() error {
	if err := e.check(); err != nil {
		return err
	}
	signed := e.library()
	if !signed.CheckID() {
		return fmt.Errorf("%w: id", ErrForged)
	}
	if ok, err := signed.CheckSignature(); err != nil || !ok {
		return fmt.Errorf("%w: signature", ErrForged)
	}
	return nil
}

// Encode returns the compact JSON that a relay is given. It does not escape what JSON need not.
func (e Event) Encode() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if e.Tags == nil {
		e.Tags = []Tag{}
	}
	if err := enc.Encode(e); err != nil {
		panic(fmt.Sprintf("encode an event: %v", err)) // strings and integers encode
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Values returns the first values of all tags of a name, in their order.
func (e Event) Values(name string) []string {
	var values []string
	for _, tag := range e.Tags {
		if len(tag) > 1 && tag[0] == name {
			values = append(values, tag[1])
		}
	}
	return values
}

// Value returns the first value of the first tag of a name, "" when there is none.
func (e Event) Value(name string) string {
	for _, tag := range e.Tags {
		if len(tag) > 0 && tag[0] == name {
			return tag.At(1)
		}
	}
	return ""
}

// Compare orders events as relays deliver them: the newest first, in a second the lower id first.
// Of one coordinate, the first of this order is the one that counts, whichever arrived last.
func Compare(a, b Event) int {
	return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), strings.Compare(string(a.ID), string(b.ID)))
}

// IsHex tells whether a text is n lower-case hexadecimal digits.
func IsHex(text string, n int) bool {
	if len(text) != n || strings.ToLower(text) != text {
		return false
	}
	_, err := hex.DecodeString(text)
	return err == nil
}

// library returns the event as go-nostr knows it. Tags are shared, and neither side changes them.
func (e Event) library() *nostr.Event {
	tags := make(nostr.Tags, len(e.Tags))
	for i, tag := range e.Tags {
		tags[i] = nostr.Tag(tag)
	}
	return &nostr.Event{
		ID: string(e.ID), PubKey: string(e.PubKey), CreatedAt: nostr.Timestamp(e.CreatedAt),
		Kind: e.Kind, Tags: tags, Content: e.Content, Sig: e.Sig,
	}
}
