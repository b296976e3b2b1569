package scenario

import (
	"fmt"
	"net/http"
	"strconv"
)

// stream sends the rows that changed since the last look, whole.
func (d *dumb) stream(rw http.ResponseWriter, req *http.Request) {
	d.mu.Lock()
	c, cut := d.begin(req), d.cut
	at, _ := strconv.ParseUint(req.Header.Get("Last-Event-ID"), 10, 64)
	resumed := at > 0 && at <= c.w.lsn
	c.w.streamed = true
	now := c.page(c.w, c.member)
	d.mu.Unlock()
	rw.Header().Set("Content-Type", "text/event-stream")
	write := func(name, id string, v any) {
		fmt.Fprintf(rw, "event: %s\n%sdata: %s\n\n", name, id, encode(v))
	}
	write("hello", "", hello{Connection: "1", HeartbeatSeconds: 25, Resumed: resumed})
	sent := now.Scopes
	if resumed {
		sent = map[string]row{}
		d.mu.Lock()
		for name, s := range c.w.scopes {
			if s.rows[c.member] != nil {
				sent[name] = row{Type: "unknown"}
			}
		}
		d.mu.Unlock()
	} else {
		write("snapshot", "", now)
	}
	for {
		d.mu.Lock()
		now, changed := c.page(c.w, c.member), d.changed
		d.mu.Unlock()
		for _, e := range d.differences(sent, now) {
			write("unread", fmt.Sprintf("id: %d\n", e.LSN), e)
		}
		sent = now.Scopes
		rw.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-cut:
			return
		case <-req.Context().Done():
			return
		}
	}
}

func (d *dumb) differences(sent map[string]row, now *page) []delta {
	var out []delta
	e := delta{LSN: now.LSN, Badge: now.Badge, HasUnread: now.HasUnread}
	for name, r := range now.Scopes {
		if old, was := sent[name]; was && old.Type != "unknown" && old.brief() == r.brief() {
			continue
		}
		e.Scope, e.Row, e.Removed = name, &r, false
		if d.fault == "deltas are late" {
			if old, was := sent[name]; was {
				e.Row = &old
			}
		}
		out = append(out, e)
		if d.fault == "deltas come twice" {
			out = append(out, e)
		}
	}
	for name := range sent {
		if _, there := now.Scopes[name]; !there && d.fault != "departures are silent" {
			e.Scope, e.Row, e.Removed = name, nil, true
			out = append(out, e)
		}
	}
	return out
}
