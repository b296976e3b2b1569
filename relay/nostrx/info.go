package nostrx

import (
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
)

// Info is what a relay says of itself (NIP-11), as far as the agent uses it.
type Info struct {
	Name string
	// Self is the key that the relay signs with, "" when it names none: then nothing is taken for
	// the relay's own word.
	Self PubKey
	// Snapshot describes the complete query of read state, nil where the relay has none.
	Snapshot *SnapshotDescriptor
}

// SnapshotDescriptor says for which community a relay cuts snapshots, and how large they get.
type SnapshotDescriptor struct {
	Community uuid.UUID
	MaxEvents int
	MaxBytes  int // of the encoded array of events
}

// SnapshotVersion is the version of the query that this package speaks.
const SnapshotVersion = 1

// ParseInfo reads a NIP-11 document. Members that it does not know do not matter; a descriptor of
// another version, or of another form, is as good as none.
func ParseInfo(data []byte) (Info, error) {
	var doc struct {
		Name     string          `json:"name"`
		Self     string          `json:"self"`
		Snapshot json.RawMessage `json:"read_state_snapshot"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return Info{}, fmt.Errorf("relay information: %w", err)
	}
	info := Info{Name: doc.Name, Snapshot: parseDescriptor(doc.Snapshot)}
	if IsHex(doc.Self, 64) {
		info.Self = PubKey(doc.Self)
	}
	return info, nil
}

func parseDescriptor(raw json.RawMessage) *SnapshotDescriptor {
	var d struct {
		Version   int    `json:"version"`
		Community string `json:"community_id"`
		MaxEvents *int   `json:"max_events"`
		MaxBytes  *int   `json:"max_event_array_bytes"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &d) != nil || d.Version != SnapshotVersion {
		return nil
	}
	community, err := uuid.Parse(d.Community)
	if err != nil || community.String() != d.Community { // lower case, with hyphens
		return nil
	}
	out := &SnapshotDescriptor{Community: community, MaxEvents: MaxSnapshotEvents, MaxBytes: MaxSnapshotBytes}
	// A relay may promise less than is taken; more is never taken.
	for _, limit := range []struct {
		says *int
		to   *int
	}{{d.MaxEvents, &out.MaxEvents}, {d.MaxBytes, &out.MaxBytes}} {
		if limit.says == nil {
			continue
		}
		if *limit.says < 1 {
			return nil
		}
		*limit.to = min(*limit.to, *limit.says)
	}
	return out
}
