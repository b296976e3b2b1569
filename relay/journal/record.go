package journal

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/tidemark-im/tidemark/relay/frontier"
	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// Time is a second of read state.
type Time = frontier.Time

// Key is the key of a context.
type Key = frontier.Key

// recordVersion is the version of a record that this code reads and writes.
const recordVersion = 1

// Bounds of a record.
const (
	maxManual  = 10_000
	maxOwn     = frontier.MaxKeys
	maxSlots   = 64
	maxSlotTxt = 32 // hexadecimal digits of a slot
)

// ErrCorrupt says that what is stored is not a record. It is never replaced by an empty one.
var ErrCorrupt = errors.New("the journal is damaged")

// Record is everything that one installation keeps of the read state of one viewer in one community.
// A Record that a function hands out is the caller's own.
type Record struct {
	Slot     string // of the primary coordinate: 32 hexadecimal digits, random, of this partition alone
	ClientID string // of this installation in this partition

	State   frontier.State // what is synchronised: own and others'
	Manual  map[Key]uint64 // local marks, with the revision of each; they never leave the device
	Recent  map[Key]uint64 // revision at which a frontier of State was last touched here
	Reserve map[Key]Time   // receipts that did not fit into State; they never leave the device
	// Homes holds the channel of every message that a receipt names, where signed events have shown it.
	Homes map[string]string

	Own     map[Key]Time            // frontiers that this installation raised, those of messages excepted
	Spill   []string                // further slots, in the order in which they were made
	Carried map[string]map[Key]Time // what the relay was last seen to hold in each slot

	Revision, Accepted uint64 // of intents that are saved, and of those that the relay has shown
	LastCreatedAt      int64  // of the last event that was signed here
	Pending            *Pending
}

// Pending is an event that was signed and saved, and whose end is not known.
type Pending struct {
	Event    nostrx.Event
	Revision uint64
}

// newRecord makes the record of a fresh installation.
func newRecord() Record {
	r := Record{Slot: newSlot(), ClientID: uuid.NewString()}
	r.fill()
	return r
}

func newSlot() string {
	var raw [maxSlotTxt / 2]byte
	if _, err := rand.Read(raw[:]); err != nil {
		panic(fmt.Sprintf("no randomness: %v", err)) // crypto/rand ends the program itself
	}
	return hex.EncodeToString(raw[:])
}

// fill makes the maps that are missing.
func (r *Record) fill() {
	for _, m := range []*map[Key]uint64{&r.Manual, &r.Recent} {
		if *m == nil {
			*m = make(map[Key]uint64)
		}
	}
	for _, m := range []*map[Key]Time{&r.State.Frontiers, &r.Reserve, &r.Own} {
		if *m == nil {
			*m = make(map[Key]Time)
		}
	}
	if r.State.Overrides == nil {
		r.State.Overrides = make(map[Key]frontier.Register)
	}
	if r.Homes == nil {
		r.Homes = make(map[string]string)
	}
	if r.Carried == nil {
		r.Carried = make(map[string]map[Key]Time)
	}
}

// Known returns journal and reserve together: what decisions on this device are made by.
func (r Record) Known() frontier.State {
	known := r.State.Clone()
	for k, t := range r.Reserve {
		if old, ok := known.Frontiers[k]; !ok || old < t {
			known.Frontiers[k] = t
		}
	}
	return known
}

// View returns what decides about messages at a moment.
func (r Record) View(now Time) frontier.View {
	return frontier.View{State: r.Known(), Manual: maps.Clone(r.Manual), Now: now}
}

// Slots returns the slots of the installation, the primary one first.
func (r Record) Slots() []string { return append([]string{r.Slot}, r.Spill...) }

// Waiting tells whether something saved has not been shown by the relay yet.
func (r Record) Waiting() bool { return r.Pending != nil || r.Revision > r.Accepted }

// The record as it is stored. The names are those of the format, which other programs read.
type (
	storedRecord struct {
		Version       int                     `json:"version"`
		Slot          string                  `json:"slot"`
		ClientID      string                  `json:"clientId"`
		State         storedState             `json:"state"`
		Manual        map[Key]uint64          `json:"localUnread"`
		Recent        map[Key]uint64          `json:"recent"`
		Reserve       map[Key]Time            `json:"reserve,omitempty"`
		Homes         map[string]string       `json:"homes,omitempty"`
		Own           map[Key]Time            `json:"own"`
		Spill         []string                `json:"spill,omitempty"`
		Carried       map[string]map[Key]Time `json:"carried,omitempty"`
		Revision      uint64                  `json:"revision"`
		Accepted      uint64                  `json:"acceptedRevision"`
		LastCreatedAt int64                   `json:"lastCreatedAt"`
		Pending       *storedPending          `json:"pending,omitempty"`
	}
	storedState struct {
		Frontiers map[Key]Time           `json:"frontiers"`
		Overrides map[Key]storedRegister `json:"overrides"`
	}
	storedRegister struct {
		Set      uint32 `json:"set"`
		Clear    uint32 `json:"clear"`
		Baseline Time   `json:"baseline"`
	}
	storedPending struct {
		Event    json.RawMessage `json:"event"`
		Revision uint64          `json:"revision"`
	}
)

