package nostrx

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// Limits of a snapshot of read state.
const (
	MaxSnapshotEvents = 4096
	MaxSnapshotBytes  = 8 << 20 // of the encoded array of events

	// maxSnapshotAnswer is where the stream of an answer is cut, before any of it is parsed.
	maxSnapshotAnswer = MaxSnapshotBytes + 4096
)

// ErrSnapshot says that an answer is not the complete snapshot that was asked for. Nothing of it is
// used then: it is never taken for an empty state.
var ErrSnapshot = errors.New("not a complete snapshot of read state")

// Snapshot is one consistent cut of all application data of one author in one community. It says
// nothing of what came after the cut, of messages, or of an order among snapshots.
type Snapshot struct {
	ID     string // over community, author and the ids of the events, in hexadecimal
	Events []Event
}

// SnapshotID computes the id that a snapshot must carry.
func SnapshotID(community uuid.UUID, author PubKey, ids []EventID) (string, error) {
	h := sha256.New()
	h.Write([]byte("buzz-read-state-snapshot-v1\x00"))
	h.Write(community[:])
	for i := -1; i < len(ids); i++ {
		text := string(author)
		if i >= 0 {
			text = string(ids[i])
		}
		raw, err := hex.DecodeString(text)
		if err != nil || len(raw) != sha256.Size {
			return "", fmt.Errorf("%w: an id or key in it", ErrMalformed)
		}
		h.Write(raw)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// snapshotQuery is the body of the request: one filter with exactly these members.
func snapshotQuery(author PubKey) []byte {
	return fmt.Appendf(nil, `[{"kinds":[%d],"authors":[%q],"read_state_snapshot":%d}]`,
		KindAppData, string(author), SnapshotVersion)
}

// ParseSnapshot checks an answer to the snapshot query against what was asked. Any doubt is
// ErrSnapshot.
func ParseSnapshot(data []byte, want SnapshotDescriptor, author PubKey) (Snapshot, error) {
	refuse := func(format string, args ...any) (Snapshot, error) {
		return Snapshot{}, fmt.Errorf("%w: %w", ErrSnapshot, fmt.Errorf(format, args...))
	}
	if len(data) > maxSnapshotAnswer {
		return refuse("%d bytes", len(data))
	}
	fields, err := members(data)
	if err != nil {
		return refuse("%w", err)
	}
	for _, must := range []struct{ name, value string }{
		{"read_state_snapshot", fmt.Sprint(SnapshotVersion)},
		{"complete", "true"},
		{"community_id", fmt.Sprintf("%q", want.Community.String())},
		{"pubkey", fmt.Sprintf("%q", string(author))},
	} {
		if string(fields[must.name]) != must.value {
			return refuse("its %s", must.name)
		}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, fields["events"]); err != nil || compact.Len() > want.MaxBytes {
		return refuse("the size of its events")
	}
	raws, err := elements(compact.Bytes(), want.MaxEvents)
	if err != nil {
		return refuse("its events: %w", err)
	}
	s := Snapshot{Events: make([]Event, len(raws))}
	ids := make([]EventID, len(raws))
	coordinates := make(map[string]bool)
	for i, raw := range raws {
		e, err := parseSnapshotEvent(raw, author)
		if err != nil {
			return refuse("event %d: %w", i, err)
		}
		if coordinates[e.Value("d")] {
			return refuse("event %d stands at the coordinate of another", i)
		}
		coordinates[e.Value("d")] = true
		s.Events[i], ids[i] = e, e.ID
	}
	computed, err := SnapshotID(want.Community, author, ids)
	if err != nil || json.Unmarshal(fields["snapshot_id"], &s.ID) != nil || s.ID != computed {
		return refuse("its snapshot_id")
	}
	return s, nil
}

func parseSnapshotEvent(raw []byte, author PubKey) (Event, error) {
	e, err := ParseEvent(raw, true)
	switch {
	case err != nil:
		return Event{}, err
	case e.PubKey != author:
		return Event{}, errors.New("another author")
	case e.Kind != KindAppData:
		return Event{}, errors.New("another kind")
	}
	return e, e.Verify()
}
