package relaytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// Fault is something that goes wrong with a relay.
type Fault string

// The faults.
const (
	None         Fault = ""
	Refuse       Fault = "refuse"        // publications are refused
	RefuseTime   Fault = "refuse-time"   // they are refused for their time
	LoseEvents   Fault = "lose-events"   // they are acknowledged and forgotten
	LoseReceipts Fault = "lose-receipts" // they are kept and never acknowledged
	Forge        Fault = "forge"         // events go out with another signature
	Repeat       Fault = "repeat"        // they go out twice
	Reverse      Fault = "reverse"       // stored events go out oldest first
	EarlyEnd     Fault = "early-end"     // stored events are said to have ended before the first
	Unasked      Fault = "unasked"       // events go out that nobody asked for
	Stall        Fault = "stall"         // requests get no answer
	Cut          Fault = "cut"           // a request ends the connection
	Fail         Fault = "fail"          // HTTP requests are answered by 503
	Endless      Fault = "endless"       // the answer to a snapshot query does not end
	Partial      Fault = "partial"       // a snapshot lacks its last event
)

// Faults lists them all.
var Faults = []Fault{
	Refuse, RefuseTime, LoseEvents, LoseReceipts, Forge, Repeat, Reverse, EarlyEnd, Unasked, Stall, Cut,
	Fail, Endless, Partial,
}

// errTimestamp is the refusal that clients may act on, word for word.
var errTimestamp = errors.New("invalid: event timestamp too far from server time")

// Point is where an occasion stands in the course of a request.
type Point string

// The points.
const (
	AtConnect  Point = "connect"  // a connection is asked for
	AtEvent    Point = "event"    // a publication has come
	AtReceipt  Point = "receipt"  // it has been kept or refused, and is about to be acknowledged
	AtRequest  Point = "request"  // a REQ, or a POST of filters
	AtSnapshot Point = "snapshot" // a snapshot query
)

// Occasion is one moment at which something can go wrong.
type Occasion struct {
	Point   Point
	By      nostrx.PubKey // "" when it is not known
	Event   nostrx.Event  // at AtEvent and AtReceipt
	Filters []nostrx.Filter
}

type faults struct {
	mu        sync.Mutex
	set       map[Fault]bool
	intercept func(Occasion) Fault
}

// Switch turns a fault on or off.
func (r *Relay) Switch(f Fault, on bool) {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	if r.faults.set == nil {
		r.faults.set = make(map[Fault]bool)
	}
	r.faults.set[f] = on
}

// Intercept has a function decide at every occasion; nil ends that. It may block, which holds the
// occasion, and is called by many goroutines.
func (r *Relay) Intercept(f func(Occasion) Fault) {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	r.faults.intercept = f
}

func (f *faults) on(fault Fault) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.set[fault]
}

// at returns what goes wrong at an occasion: what the interceptor says, or the first of those given
// that is switched on.
func (f *faults) at(o Occasion, among ...Fault) Fault {
	f.mu.Lock()
	intercept := f.intercept
	f.mu.Unlock()
	if intercept != nil {
		if fault := intercept(o); fault != None {
			return fault
		}
	}
	for _, fault := range among {
		if f.on(fault) {
			return fault
		}
	}
	return None
}

// serveFaults switches faults by name: {"lose-receipts": true}.
func (r *Relay) serveFaults(w http.ResponseWriter, req *http.Request) {
	var wish map[Fault]bool
	if err := json.NewDecoder(http.MaxBytesReader(w, req.Body, 4096)).Decode(&wish); err != nil {
		writeError(w, http.StatusBadRequest, "an object of names and booleans is wanted")
		return
	}
	for name := range wish {
		if !slices.Contains(Faults, name) {
			writeError(w, http.StatusBadRequest, fmt.Sprintf("%q is no fault", name))
			return
		}
	}
	for name, on := range wish {
		r.Switch(name, on)
	}
	w.WriteHeader(http.StatusNoContent)
}
