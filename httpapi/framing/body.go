package framing

import "math"

// body follows the body of a request to its end. It is strict where net/http is lenient, never the
// other way round: what it does not understand, nobody is sure of.
type body struct {
	left    int64 // bytes up to the end of the body, or of the data of a chunk
	chunked bool
	at      place
	digits  int // of the size of a chunk so far
}

// place is where in a chunked body the next byte stands.
type place uint8

const (
	inSize      place = iota
	inExtension       // behind the size
	afterSize         // behind the CR of that line
	inData
	afterData     // at the CR behind the data
	afterDataCR   // behind it
	trailerStart  // at the first byte of a line behind the last chunk
	inTrailer     // in such a line
	afterTrailer  // behind its CR
	afterLastLine // behind the CR of the empty line that ends everything
)

// take returns how many of the bytes belong to the body, and whether it is over. What ok is false
// for makes no sense; the bytes before it do.
func (b *body) take(p []byte) (n int, over, ok bool) {
	if !b.chunked {
		n = int(min(b.left, int64(len(p))))
		b.left -= int64(n)
		return n, b.left == 0, true
	}
	for n < len(p) {
		if b.at == inData {
			some := min(b.left, int64(len(p)-n))
			b.left -= some
			n += int(some)
			if b.left == 0 {
				b.at = afterData
			}
			continue
		}
		if !b.step(p[n]) {
			return n, false, false
		}
		n++
		if b.at == inSize && b.digits < 0 {
			return n, true, true
		}
	}
	return n, false, true
}

// step reads a byte that is no data. The last one of the body leaves digits at -1.
func (b *body) step(c byte) bool {
	switch b.at {
	case inSize:
		return b.size(c)
	case inExtension:
		if c == '\r' {
			b.at = afterSize
		}
		return c != '\n'
	case afterSize:
		if b.at = inData; b.left == 0 {
			b.at = trailerStart
		}
		return c == '\n'
	case afterData:
		b.at = afterDataCR
		return c == '\r'
	case afterDataCR:
		b.at, b.digits = inSize, 0
		return c == '\n'
	case trailerStart:
		if b.at = inTrailer; c == '\r' {
			b.at = afterLastLine
		}
		return c != '\n'
	case inTrailer:
		if c == '\r' {
			b.at = afterTrailer
		}
		return c != '\n'
	case afterTrailer:
		b.at = trailerStart
		return c == '\n'
	case afterLastLine:
		b.at, b.digits = inSize, -1
		return c == '\n'
	}
	return false // inData is not read byte by byte
}

// size reads a byte of a chunk's size, or what ends it.
func (b *body) size(c byte) bool {
	var digit int64
	switch {
	case c >= '0' && c <= '9':
		digit = int64(c - '0')
	case c >= 'a' && c <= 'f':
		digit = int64(c-'a') + 10
	case c >= 'A' && c <= 'F':
		digit = int64(c-'A') + 10
	case b.digits == 0:
		return false
	case c == '\r':
		b.at = afterSize
		return true
	case c == ';':
		b.at = inExtension
		return true
	default:
		return false
	}
	if b.digits == 0 {
		b.left = 0
	}
	if b.left > math.MaxInt64>>5 {
		return false
	}
	b.digits++
	b.left = b.left<<4 | digit
	return true
}
