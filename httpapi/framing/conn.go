package framing

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// stage is where on the course of a connection its reader stands; see the package comment.
type stage uint8

const (
	between stage = iota // what was held of the last request may still be taken
	inHead
	inBody
	lost
	refused
)

// conn is a connection whose requests are seen before net/http reads them. Like any connection it
// is read by one goroutine at a time, and written and closed by others meanwhile.
type conn struct {
	net.Conn
	gate *Gate

	stage stage
	// held[:sent] was taken by the reader, held[sent:ready] may be taken. While a head is
	// incomplete held begins with it; otherwise it begins with what was not taken yet.
	held        []byte
	sent, ready int
	head        position
	body        body

	taken atomic.Bool // by a handler: what comes now is no request
}

// position is how far a head was read, as offsets in held.
type position struct {
	line   int // its request line begins
	fields int // its fields begin; zero: the end of the line is not there
	last   int // the line begins that was not read to its end
	scan   int // nothing before is the end of that line
}

// tlsConn is a conn above TLS: net/http asks it for the state of the connection.
type tlsConn struct{ *conn }

// ConnectionState returns that of the connection below.
func (c tlsConn) ConnectionState() tls.ConnectionState {
	return c.Conn.(*tls.Conn).ConnectionState()
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return c.Conn.Read(p)
	}
	for {
		c.look()
		if c.sent < c.ready {
			n := copy(p, c.held[c.sent:c.ready])
			c.sent += n
			c.drop()
			return n, nil
		}
		if c.stage == refused {
			return 0, io.EOF // nothing behind a refusal means anything
		}
		n, err := c.Conn.Read(p)
		if n == 0 {
			return 0, err
		}
		if len(c.held) > 0 {
			c.held = append(c.held, p[:n]...)
			continue
		}
		// The common case: everything is where the reader wants it.
		if n = c.inPlace(p[:n]); n > 0 {
			return n, nil
		}
	}
}

// inPlace looks at bytes in the reader's own memory while nothing is held. It returns how many of
// them the reader may keep, and holds the others.
func (c *conn) inPlace(p []byte) int {
	c.held = p[:len(p):len(p)]
	c.look()
	if len(c.held) > 0 && &c.held[0] != &p[0] {
		return 0 // a head was written anew
	}
	n := c.ready
	c.sent = n
	if n == len(p) && c.stage != inHead {
		c.held = nil
	} else {
		c.held = bytes.Clone(c.held)
	}
	c.drop()
	return n
}

// drop forgets what was taken, unless a head must still be seen as a whole.
func (c *conn) drop() {
	if c.stage == inHead {
		return
	}
	c.held, c.ready = c.held[min(c.sent, len(c.held)):], c.ready-c.sent
	c.sent = 0
	if len(c.held) == 0 {
		c.held = nil // an idle connection holds no memory
	}
}

// look reads on in what is held, once everything that was ready has been taken, and makes more of
// it ready.
func (c *conn) look() {
	if c.sent < c.ready {
		return
	}
	if c.stage != refused && c.taken.Load() {
		c.stage = lost
	}
	if c.stage == between {
		c.stage, c.head = inHead, position{}
	}
	if c.stage == inHead {
		c.readHead()
	}
	if c.stage == inBody {
		n, over, ok := c.body.take(c.held[c.ready:])
		c.ready += n
		switch {
		case !ok:
			c.stage = lost
		case over:
			c.stage = between
		}
	}
	if c.stage == lost {
		c.ready = len(c.held)
	}
}

// SetDeadline implements net.Conn. net/http, which sets deadlines for reading and for writing apart,
// calls it only to hand a connection over to a handler: to one that speaks another protocol, or that
// sends a stream and does not care what comes. If it ever did otherwise, the connection would be of no
// use to routes that are held to the rules, and of use to all others.
func (c *conn) SetDeadline(t time.Time) error {
	c.taken.Store(true)
	return c.Conn.SetDeadline(t)
}

// ReadFrom implements io.ReaderFrom, as the connection below does for files.
func (c *conn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }

// CloseWrite ends what is written, so that net/http can wait a moment for the client to read it.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
