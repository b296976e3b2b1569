package unread

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
)

// agenda is what the attending goroutine has to do: pending work of workspaces at once, and a
// few things at their time. It has at most one entry for each watched member and each job.
type agenda struct {
	mu    sync.Mutex
	busy  map[*workspace]struct{}
	times timeHeap
	index map[appointment]*timed
	// retries are those of times that come after a pause, in the order of their coming: a pause is
	// over when it took its time, whatever the clock says meanwhile.
	retries []retry
	bell    chan struct{} // of capacity one
	// asleep says that only the bell wakes the attending goroutine; while it is not, it looks
	// by itself soon enough, and a writer is spared the price of waking somebody.
	asleep  atomic.Bool
	stirred atomic.Bool // commits were applied since it last looked
}

// While commits come in, the attending goroutine looks for work at every attendEvery, and for
// attendFor after the last one.
const (
	attendEvery = time.Millisecond
	attendFor   = time.Second
)

// stir keeps the attending goroutine from falling asleep.
func (a *agenda) stir() {
	if !a.stirred.Load() {
		a.stirred.Store(true)
	}
}

type errand uint8

const (
	levelEnds errand = iota // of a watched member: rows change although nothing happens
	retryPage               // a failed page is read again
)

type appointment struct {
	ws     *workspace
	member readstate.MemberID
	kind   errand
}

type timed struct {
	appointment
	at    int64 // milliseconds
	place int
}

// retry is an appointment after a pause.
type retry struct {
	*timed
	by  int64 // the clock's time of it
	due time.Time
}

// gone reports that the appointment was kept, moved or taken off.
func (r retry) gone() bool { return r.place < 0 || r.at != r.by }

type timeHeap []*timed

func (h timeHeap) Len() int           { return len(h) }
func (h timeHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h timeHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}
func (h *timeHeap) Push(x any) {
	t := x.(*timed)
	t.place = len(*h)
	*h = append(*h, t)
}
func (h *timeHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	t.place = -1
	(*h)[last] = nil
	*h = (*h)[:last]
	return t
}

func (a *agenda) init() {
	a.busy = map[*workspace]struct{}{}
	a.index = map[appointment]*timed{}
	a.bell = make(chan struct{}, 1)
}

func (a *agenda) ring() {
	select {
	case a.bell <- struct{}{}:
	default:
	}
}

// work asks for ticks of a workspace until nothing is pending.
func (a *agenda) work(ws *workspace) {
	a.mu.Lock()
	a.busy[ws] = struct{}{}
	a.mu.Unlock()
	if a.asleep.Load() {
		a.ring()
	}
}

// set moves an appointment; zero takes it off.
func (a *agenda) set(ws *workspace, id readstate.MemberID, kind errand, at int64) {
	if at == 0 {
		a.remove(ws, id, kind)
		return
	}
	a.mu.Lock()
	first := a.times.first(a.put(appointment{ws, id, kind}, at))
	a.mu.Unlock()
	if first {
		a.ring()
	}
}

// retry makes an appointment for when a pause that begins now is over. All pauses are equally long.
func (a *agenda) retry(ws *workspace, id readstate.MemberID, now int64, pause time.Duration) {
	a.mu.Lock()
	t := a.put(appointment{ws, id, retryPage}, now+pause.Milliseconds())
	a.retries = append(a.retries, retry{t, t.at, time.Now().Add(pause)})
	first := a.times.first(t)
	a.mu.Unlock()
	if first {
		a.ring()
	}
}

// put makes or moves an appointment. Under the lock.
func (a *agenda) put(key appointment, at int64) *timed {
	t := a.index[key]
	if t != nil {
		t.at = at
		heap.Fix(&a.times, t.place)
		return t
	}
	t = &timed{appointment: key, at: at}
	a.index[key] = t
	heap.Push(&a.times, t)
	return t
}

func (h timeHeap) first(t *timed) bool { return h[0] == t }

func (a *agenda) remove(ws *workspace, id readstate.MemberID, kind errand) {
	key := appointment{ws, id, kind}
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := a.index[key]; t != nil {
		heap.Remove(&a.times, t.place)
		delete(a.index, key)
	}
}

func (a *agenda) removeAll(ws *workspace) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.busy, ws)
	for key, t := range a.index {
		if key.ws == ws {
			heap.Remove(&a.times, t.place)
			delete(a.index, key)
		}
	}
}

// take removes and returns the workspaces with pending work and the appointments due by now,
// and says in how many milliseconds the next one is; zero for none.
func (a *agenda) take(now int64) (busy []*workspace, due []appointment, next int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for ws := range a.busy {
		busy = append(busy, ws)
		delete(a.busy, ws)
	}
	for len(a.times) > 0 && a.times[0].at <= now {
		t := heap.Pop(&a.times).(*timed)
		delete(a.index, t.appointment)
		due = append(due, t.appointment)
	}
	for len(a.retries) > 0 && (a.retries[0].gone() || time.Until(a.retries[0].due) <= 0) {
		if t := a.retries[0]; !t.gone() { // by a clock that went back it is still to come
			heap.Remove(&a.times, t.place)
			delete(a.index, t.appointment)
			due = append(due, t.appointment)
		}
		a.retries[0] = retry{}
		a.retries = a.retries[1:]
	}
	if len(a.times) > 0 {
		next = max(1, a.times[0].at-now)
	}
	if len(a.retries) > 0 {
		next = min(next, max(1, time.Until(a.retries[0].due).Milliseconds()))
	}
	return busy, due, next
}

// attend is the runtime's own loop: one step of pending work for each workspace that has some,
// then what is due, then rest until the bell, the next appointment or, while commits come in, the
// next look.
func (r *Runtime) attend() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	quiet := attendFor // since the last commit, about
	for r.ctx.Err() == nil {
		if r.agenda.stirred.Swap(false) {
			quiet = 0
		}
		awake := quiet < attendFor
		r.agenda.asleep.Store(!awake) // before looking: who comes later rings
		busy, due, next := r.agenda.take(r.now())
		for _, ws := range busy {
			r.step(ws)
		}
		for _, a := range due {
			r.keep(a)
		}
		if len(busy) > 0 || len(due) > 0 {
			continue
		}
		wait := time.Hour
		if next != 0 {
			wait = min(wait, time.Duration(next)*time.Millisecond)
		}
		if awake {
			wait = min(wait, attendEvery)
			quiet += wait
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-r.agenda.bell:
		case <-r.ctx.Done():
		}
	}
}

// step works off a bounded part of what a workspace has pending. Releasing the lock puts the
// workspace on the agenda again if there is more.
func (r *Runtime) step(ws *workspace) {
	r.lock(ws)
	defer r.unlock(ws)
	if !ws.dropped {
		ws.st.tick(r.cfg.MaxFirePerTick)
		if r.crowded() {
			r.evict(ws, none)
		}
		r.metrics.ticks.Add(1)
	}
}

// keep carries out an appointment.
func (r *Runtime) keep(a appointment) {
	r.lock(a.ws)
	defer r.unlock(a.ws)
	switch a.kind {
	case levelEnds:
		if m := a.ws.st.memberNamed(a.member); m != none {
			a.ws.st.due(m)
			if a.ws.st.connected[m] != nil {
				// By a clock that went back meanwhile it is still to come.
				a.ws.st.untils = append(a.ws.st.untils, a.member)
			}
		}
	case retryPage:
		if j := a.ws.jobs[a.member]; j != nil && j.phase == failed {
			r.again(a.ws, j)
		}
	}
}
