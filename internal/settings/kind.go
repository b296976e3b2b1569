package settings

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Kind is how a value is written.
type Kind uint8

// Kinds.
const (
	Duration Kind = iota // as in 30s, 1m30s or 250ms
	Count                // a whole number
	Bytes                // a whole number, with KiB, MiB, GiB or TiB behind it or without
	Rate                 // a number, per second
)

// String says what a value of the kind is.
func (k Kind) String() string {
	return [...]string{"duration", "count", "bytes", "per second"}[k]
}

// wanted tells in an error what should have stood there.
func (k Kind) wanted() string {
	return [...]string{
		"a duration such as 30s or 250ms", "a whole number",
		"a whole number of bytes such as 4096, 64MiB or 4GiB", "a number",
	}[k]
}

var errText = errors.New("not understood")

// parse reads a value. Every number of the table is below 2^53, so that a float64 holds it.
func (k Kind) parse(text string) (float64, error) {
	switch k {
	case Duration:
		d, err := time.ParseDuration(text)
		return float64(d), err
	case Count:
		n, err := strconv.ParseInt(text, 10, 64)
		return float64(n), err
	case Bytes:
		return parseBytes(text)
	default:
		n, err := strconv.ParseFloat(text, 64)
		if math.IsNaN(n) {
			err = errText
		}
		return n, err
	}
}

var byteUnits = []struct {
	name string
	size int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

func parseBytes(text string) (float64, error) {
	size := int64(1)
	for _, u := range byteUnits {
		if number, ok := strings.CutSuffix(text, u.name); ok {
			text, size = number, u.size
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return float64(n) * float64(size), err
}

// format writes a value so that parse reads the same.
func (k Kind) format(v float64) string {
	switch k {
	case Duration:
		return formatDuration(time.Duration(v))
	case Count:
		return strconv.FormatInt(int64(v), 10)
	case Bytes:
		for _, u := range byteUnits {
			if n := int64(v); n != 0 && n%u.size == 0 {
				return fmt.Sprint(n/u.size, u.name)
			}
		}
		return strconv.FormatInt(int64(v), 10)
	default:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
}

// formatDuration leaves out the zeros of 1h0m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
