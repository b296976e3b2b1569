package sqlstore

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Parameters are int64, []byte, string or nil, which every driver takes as they are.

func id[T ~string](v T) any { return []byte(v) }

// optional stores an id that may be missing: NULL keeps it out of partial indexes.
func optional[T ~string](v T) any {
	if v == "" {
		return nil
	}
	return []byte(v)
}

// text stores an empty text as NULL.
func text(v string) any {
	if v == "" {
		return nil
	}
	return v
}

func number[T ~uint64 | ~uint32 | ~uint8 | ~int64](v T) any { return int64(v) }

// positive stores zero as NULL.
func positive[T ~uint64 | ~uint8 | ~int64](v T) any {
	if v == 0 {
		return nil
	}
	return int64(v)
}

// bounded keeps a negative limit from meaning none.
func bounded(limit int) any { return int64(max(limit, 0)) }

var zero, one any = int64(0), int64(1)

func flag(v bool) any {
	if v {
		return one
	}
	return zero
}

func blob(v []byte) any {
	if len(v) == 0 {
		return nil
	}
	return v
}

// workspaceOf returns the upper half of a member or scope key.
func workspaceOf[K ~uint64](k K) facts.WorkspaceKey { return facts.WorkspaceKey(k >> 32) }

// packMembers stores the local numbers of members of the scope's workspace as varints. Members
// of another workspace are impossible there; zero marks one, and unpackMembers refuses it.
func packMembers(scope readstate.ScopeKey, members []readstate.MemberKey) any {
	if len(members) == 0 {
		return nil
	}
	out := make([]byte, 0, 3*len(members))
	for _, m := range members {
		local := uint64(uint32(m))
		if workspaceOf(m) != workspaceOf(scope) {
			local = 0
		}
		out = binary.AppendUvarint(out, local)
	}
	return out
}

func unpackMembers(scope readstate.ScopeKey, packed []byte) ([]readstate.MemberKey, error) {
	if len(packed) == 0 {
		return nil, nil
	}
	members := make([]readstate.MemberKey, 0, len(packed))
	for len(packed) > 0 {
		local, n := binary.Uvarint(packed)
		if n <= 0 || local == 0 || local>>32 != 0 {
			return nil, fmt.Errorf("scope %d: member list is damaged", scope)
		}
		members = append(members, facts.MemberKeyOf(workspaceOf(scope), uint32(local)))
		packed = packed[n:]
	}
	return members, nil
}

func packBits(b *readstate.Bitmap) []byte {
	out := make([]byte, 0, 8*len(b))
	for _, w := range b {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return out
}

func unpackBits(packed []byte) (b readstate.Bitmap, err error) {
	if len(packed) != 8*len(b) {
		return b, fmt.Errorf("block of %d bytes", len(packed))
	}
	for i := range b {
		b[i] = binary.LittleEndian.Uint64(packed[8*i:])
	}
	return b, nil
}

func packTags(tags []string) any {
	if len(tags) == 0 {
		return nil
	}
	out, err := json.Marshal(tags)
	if err != nil {
		panic(err) // a list of strings always has a JSON form
	}
	return string(out)
}

func unpackTags(packed string) (tags []string, err error) {
	if packed == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(packed), &tags); err != nil {
		return nil, fmt.Errorf("tags: %w", err)
	}
	return tags, nil
}

func digest(b []byte) (d facts.Digest, err error) {
	if len(b) != len(d) {
		return d, fmt.Errorf("digest of %d bytes", len(b))
	}
	copy(d[:], b)
	return d, nil
}
