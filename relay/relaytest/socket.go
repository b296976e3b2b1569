package relaytest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/tidemark-im/tidemark/relay/nostrx"
)

// session is one WebSocket connection.
type session struct {
	relay     *Relay
	ws        *websocket.Conn
	host      string
	challenge string
	out       chan []byte // frames to write; a client that leaves them lying is cut
	cut       context.CancelFunc

	who  nostrx.PubKey              // under the relay's lock
	subs map[string][]nostrx.Filter // likewise
}

// maxWaiting is how many frames wait for a slow client, at most.
const maxWaiting = 16_384

func (r *Relay) serveSocket(w http.ResponseWriter, req *http.Request) {
	if r.faults.at(Occasion{Point: AtConnect}, Stall) != None {
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	}
	ws, err := websocket.Accept(w, req, &websocket.AcceptOptions{InsecureSkipVerify: true}) // any page
	if err != nil {
		return // Accept has answered
	}
	ws.SetReadLimit(maxBody)
	ctx, cancel := context.WithCancel(r.stop)
	defer cancel()
	s := &session{
		relay: r, ws: ws, host: req.Host, challenge: rand.Text(), cut: cancel,
		out: make(chan []byte, maxWaiting), subs: make(map[string][]nostrx.Filter),
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		_ = ws.CloseNow()
		return
	}
	r.serving.Add(1)
	r.sessions[s] = true
	r.connects++
	r.mu.Unlock()
	defer r.serving.Done()

	s.send("AUTH", s.challenge)
	written := make(chan struct{})
	go func() {
		defer close(written)
		defer cancel()
		s.write(ctx)
	}()
	s.read(ctx)
	r.mu.Lock()
	delete(r.sessions, s)
	r.mu.Unlock()
	cancel()
	<-written
	_ = ws.CloseNow()
}