// encode writes a record.
func (r Record) encode() ([]byte, error) {
	s := storedRecord{
		Version: recordVersion, Slot: r.Slot, ClientID: r.ClientID, Manual: r.Manual, Recent: r.Recent,
		Reserve: r.Reserve, Homes: r.Homes, Own: r.Own, Spill: r.Spill, Carried: r.Carried,
		Revision: r.Revision, Accepted: r.Accepted, LastCreatedAt: r.LastCreatedAt,
		State: storedState{Frontiers: r.State.Frontiers, Overrides: make(map[Key]storedRegister)},
	}
	for k, o := range r.State.Overrides {
		s.State.Overrides[k] = storedRegister(o)
	}
	if r.Pending != nil {
		s.Pending = &storedPending{Event: r.Pending.Event.Encode(), Revision: r.Pending.Revision}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // an event's bytes stay what was signed
	if err := enc.Encode(s); err != nil {
		return nil, fmt.Errorf("encode the journal: %w", err)
	}
	return b.Bytes(), nil
}

// decode reads a record and checks all of it. Fields of other versions are left out; those that older
// versions did not have are empty.
func decode(data []byte, viewer nostrx.PubKey) (Record, error) {
	var s storedRecord
	if err := json.Unmarshal(data, &s); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if s.Version != recordVersion {
		return Record{}, fmt.Errorf("%w: its version is %d", ErrCorrupt, s.Version)
	}
	r := Record{
		Slot: s.Slot, ClientID: s.ClientID, Manual: s.Manual, Recent: s.Recent, Reserve: s.Reserve,
		Homes: s.Homes, Own: s.Own, Spill: s.Spill, Carried: s.Carried, Revision: s.Revision,
		Accepted: s.Accepted, LastCreatedAt: s.LastCreatedAt,
	}
	r.State.Frontiers = s.State.Frontiers
	r.fill()
	for k, o := range s.State.Overrides {
		r.State.Overrides[k] = frontier.Register(o)
	}
	if s.Pending != nil {
		e, err := nostrx.ParseEvent(s.Pending.Event, true)
		if err != nil {
			return Record{}, fmt.Errorf("%w: its pending event: %w", ErrCorrupt, err)
		}
		r.Pending = &Pending{Event: e, Revision: s.Pending.Revision}
	}
	if err := r.check(viewer); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return r, nil
}

// check holds everything that a record promises.
func (r Record) check(viewer nostrx.PubKey) error {
	if err := r.checkSlots(); err != nil {
		return err
	}
	if r.Accepted > r.Revision {
		return errors.New("more is accepted than was saved")
	}
	if n := r.State.Keys(); n > frontier.MaxKeys {
		return fmt.Errorf("%d keys", n)
	}
	for k := range r.State.Frontiers {
		if k.Check() != nil {
			return errors.New("a frontier's key")
		}
	}
	if len(r.Manual) > maxManual || len(r.Own) > maxOwn {
		return errors.New("too many marks")
	}
	for _, m := range []map[Key]uint64{r.Manual, r.Recent} {
		for _, at := range m {
			if at < 1 || at > r.Revision {
				return errors.New("a revision that was never reached")
			}
		}
	}
	for k := range r.Recent {
		if _, ok := r.State.Frontiers[k]; !ok {
			return errors.New("an order without its frontier")
		}
	}
	for k := range r.Own {
		if k.Check() != nil || k.IsMessage() {
			return errors.New("an own frontier's key")
		}
	}
	if err := r.checkReserve(); err != nil {
		return err
	}
	return r.checkPending(viewer)
}

func (r Record) checkSlots() error {
	if r.ClientID == "" || len(r.ClientID) > 64 {
		return errors.New("its client id")
	}
	if len(r.Spill) >= maxSlots {
		return errors.New("too many slots")
	}
	seen := make(map[string]bool)
	for _, slot := range r.Slots() {
		if !nostrx.IsHex(slot, maxSlotTxt) || seen[slot] {
			return errors.New("a slot")
		}
		seen[slot] = true
	}
	return nil
}

func (r Record) checkReserve() error {
	if len(r.Reserve) > MaxReserveKeys || reserveSize(r.Reserve) > MaxReserveBytes {
		return errors.New("its reserve is too large")
	}
	for k := range r.Reserve {
		if _, both := r.State.Frontiers[k]; both || k.Check() != nil {
			return errors.New("a key of its reserve")
		}
	}
	for id, channel := range r.Homes {
		if !nostrx.IsHex(id, 64) || channel == "" {
			return errors.New("a home")
		}
	}
	return nil
}

func (r Record) checkPending(viewer nostrx.PubKey) error {
	p := r.Pending
	if p == nil {
		return nil
	}
	slot, ok := slotOf(p.Event)
	switch {
	case p.Event.PubKey != viewer, p.Event.Verify() != nil:
		return errors.New("its pending event is not the viewer's")
	case !ok || !slices.Contains(r.Slots(), slot):
		return errors.New("its pending event is of another slot")
	case p.Event.CreatedAt > r.LastCreatedAt, p.Revision > r.Revision:
		return errors.New("its pending event comes from nowhere")
	}
	return nil
}
