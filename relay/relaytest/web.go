package relaytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/tidemark-im/tidemark/relay/nostrx"
)

var errRefused = errors.New("blocked: not today")

func writeError(w http.ResponseWriter, code int, text string) {
	writeJSON(w, code, map[string]string{"error": text})
}

func writeJSON(w http.ResponseWriter, code int, doc any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(doc) // who does not listen has gone
}

func (r *Relay) serveInfo(w http.ResponseWriter) {
	doc := map[string]any{
		"name": r.options.Name, "self": r.options.Self.Public(), "software": "tidemark relay-dev",
		"supported_nips": []int{1, 9, 11, 29, 42, 98},
		"limitation": map[string]any{
			"auth_required": true, "max_limit": r.options.PageLimit, "max_subscriptions": maxSubs,
			"max_message_length": maxBody, "created_at_lower_limit": int(clockLeeway.Seconds()),
			"created_at_upper_limit": int(clockLeeway.Seconds()),
		},
	}
	if r.options.Community != uuid.Nil {
		doc["read_state_snapshot"] = map[string]any{
			"version": nostrx.SnapshotVersion, "community_id": r.options.Community,
			"max_events": r.options.SnapshotEvents, "max_event_array_bytes": r.options.SnapshotBytes,
		}
	}
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Content-Type", "application/nostr+json")
	_ = json.NewEncoder(w).Encode(doc)
}

