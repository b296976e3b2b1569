package frontier

import (
	"errors"
	"fmt"
	"maps"
)

// MaxLeases is how many readings may be open at once.
const MaxLeases = 64

// Errors of leases.
var (
	ErrExpired = errors.New("the reading has ended")
	ErrLeases  = fmt.Errorf("more than %d readings are open", MaxLeases)
)

// LeaseID names a reading. It is never given out twice.
type LeaseID uint64

// Leases are the readings that are open: one for each surface that somebody reads. What a reading has
// begun is saved only if its lease still holds inside the transaction that saves it. The zero value
// has none. It is not safe for concurrent use.
type Leases struct {
	last LeaseID
	open map[LeaseID]Lease
}

// Lease is one reading.
type Lease struct {
	Channel string
	Root    string // "" for the channel's own surface
	At      uint64 // the journal's revision when it began
}

// Open begins a reading of a channel, or of one thread of it, at a revision of the journal.
func (l *Leases) Open(channel, root string, at uint64) (LeaseID, error) {
	if len(l.open) >= MaxLeases {
		return 0, ErrLeases
	}
	if l.open == nil {
		l.open = make(map[LeaseID]Lease)
	}
	l.last++
	l.open[l.last] = Lease{Channel: channel, Root: root, At: at}
	return l.last, nil
}

// Dispose ends a reading. Ending it again does nothing.
func (l *Leases) Dispose(id LeaseID) { delete(l.open, id) }

// Revoke ends all readings of a channel. Access that comes back does not bring them back.
func (l *Leases) Revoke(channel string) {
	maps.DeleteFunc(l.open, func(_ LeaseID, lease Lease) bool { return lease.Channel == channel })
}

// Clear ends all readings.
func (l *Leases) Clear() { clear(l.open) }

// Check returns the reading if it still holds: it was not ended, and no local mark was made since on
// its channel, or on its thread. Otherwise it is ErrExpired.
func (l *Leases) Check(id LeaseID, manual map[Key]uint64) (Lease, error) {
	lease, ok := l.open[id]
	if !ok {
		return Lease{}, ErrExpired
	}
	if manual[ChannelKey(lease.Channel)] > lease.At ||
		lease.Root != "" && manual[ThreadKey(lease.Root)] > lease.At {
		return Lease{}, ErrExpired
	}
	return lease, nil
}

// Has tells whether a reading of a channel, or of one thread of it, is open.
func (l *Leases) Has(channel, root string) bool {
	for _, lease := range l.open {
		if lease.Channel == channel && lease.Root == root {
			return true
		}
	}
	return false
}
