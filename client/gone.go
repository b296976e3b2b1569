package client

// departures are sessions that were merged away. One is remembered as long as something may come
// that set out before it was known to be gone, and would bring it back: an answer to a request, or
// an event of a stream. Whatever is asked for later is answered by a server that knows.
//
// A stream may stay open for days. It is not waited for once it has told of the departure itself,
// since its events come in order; so what is remembered is as much as was merged while the slowest
// request was under way. The zero value remembers nothing. Methods need the client's mu.
type departures struct {
	moment uint64
	asks   map[uint64]bool // when those began that have not ended; true for a stream
	gone   map[string]departure
}

type departure struct {
	at        uint64 // the moment at which something of it was noted
	known     bool   // it is gone; false while that is only supposed
	streamed  bool   // the stream has told of it
	resolving bool   // the server is to be asked what became of it
	told      bool   // the caller was told that
}

// ask notes that something is asked for that may tell of sessions, and returns what end needs to
// know of it once the answer was taken in.
func (d *departures) ask(stream bool) (at uint64) {
	if d.asks == nil {
		d.asks = make(map[uint64]bool)
	}
	d.moment++
	d.asks[d.moment] = stream
	return d.moment
}

// end forgets a request, and what only its answer could have brought back.
func (d *departures) end(at uint64) {
	delete(d.asks, at)
	d.sweep()
}

// note remembers a departure, if anything is under way that began before, and what is new of it.
func (d *departures) note(id string, news func(*departure)) {
	d.moment++
	d.change(id, func(x *departure) {
		x.at, x.known = d.moment, true
		news(x)
	})
}

// resolve notes that the server is to be asked what became of a session, or has been asked.
func (d *departures) resolve(id string, asked bool) {
	d.change(id, func(x *departure) { x.resolving = !asked })
}

func (d *departures) change(id string, news func(*departure)) {
	x := d.gone[id]
	news(&x)
	if d.gone == nil {
		d.gone = make(map[string]departure)
	}
	d.gone[id] = x
	d.sweep()
}

// has tells whether a session is remembered to be gone.
func (d *departures) has(id string) bool { return d.gone[id].known }

// told tells whether the caller knows already what is in the place of a session.
func (d *departures) told(id string) bool { return d.gone[id].told }

func (d *departures) sweep() {
	for id, x := range d.gone {
		if !d.awaited(x) {
			delete(d.gone, id)
		}
	}
}

// awaited tells whether something may come that tells of a session as it was before its departure.
func (d *departures) awaited(x departure) bool {
	if x.resolving {
		return true
	}
	for at, stream := range d.asks {
		if at < x.at && (!stream || !x.streamed) {
			return true
		}
	}
	return false
}

// asking notes that something is asked for; the function that it returns ends that.
func (c *Client) asking(stream bool) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.departures.ask(stream)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.departures.end(at)
	}
}

// concerned tells whether there is anything of a session: c.mu is held.
func (c *Client) concerned(id string) bool {
	for w := range c.windows {
		if w.state.Session() == id {
			return true
		}
	}
	return c.sessions[id] != nil || c.outbox.Concerns(id)
}