func (s *session) write(ctx context.Context) {
	for {
		select {
		case frame := <-s.out:
			limited, cancel := context.WithTimeout(ctx, 10*time.Second)
			err := s.ws.Write(limited, websocket.MessageText, frame)
			cancel()
			if err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (s *session) read(ctx context.Context) {
	for {
		_, data, err := s.ws.Read(ctx)
		if err != nil {
			return
		}
		var frame []json.RawMessage
		var label string
		if json.Unmarshal(data, &frame) != nil || len(frame) < 2 || json.Unmarshal(frame[0], &label) != nil {
			s.send("NOTICE", "invalid: a frame is an array with a label")
			continue
		}
		switch label {
		case "EVENT":
			s.publication(frame[1])
		case "REQ":
			s.request(frame[1], frame[2:])
		case "CLOSE":
			var id string
			if json.Unmarshal(frame[1], &id) == nil {
				s.relay.mu.Lock()
				delete(s.subs, id)
				s.relay.mu.Unlock()
			}
		case "AUTH":
			s.authenticate(frame[1])
		default:
			s.send("NOTICE", "invalid: unknown label "+label)
		}
	}
}

// send queues a frame. It never waits.
func (s *session) send(parts ...any) {
	frame, err := json.Marshal(parts)
	if err != nil {
		panic("relaytest: a frame does not encode: " + err.Error())
	}
	select {
	case s.out <- frame:
	default:
		s.cut()
	}
}

// sendEvent queues an event, with what is wrong with events at the moment.
func (s *session) sendEvent(id string, e nostrx.Event) {
	f := &s.relay.faults
	if f.on(Forge) {
		e.Sig = strings.Repeat("0", 127) + "1"
	}
	s.send("EVENT", id, json.RawMessage(e.Encode()))
	if f.on(Repeat) {
		s.send("EVENT", id, json.RawMessage(e.Encode()))
	}
}

// refuseUnknown refuses somebody who has not answered the challenge, and challenges once more: some
// clients lose what comes together with the handshake.
func (s *session) refuseUnknown(parts ...any) {
	s.send("AUTH", s.challenge)
	s.send(append(parts, "auth-required: answer the challenge first")...)
}

// publication answers an EVENT.
func (s *session) publication(raw []byte) {
	e, err := nostrx.ParseEvent(raw, false)
	if err == nil {
		err = e.Verify()
	}
	if err != nil {
		if e.ID != "" {
			s.send("OK", e.ID, false, "invalid: "+err.Error())
		} else {
			s.send("NOTICE", "invalid: "+err.Error())
		}
		return
	}
	who := s.identity()
	if who == "" {
		s.refuseUnknown("OK", e.ID, false)
		return
	}
	fault, err := s.relay.publish(who, e)
	switch {
	case fault == Cut:
		s.cut()
	case fault == LoseReceipts || fault == Stall:
	case err != nil:
		s.send("OK", e.ID, false, err.Error())
	default:
		s.send("OK", e.ID, true, "")
	}
}

// request answers a REQ.
func (s *session) request(rawID json.RawMessage, rawFilters []json.RawMessage) {
	var id string
	if json.Unmarshal(rawID, &id) != nil || id == "" || len(id) > 64 {
		s.send("NOTICE", "invalid: a subscription has an id of 1 to 64 characters")
		return
	}
	filters := make([]nostrx.Filter, len(rawFilters))
	for i, raw := range rawFilters {
		if err := json.Unmarshal(raw, &filters[i]); err != nil {
			s.send("CLOSED", id, "invalid: "+err.Error())
			return
		}
	}
	if err := checkFilters(filters); err != nil {
		s.send("CLOSED", id, err.Error())
		return
	}
	who := s.identity()
	if who == "" {
		s.refuseUnknown("CLOSED", id)
		return
	}
	switch s.relay.faults.at(Occasion{Point: AtRequest, By: who, Filters: filters}, Stall, Cut, Refuse) {
	case Stall:
		return
	case Cut:
		s.cut()
		return
	case Refuse:
		s.send("CLOSED", id, "error: not today")
		return
	}
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	if _, known := s.subs[id]; !known && len(s.subs) >= maxSubs {
		s.send("CLOSED", id, "error: too many subscriptions")
		return
	}
	if !s.relay.isMember(who) {
		s.send("CLOSED", id, "restricted: relay_membership_required")
		return
	}
	s.subs[id] = filters
	s.stored(id, s.relay.query(who, filters))
}

// stored sends what is stored, and its end. The lock is held.
func (s *session) stored(id string, events []nostrx.Event) {
	f := &s.relay.faults
	if f.on(EarlyEnd) {
		s.send("EOSE", id)
		return
	}
	if f.on(Unasked) {
		events = s.relay.store.find(func(nostrx.Event) bool { return true })
	}
	if f.on(Reverse) {
		slices.Reverse(events)
	}
	for _, e := range events {
		s.sendEvent(id, e)
	}
	s.send("EOSE", id)
}

// authenticate answers the answer to the challenge.
func (s *session) authenticate(raw []byte) {
	e, err := nostrx.ParseEvent(raw, false)
	if err != nil {
		s.send("NOTICE", "invalid: "+err.Error())
		return
	}
	at := s.relay.options.Now().Unix() - e.CreatedAt
	named, urlErr := url.Parse(e.Value("relay"))
	switch {
	case e.Verify() != nil || e.Kind != nostrx.KindAuth:
		s.send("OK", e.ID, false, "invalid: not a genuine answer")
	case e.Value("challenge") != s.challenge:
		s.send("OK", e.ID, false, "invalid: another challenge")
	case urlErr != nil || named.Host != s.host:
		s.send("OK", e.ID, false, "invalid: another relay")
	case at > 600 || at < -600:
		s.send("OK", e.ID, false, "invalid: its time")
	default:
		s.relay.mu.Lock()
		s.who = e.PubKey
		member := s.relay.isMember(s.who)
		s.relay.mu.Unlock()
		if !member {
			s.send("OK", e.ID, false, "restricted: relay_membership_required")
			return
		}
		s.send("OK", e.ID, true, "")
	}
}

func (s *session) identity() nostrx.PubKey {
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	return s.who
}

// publish takes a publication with what is wrong with publications at the moment.
func (r *Relay) publish(by nostrx.PubKey, e nostrx.Event) (Fault, error) {
	coming := Occasion{Point: AtEvent, By: by, Event: e}
	switch fault := r.faults.at(coming, Stall, Cut, Refuse, RefuseTime); fault {
	case Refuse:
		return None, errRefused
	case RefuseTime:
		return None, errTimestamp
	case None:
	default:
		return fault, nil
	}
	err := r.accept(by, e)
	if fault := r.faults.at(Occasion{Point: AtReceipt, By: by, Event: e}, LoseReceipts); fault != None {
		return fault, nil
	}
	return None, err
}
