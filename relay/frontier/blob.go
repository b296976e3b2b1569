package frontier

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of a blob, in bytes of its JSON.
const (
	MaxBlobIn  = 65_535 // what is read: all that can be encrypted
	MaxBlobOut = 40_960 // what is written

	maxClientID  = 64 // characters
	blobVersion1 = 1
)

// Blob is what one installation tells of its state in one slot.
type Blob struct {
	ClientID string // 1 to 64 characters
	State    State
}

// ParseBlob reads a blob. A wrong entry is left out, and a wrong part of a register takes the whole
// register with it; everything else that is wrong is ErrBlob, and never an empty state.
func ParseBlob(data []byte) (Blob, error) {
	if len(data) > MaxBlobIn {
		return Blob{}, fmt.Errorf("%w: %d bytes", ErrBlob, len(data))
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(data, &doc); err != nil || doc == nil {
		return Blob{}, fmt.Errorf("%w: no object", ErrBlob)
	}
	if v, ok := exact(doc["v"]); !ok || v != blobVersion1 {
		return Blob{}, fmt.Errorf("%w: its version", ErrBlob)
	}
	var b Blob
	if err := json.Unmarshal(doc["client_id"], &b.ClientID); err != nil || !isClientID(b.ClientID) {
		return Blob{}, fmt.Errorf("%w: its client_id", ErrBlob)
	}
	var contexts map[string]json.RawMessage
	if err := json.Unmarshal(doc["contexts"], &contexts); err != nil || contexts == nil {
		return Blob{}, fmt.Errorf("%w: its contexts", ErrBlob)
	}
	if len(contexts) > MaxKeys {
		return Blob{}, fmt.Errorf("%w: %d contexts", ErrBlob, len(contexts))
	}
	b.State = parseContexts(contexts)
	return b, nil
}

func isClientID(text string) bool {
	return text != "" && utf8.RuneCountInString(text) <= maxClientID
}

// parts are what was found of one register.
type parts struct {
	value [3]uint32 // in the order of registerKeys
	found [3]bool
	bad   bool
}

var registerKeys = [3]string{"ov_s:", "ov_c:", "ov_b:"}

// parseContexts reads the entries. Registers are put together first: to leave out one bad part of one
// would turn a mark into a floor.
func parseContexts(contexts map[string]json.RawMessage) State {
	s := State{Frontiers: make(map[Key]Time), Overrides: make(map[Key]Register)}
	registers := make(map[Key]*parts)
	for wire, raw := range contexts {
		value, ok := exact(raw)
		if strings.HasPrefix(wire, overridePrefix) {
			collect(registers, wire, value, ok)
			continue
		}
		// The limit is that of the key on the wire, before it is read.
		k := Key(strings.TrimPrefix(wire, escapePrefix))
		if ok && k != "" && len(wire) <= MaxKey {
			s.raise(k, Time(value))
		}
	}
	for k, p := range registers {
		r := Register{Set: p.value[0], Clear: p.value[1], Baseline: Time(p.value[2])}
		whole := p.found == [3]bool{true, true, true}
		floor := p.found == [3]bool{false, true, false}
		if !p.bad && (whole || floor) && k.checkOverride() == nil && r != (Register{}) {
			s.Overrides[k] = r
		}
	}
	return s
}

// collect puts one part of a register to its others. Prefixes that are none of the three belong to
// nothing that is known.
func collect(registers map[Key]*parts, wire string, value uint32, ok bool) {
	for i, prefix := range registerKeys {
		raw, found := strings.CutPrefix(wire, prefix)
		if !found {
			continue
		}
		p := registers[Key(raw)]
		if p == nil {
			p = &parts{}
			registers[Key(raw)] = p
		}
		p.value[i], p.found[i], p.bad = value, true, p.bad || !ok
	}
}

// exact reads a JSON number whose value is a whole number of 32 bits, in whatever way it is written:
// 1, 1.0 and 10e-1 are one, -0 is zero.
func exact(raw json.RawMessage) (uint32, bool) {
	text := string(raw)
	if text == "" || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return 0, false
	}
	mantissa, exponent := strings.ToLower(text), 0
	if m, e, ok := strings.Cut(mantissa, "e"); ok {
		n, err := strconv.Atoi(e)
		if err != nil {
			n = -len(text) // too long to be read; whatever it is, only zero is whole and small
			if !strings.HasPrefix(e, "-") {
				n = len(text) + 10
			}
		}
		mantissa, exponent = m, n
	}
	negative := strings.HasPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return 0, true
	}
	exponent -= len(fraction)
	trimmed := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(trimmed)
	if negative || exponent < 0 || exponent > 10 || len(trimmed)+exponent > 10 {
		return 0, false
	}
	n, err := strconv.ParseUint(trimmed+strings.Repeat("0", exponent), 10, 32)
	return uint32(n), err == nil
}

// Encode writes the blob, frontiers before registers, each sorted by key, so that equal states are
// equal texts. It is ErrCapacity when that takes more than limit bytes or too many keys, ErrKey when a
// key cannot be written. Whoever publishes a state with registers makes it Canonical first.
func (b Blob) Encode(limit int) ([]byte, error) {
	if !isClientID(b.ClientID) || !utf8.ValidString(b.ClientID) {
		return nil, fmt.Errorf("%w: its client_id", ErrBlob)
	}
	if n := b.State.Keys(); n > MaxKeys {
		return nil, fmt.Errorf("%w: %d keys, at most %d", ErrCapacity, n, MaxKeys)
	}
	out := fmt.Appendf(nil, `{"v":%d,"client_id":%s,"contexts":{`, blobVersion1, quoted(b.ClientID))
	first := true
	add := func(wire string, value uint32) {
		if !first {
			out = append(out, ',')
		}
		first = false
		out = append(append(append(out, quoted(wire)...), ':'), strconv.FormatUint(uint64(value), 10)...)
	}
	for _, k := range slices.Sorted(maps.Keys(b.State.Frontiers)) {
		if err := k.Check(); err != nil {
			return nil, fmt.Errorf("%w: %q", err, k)
		}
		add(k.wire(), uint32(b.State.Frontiers[k]))
	}
	for _, k := range slices.Sorted(maps.Keys(b.State.Overrides)) {
		if err := k.checkOverride(); err != nil {
			return nil, fmt.Errorf("%w: %q", err, k)
		}
		r := b.State.Overrides[k]
		if r == (Register{}) {
			continue // never marked
		}
		if r.Set == 0 && r.Baseline == 0 {
			add(registerKeys[1]+string(k), r.Clear)
			continue
		}
		add(registerKeys[0]+string(k), r.Set)
		add(registerKeys[1]+string(k), r.Clear)
		add(registerKeys[2]+string(k), uint32(r.Baseline))
	}
	out = append(out, "}}"...)
	if len(out) > limit {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrCapacity, len(out), limit)
	}
	return out, nil
}

// quoted writes a JSON string with no more escapes than JSON needs.
func quoted(text string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		panic(fmt.Sprintf("encode a string: %v", err)) // every string encodes
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Cost returns how many bytes a frontier takes in a blob, with its separators.
func Cost(k Key, t Time) int {
	return len(quoted(k.wire())) + 2 + len(strconv.FormatUint(uint64(t), 10))
}
