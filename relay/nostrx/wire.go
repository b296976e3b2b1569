package nostrx

import (
	"encoding/json"
	"fmt"
)

// Labels of what a relay sends and is sent.
const (
	labelEvent  = "EVENT"
	labelReq    = "REQ"
	labelClose  = "CLOSE"
	labelEOSE   = "EOSE"
	labelClosed = "CLOSED"
	labelOK     = "OK"
	labelNotice = "NOTICE"
	labelAuth   = "AUTH"
)

// message is one frame of a relay, read as far as its label says.
type message struct {
	label  string
	sub    string          // EVENT, EOSE, CLOSED: the subscription
	event  json.RawMessage // EVENT
	id     EventID         // OK
	ok     bool            // OK
	reason string          // OK, CLOSED, NOTICE; the challenge of AUTH
}

// parseMessage reads a frame. A label that it does not know is no error.
func parseMessage(data []byte) (message, error) {
	parts, err := elements(data, 8)
	if err != nil || len(parts) == 0 {
		return message{}, fmt.Errorf("%w: a frame", ErrMalformed)
	}
	var m message
	into := []any{&m.label}
	if json.Unmarshal(parts[0], &m.label) != nil {
		return message{}, fmt.Errorf("%w: the label of a frame", ErrMalformed)
	}
	required := 2
	switch m.label {
	case labelEvent:
		into, required = append(into, &m.sub, &m.event), 3
	case labelEOSE:
		into = append(into, &m.sub)
	case labelClosed:
		into = append(into, &m.sub, &m.reason)
	case labelOK:
		into, required = append(into, &m.id, &m.ok, &m.reason), 3
	case labelNotice, labelAuth:
		into = append(into, &m.reason)
	default:
		return m, nil
	}
	if len(parts) < required {
		return message{}, fmt.Errorf("%w: a short frame", ErrMalformed)
	}
	for i := 1; i < min(len(parts), len(into)); i++ {
		if json.Unmarshal(parts[i], into[i]) != nil {
			return message{}, fmt.Errorf("%w: element %d of a frame", ErrMalformed, i)
		}
	}
	return m, nil
}

// requestFrame opens a subscription.
func requestFrame(id string, filters []Filter) ([]byte, error) {
	frame := []any{labelReq, id}
	for _, f := range filters {
		frame = append(frame, f)
	}
	return json.Marshal(frame)
}

// closeFrame ends one.
func closeFrame(id string) []byte { return fmt.Appendf(nil, `[%q,%q]`, labelClose, id) }

// eventFrame carries an event, encoded: a publication, or the answer to a challenge.
func eventFrame(label string, event []byte) []byte {
	return fmt.Appendf(nil, `[%q,%s]`, label, event)
}
