package framing

import "bytes"

// readHead looks for the end of the present head, and judges it when it is there.
func (c *conn) readHead() {
	if !c.findLine() {
		if len(c.held) > c.gate.headBytes {
			c.stage = lost // net/http has a bound of its own, and answers
		}
		return
	}
	line := parseLine(c.held[c.head.line:c.head.fields])
	switch {
	case !line.known:
		c.stage = lost // net/http refuses it, or calls it by a version of its own
	case c.findEnd():
		c.judge(line)
	case len(c.held) <= c.gate.headBytes:
	case c.gate.guardsLine(line):
		// This is another way of not saying where the request ends.
		f := readFields(c.held[c.head.fields:c.head.last])
		c.refuse(&f, "the head is too long")
	default:
		c.stage = lost
	}
}

// findLine finds the end of the request line. What there is of it is ready at once.
func (c *conn) findLine() bool {
	h := &c.head
	if h.fields > 0 {
		return true
	}
	for h.line < len(c.held) && (c.held[h.line] == '\r' || c.held[h.line] == '\n') {
		h.line++ // net/http forgives a few line ends behind a body
	}
	h.scan = max(h.scan, h.line)
	i := bytes.IndexByte(c.held[h.scan:], '\n')
	if i < 0 {
		h.scan = len(c.held)
		c.ready = len(c.held)
		return false
	}
	h.fields = h.scan + i + 1
	h.last, h.scan = h.fields, h.fields
	c.ready = h.fields
	return true
}

// findEnd finds the empty line behind the fields, which is left as the last one.
func (c *conn) findEnd() bool {
	h := &c.head
	for {
		i := bytes.IndexByte(c.held[h.scan:], '\n')
		if i < 0 {
			h.scan = len(c.held)
			return false
		}
		h.scan += i + 1
		if line := c.held[h.last:h.scan]; len(line) == 1 || len(line) == 2 && line[0] == '\r' {
			return true
		}
		h.last = h.scan
	}
}

// judge decides about a complete head, which is everything before scan.
func (c *conn) judge(line requestLine) {
	h := c.head
	f := readFields(c.held[h.fields:h.last])
	if !line.clean || h.scan-h.last != len("\r\n") {
		f.malformed = bareLF
	}
	c.ready = h.scan
	if c.gate.guardsLine(line) {
		if breach := f.breach(c.gate.maxBody); breach != nil {
			c.refuse(&f, breach.Reason)
			return
		}
		c.mark()
	}
	c.follow(line, &f)
}

// follow says how the rest of a request that goes to net/http is found. Whatever net/http may
// read in another way is not followed.
func (c *conn) follow(line requestLine, f *fields) {
	c.stage = lost
	switch {
	case f.malformed != "" || string(line.method) == "CONNECT":
	case f.encodings > 0:
		if f.encodings == 1 && f.chunked && f.lengths == 0 && !line.old {
			c.stage, c.body = inBody, body{chunked: true}
		}
	case f.lengths == 0:
		c.stage, c.body = inBody, body{}
	case f.lengths == 1 && f.length >= 0:
		c.stage, c.body = inBody, body{left: f.length}
	}
}

// mark puts the mark of a head that was found right behind its request line.
func (c *conn) mark() {
	at := c.head.fields
	added := len(markName) + len(": ") + len(c.gate.key) + len("\r\n")
	b := make([]byte, 0, len(c.held)+added)
	b = append(b, c.held[:at]...)
	b = append(b, markName+": "...)
	b = append(b, c.gate.key...)
	b = append(b, "\r\n"...)
	c.held = append(b, c.held[at:]...)
	c.ready += added
}

// unread is the length of a body that nobody sends or reads. net/http does not wait for one as
// long as this when it has answered; it ends what it writes and gives the client a moment, so that
// the answer arrives although more of the client's bytes do.
const unread = "1073741824"

// refuse puts a refusal in the place of a head and of all that follows it.
func (c *conn) refuse(f *fields, reason string) {
	b := bytes.Clone(c.held[:c.head.fields])
	b = append(b, markName+": "+c.gate.key+" "+reason+"\r\n"...)
	host := f.host
	if host == nil {
		host = []byte("Host: localhost") // net/http wants one
	}
	b = append(append(b, host...), "\r\n"...)
	if f.origin != nil {
		b = append(append(b, f.origin...), "\r\n"...)
	}
	b = append(b, "Connection: close\r\nContent-Length: "+unread+"\r\n\r\n"...)
	c.stage, c.held, c.ready = refused, b, len(b)
}
