package live

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// piece is a constant text of any length up to its room. It is copied with all of the room, which
// takes a few instructions, while copying just so many bytes takes a call.
type piece struct {
	room [64]byte
	n    int
}

// pieceOf formats a piece.
func pieceOf(format string, args ...any) (p piece) {
	text := fmt.Sprintf(format, args...)
	if p.n = copy(p.room[:], text); p.n < len(text) {
		panic("a piece is too long: " + text)
	}
	return p
}

func (p *piece) append(b []byte) []byte {
	n := len(b)
	if cap(b)-n < len(p.room) {
		b = slices.Grow(b, len(p.room))
	}
	*(*[64]byte)(b[n : n+64]) = p.room
	return b[:n+p.n]
}

// appendQuoted appends a JSON string, escaped as encoding/json does it.
func appendQuoted(b, s []byte) []byte {
	at, end := len(b)+1, len(b)+1+len(s)
	if cap(b) <= end {
		b = slices.Grow(b, len(s)+2)
	}
	b = b[:end+1]
	b[at-1], b[end] = '"', '"'
	if !copyPlain(b[at:end], s) {
		b = append(appendEscaped(b[:at], s), '"')
	}
	return b
}

// copyPlain copies a text to where there is room for just as much, eight bytes at a time, and
// reports that none of them is to be escaped.
func copyPlain(to, s []byte) bool {
	special, n := uint64(0), len(s)
	if n < 8 || len(to) < n {
		for i := 0; i < n && i < len(to); i++ {
			to[i] = s[i]
			special |= specials[s[i]]
		}
		return special&highBits == 0
	}
	for i := 0; i < n-8; i += 8 {
		special |= copyWord(to[i:i+8:i+8], s[i:i+8:i+8])
	}
	return (special|copyWord(to[n-8:n:n], s[n-8:n:n]))&highBits == 0
}

// copyWord copies eight bytes and looks at them.
func copyWord(to, s []byte) uint64 {
	w := binary.LittleEndian.Uint64(s)
	binary.LittleEndian.PutUint64(to, w)
	return specialBytes(w)
}

const (
	eachByte = 0x0101010101010101
	highBits = eachByte << 7
)

// specialBytes has no high bit of a byte for eight bytes that stand for themselves. Taking a number
// from each byte sets its high bit if the byte was lower; bytes with a high bit of their own do not
// stand for themselves either.
func specialBytes(w uint64) uint64 {
	const (
		amp = '"' ^ '&' // the bit in which the two differ
		gt  = '<' ^ '>'
	)
	control := w - eachByte*' '
	quote := (w&^(eachByte*amp) ^ eachByte*('"'&^amp)) - eachByte // or an ampersand
	angle := (w&^(eachByte*gt) ^ eachByte*('<'&^gt)) - eachByte
	back := (w ^ eachByte*'\\') - eachByte
	return control | quote | angle | back | w
}

// specials is the same for single bytes.
var specials = func() (set [256]uint64) {
	for c := range set {
		if c < ' ' || c >= utf8.RuneSelf || strings.ContainsRune(`"\<>&`, rune(c)) {
			set[c] = highBits
		}
	}
	return set
}()

// short escapes are a backslash and one letter.
var short = [...]byte{
	'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't',
}

// appendEscaped appends the inside of a string, which may hold anything.
func appendEscaped(b, s []byte) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if specials[c] == 0 {
			b = append(b, c)
			i++
			continue
		}
		if c < utf8.RuneSelf {
			if int(c) < len(short) && short[c] != 0 {
				b = append(b, '\\', short[c])
			} else {
				b = appendUnicode(b, rune(c))
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = appendUnicode(b, utf8.RuneError)
		case r == '\u2028', r == '\u2029': // ends of lines in JavaScript
			b = appendUnicode(b, r)
		default:
			b = append(b, s[i:i+size]...)
		}
		i += size
	}
	return b
}

// appendUnicode appends an escape of four digits.
func appendUnicode(b []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	return append(b, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}

// appendUint appends a number, of which most are small.
func appendUint(b []byte, n uint64) []byte {
	if n < 10 {
		return append(b, byte('0'+n))
	}
	return appendDigits(b, n)
}

func appendDigits(b []byte, n uint64) []byte {
	if n >= 10_000 {
		return strconv.AppendUint(b, n, 10)
	}
	high, low := digits[n/100], digits[n%100]
	switch {
	case n < 100:
		return append(b, byte(low), byte(low>>8))
	case n < 1000:
		return append(b, byte(high>>8), byte(low), byte(low>>8))
	}
	return append(b, byte(high), byte(high>>8), byte(low), byte(low>>8))
}

// digits are the numbers of two digits, the first one in the lower byte.
var digits = func() (all [100]uint16) {
	for n := range all {
		all[n] = uint16('0'+n/10) | uint16('0'+n%10)<<8
	}
	return all
}()

// instants writes times, most of which are of one day, and many that of the one before.
type instants struct {
	day  int64 // counted from the epoch
	date [len(`"2006-01-02T`)]byte

	ms       int64 // the time written last
	clock    [8]byte
	fraction [8]byte
	n        int // bytes of fraction, zero where nothing was written yet
}

const dayMillis = 24 * 60 * 60 * 1000

// append appends a time in milliseconds since the epoch as encoding/json writes it in UTC.
func (t *instants) append(b []byte, ms int64) []byte {
	if (t.n == 0 || t.ms != ms) && !t.set(ms) {
		at := time.UnixMilli(ms).UTC()
		return append(at.AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
	}
	b = append(append(append(b, t.date[:]...), t.clock[:]...), t.fraction[:]...)
	return b[:len(b)-len(t.fraction)+t.n]
}

// set takes a time of our era, others it refuses.
func (t *instants) set(ms int64) bool {
	if ms < 0 {
		return false
	}
	day, rest := ms/dayMillis, uint64(ms%dayMillis)
	if day != t.day || t.n == 0 {
		at := time.UnixMilli(ms).UTC()
		if at.Year() > 9999 {
			return false
		}
		t.day = day
		copy(t.date[:], at.Format(`"2006-01-02T`))
	}
	second, fraction := rest/1000, rest%1000
	binary.LittleEndian.PutUint64(t.clock[:], uint64(digits[second/3600])|':'<<16|
		uint64(digits[second/60%60])<<24|':'<<40|uint64(digits[second%60])<<48)
	t.ms, t.n = ms, copy(t.fraction[:], `Z"`)
	if fraction > 0 {
		t.setFraction(fraction)
	}
	return true
}

// setFraction leaves trailing zeros out.
func (t *instants) setFraction(thousandths uint64) {
	low := digits[thousandths%100]
	t.fraction = [8]byte{'.', byte('0' + thousandths/100), byte(low), byte(low >> 8)}
	n := 4
	for t.fraction[n-1] == '0' {
		n--
	}
	t.n = n + copy(t.fraction[n:], `Z"`)
}
