package strict

import (
	"errors"
	"fmt"
	"strconv"
)

// ErrUnsafe is a counter that is negative, or larger than clients can hold exactly.
var ErrUnsafe = errors.New("counter out of range")

// Counter is a revision, seq or version as it is sent to us: an integer from 0 to 2^53 - 1.
// Another integer is ErrUnsafe, anything else an *Error.
type Counter uint64

const maxCounter = 1<<53 - 1

// UnmarshalJSON implements json.Unmarshaler.
func (c *Counter) UnmarshalJSON(data []byte) error {
	text := string(data)
	digits := text
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	for _, r := range digits {
		if r < '0' || r > '9' {
			return &Error{Reason: "a counter must be an integer"}
		}
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if digits == "" || err != nil && digits == text && !errors.Is(err, strconv.ErrRange) {
		return &Error{Reason: "a counter must be an integer"}
	}
	if err != nil || n > maxCounter {
		return fmt.Errorf("%w: %s is not between 0 and %d", ErrUnsafe, shorten(text), maxCounter)
	}
	*c = Counter(n)
	return nil
}
