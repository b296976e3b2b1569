package framing

import (
	"bytes"
	"math"
	"strconv"
)

// fields is what the fields of a head say about the end of its request.
type fields struct {
	malformed string // why the head does not read the same to everybody; empty: it does
	lengths   int    // how many Content-Length there are
	length    int64  // the last one in bytes; -1: none, or no plain decimal number
	encodings int    // how many Transfer-Encoding there are
	chunked   bool   // the last one is "chunked"
	// host and origin are the first lines of these names, which decide who is asked and who may read
	// the answer.
	host, origin []byte
}

// What makes a head malformed.
const (
	bareLF   = "a line of the head does not end with CRLF"
	folded   = "a field of the head is folded"
	noField  = "a line of the head is no field"
	badName  = "the name of a field is malformed"
	badValue = "the value of a field has a control character"
)

// readFields reads the fields of a head, up to and without the empty line. Of what is malformed
// it keeps the first, and reads on.
func readFields(text []byte) fields {
	f := fields{length: -1}
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		body, clean := bytes.CutSuffix(line, []byte("\r"))
		if !clean {
			f.fail(bareLF)
		}
		f.add(body)
	}
	return f
}

func (f *fields) fail(why string) {
	if f.malformed == "" {
		f.malformed = why
	}
}

func (f *fields) add(line []byte) {
	if len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
		f.fail(folded)
		return
	}
	name, value, ok := bytes.Cut(line, []byte(":"))
	switch {
	case !ok:
		f.fail(noField)
		return
	case !isToken(name):
		f.fail(badName)
		return
	case !isText(value):
		f.fail(badValue)
		return
	}
	// Lengths come first, since names that are none of these are the common case.
	switch len(name) {
	case len("host"):
		if isHost(value) { // net/http refuses others in its own way
			keep(&f.host, line, name, "host")
		}
	case len("origin"):
		keep(&f.origin, line, name, "origin")
	case len("content-length"):
		if isNamed(name, "content-length") {
			f.addLength(value)
		}
	case len("transfer-encoding"):
		if isNamed(name, "transfer-encoding") {
			f.encodings++
			f.chunked = isNamed(bytes.Trim(value, " \t"), "chunked")
		}
	}
}

func keep(at *[]byte, line, name []byte, want string) {
	if *at == nil && isNamed(name, want) {
		*at = line
	}
}

func (f *fields) addLength(value []byte) {
	f.lengths++
	f.length = parseLength(bytes.Trim(value, " \t"))
}

// parseLength reads a decimal number without sign or leading zeros; -1 for anything else. What
// does not fit is the largest number.
func parseLength(digits []byte) int64 {
	if len(digits) == 0 || digits[0] == '0' && len(digits) > 1 {
		return -1
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return -1
		}
	}
	const most = 18 // digits that fit for certain
	if len(digits) > most {
		return math.MaxInt64
	}
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return -1 // digits cannot fail
	}
	return n
}

// breach returns the rule that a request with these fields breaks, nil when it breaks none.
func (f *fields) breach(maxBody int64) *Error {
	switch {
	case f.malformed != "":
		return fault("%s", f.malformed)
	case f.encodings > 0:
		return fault("Transfer-Encoding is not accepted here")
	case f.lengths == 0:
		return fault("a Content-Length is missing")
	case f.lengths > 1:
		return fault("there is more than one Content-Length")
	case f.length < 0:
		return fault("the Content-Length is not a plain decimal number")
	case f.length > maxBody:
		return fault("the Content-Length is above %d bytes", maxBody)
	}
	return nil
}

// isNamed compares without regard to the case of ASCII letters; want is in lower case.
func isNamed(text []byte, want string) bool {
	if len(text) != len(want) {
		return false
	}
	for i, c := range text {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != want[i] {
			return false
		}
	}
	return true
}

// tokens are the characters of names, RFC 9110 section 5.6.2.
var tokens = func() (set [256]bool) {
	for c := range set {
		set[c] = c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
	}
	for _, c := range []byte("!#$%&'*+-.^_`|~") {
		set[c] = true
	}
	return set
}()

func isToken(name []byte) bool {
	for _, c := range name {
		if !tokens[c] {
			return false
		}
	}
	return len(name) > 0
}

// isHost tells the names, addresses and ports that hosts have from what net/http may not take for one.
func isHost(value []byte) bool {
	for _, c := range bytes.Trim(value, " \t") {
		letter := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !letter && bytes.IndexByte([]byte("-._~%:[]"), c) < 0 {
			return false
		}
	}
	return true
}

func isText(value []byte) bool {
	for _, c := range value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