// authorized reads a request's body and says who made it. Where it returns false it has answered.
func (r *Relay) authorized(w http.ResponseWriter, req *http.Request) (nostrx.PubKey, []byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil {
		writeError(w, http.StatusRequestEntityTooLarge, "the body is too large")
		return "", nil, false
	}
	scheme := "http://"
	if req.TLS != nil {
		scheme = "https://"
	}
	now := r.options.Now()
	e, err := nostrx.CheckAuthorization(req.Header.Get("Authorization"), req.Method,
		scheme+req.Host+req.URL.Path, body, now)
	if err != nil {
		writeError(w, http.StatusUnauthorized, err.Error())
		return "", nil, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, at := range r.used {
		if now.Sub(at) > authMemory {
			delete(r.used, id)
		}
	}
	if _, seen := r.used[e.ID]; seen {
		writeError(w, http.StatusUnauthorized, "this authorisation is used up")
		return "", nil, false
	}
	r.used[e.ID] = now
	if !r.isMember(e.PubKey) {
		writeError(w, http.StatusForbidden, "relay_membership_required")
		return "", nil, false
	}
	return e.PubKey, body, true
}

// serveQuery answers filters, or a snapshot query.
func (r *Relay) serveQuery(w http.ResponseWriter, req *http.Request) {
	who, body, ok := r.authorized(w, req)
	if !ok {
		return
	}
	if snapshot, err := isSnapshotQuery(body, who); snapshot {
		if err != nil {
			writeError(w, http.StatusBadRequest, err.Error())
			return
		}
		r.serveSnapshot(w, req, who)
		return
	}
	var filters []nostrx.Filter
	if err := json.Unmarshal(body, &filters); err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	if err := checkFilters(filters); err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	if r.failed(w, req, r.faults.at(Occasion{Point: AtRequest, By: who, Filters: filters}, Stall, Cut, Fail)) {
		return
	}
	r.mu.Lock()
	events := r.query(who, filters)
	r.mu.Unlock()
	if r.faults.on(EarlyEnd) {
		events = nil
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(encodeAll(events))
}

// failed carries out a fault of an HTTP request and says that there was one.
func (r *Relay) failed(w http.ResponseWriter, req *http.Request, fault Fault) bool {
	switch fault {
	case None:
		return false
	case Stall:
		select {
		case <-req.Context().Done():
		case <-r.stop.Done():
		}
	case Cut, LoseReceipts:
		panic(http.ErrAbortHandler) // the way to end a connection without an answer
	case Refuse:
		writeError(w, http.StatusForbidden, errRefused.Error())
	default:
		writeError(w, http.StatusServiceUnavailable, "not now")
	}
	return true
}

// encodeAll writes a compact array of events.
func encodeAll(events []nostrx.Event) []byte {
	data := []byte{'['}
	for i, e := range events {
		if i > 0 {
			data = append(data, ',')
		}
		data = append(data, e.Encode()...)
	}
	return append(data, ']')
}

// isSnapshotQuery tells whether a body asks for a snapshot, and what is wrong with it if it does. A
// member of that name makes it one whatever its value, so that no typing error is answered by a page.
func isSnapshotQuery(body []byte, who nostrx.PubKey) (bool, error) {
	var filters []map[string]json.RawMessage
	readable := json.Unmarshal(body, &filters) == nil
	if !readable || !slices.ContainsFunc(filters, func(f map[string]json.RawMessage) bool {
		_, there := f["read_state_snapshot"]
		return there
	}) {
		return false, nil
	}
	var kinds []int
	var authors []nostrx.PubKey
	f := filters[0]
	switch {
	case len(filters) != 1 || len(f) != 3:
		return true, errors.New("a snapshot query is one filter of three members")
	case string(f["read_state_snapshot"]) != fmt.Sprint(nostrx.SnapshotVersion):
		return true, errors.New("another version")
	case json.Unmarshal(f["kinds"], &kinds) != nil || !slices.Equal(kinds, []int{nostrx.KindAppData}):
		return true, errors.New("another kind")
	case json.Unmarshal(f["authors"], &authors) != nil || !slices.Equal(authors, []nostrx.PubKey{who}):
		return true, errors.New("another author")
	}
	return true, nil
}

// serveSnapshot answers with all application data of one author, in one cut.
func (r *Relay) serveSnapshot(w http.ResponseWriter, req *http.Request, who nostrx.PubKey) {
	if r.options.Community == uuid.Nil {
		writeError(w, http.StatusBadRequest, "there are no snapshots here")
		return
	}
	fault := r.faults.at(Occasion{Point: AtSnapshot, By: who}, Stall, Cut, Fail, Endless, Partial)
	if fault != Endless && fault != Partial && r.failed(w, req, fault) {
		return
	}
	r.mu.Lock()
	events := r.store.find(func(e nostrx.Event) bool { return e.Kind == nostrx.KindAppData && e.PubKey == who })
	r.mu.Unlock()
	encoded := encodeAll(events)
	if len(events) > r.options.SnapshotEvents || len(encoded) > r.options.SnapshotBytes {
		writeError(w, http.StatusRequestEntityTooLarge, "the snapshot is too large")
		return
	}
	ids := make([]nostrx.EventID, len(events))
	for i, e := range events {
		ids[i] = e.ID
	}
	id, err := nostrx.SnapshotID(r.options.Community, who, ids)
	if err != nil {
		writeError(w, http.StatusServiceUnavailable, "a row is damaged")
		return
	}
	if fault == Partial && len(events) > 0 {
		encoded = encodeAll(events[:len(events)-1])
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = fmt.Fprintf(w, `{"read_state_snapshot":%d,"complete":true,"community_id":%q,"pubkey":%q,`+
		`"snapshot_id":%q,"events":%s`,
		nostrx.SnapshotVersion, r.options.Community.String(), string(who), id, encoded)
	for blank := slices.Repeat([]byte{' '}, 64<<10); fault == Endless && err == nil; {
		_, err = w.Write(blank)
	}
	_, _ = io.WriteString(w, "}")
}

// serveEvents takes a publication.
func (r *Relay) serveEvents(w http.ResponseWriter, req *http.Request) {
	who, body, ok := r.authorized(w, req)
	if !ok {
		return
	}
	if len(body) > nostrx.MaxEventOut {
		writeError(w, http.StatusRequestEntityTooLarge,
			fmt.Sprintf("an event has at most %d bytes", nostrx.MaxEventOut))
		return
	}
	e, err := nostrx.ParseEvent(body, false)
	if err == nil {
		err = e.Verify()
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, "invalid: "+err.Error())
		return
	}
	if r.faults.on(Fail) {
		writeError(w, http.StatusServiceUnavailable, "not now")
		return
	}
	fault, err := r.publish(who, e)
	if r.failed(w, req, fault) {
		return
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, err.Error())
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"accepted": true, "event_id": e.ID})
}
