package strict

import (
	"encoding/json"
	"time"
)

// Time is a moment as it is sent to us: RFC 3339. Another text is an *Error.
type Time struct{ time.Time }

// UnmarshalJSON implements json.Unmarshaler.
func (t *Time) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return &Error{Reason: "a time must be a text"}
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Year() < 1970 || at.Year() > 9999 {
		return &Error{Reason: "a time must look like 2026-01-31T12:00:00Z"}
	}
	t.Time = at
	return nil
}

// Milliseconds since the Unix epoch; zero for no time.
func (t *Time) Milliseconds() int64 {
	if t == nil {
		return 0
	}
	return t.UnixMilli()
}
