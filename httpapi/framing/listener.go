package framing

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
)

// listener sees to the connections of another one.
type listener struct {
	net.Listener
	gate  *Gate
	ready chan accepted
	begin sync.Once
	// done ends when the listener is closed, which gives handshakes up.
	done context.Context
	stop context.CancelFunc
	work sync.WaitGroup
}

// accepted is what Accept returns.
type accepted struct {
	conn net.Conn
	err  error
}

// Listener returns a listener whose connections are seen before net/http reads them. It takes
// over l, and ends all that it started when it is closed. Where l is one of crypto/tls, it does
// the handshakes, and leaves alone the connections that speak HTTP/2.
func (g *Gate) Listener(l net.Listener) net.Listener {
	g.listens.Store(true)
	done, stop := context.WithCancel(context.Background())
	return &listener{Listener: l, gate: g, ready: make(chan accepted), done: done, stop: stop}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	l.begin.Do(func() {
		if l.done.Err() == nil {
			l.work.Add(1)
			go l.run()
		}
	})
	select {
	case a := <-l.ready:
		return a.conn, a.err
	case <-l.done.Done():
		return nil, net.ErrClosed
	}
}

// run accepts until the listener below is closed.
func (l *listener) run() {
	defer l.work.Done()
	for l.done.Err() == nil {
		c, err := l.Listener.Accept()
		switch secured, ok := c.(*tls.Conn); {
		case err != nil:
			l.offer(accepted{err: err})
		case ok:
			l.work.Add(1)
			go func() {
				defer l.work.Done()
				l.offer(accepted{conn: l.handshake(secured)})
			}()
		default:
			l.offer(accepted{conn: &conn{Conn: c, gate: l.gate}})
		}
	}
}

// handshake finds out what a connection speaks. net/http knows those that speak HTTP/2 by their
// type, and tells what went wrong with those that speak nothing.
func (l *listener) handshake(c *tls.Conn) net.Conn {
	ctx, cancel := context.WithTimeout(l.done, l.gate.handshake)
	defer cancel()
	if c.HandshakeContext(ctx) != nil {
		return c
	}
	switch c.ConnectionState().NegotiatedProtocol {
	case "", "http/1.1", "http/1.0":
		return tlsConn{&conn{Conn: c, gate: l.gate}}
	}
	return c
}

func (l *listener) offer(a accepted) {
	select {
	case l.ready <- a:
	case <-l.done.Done():
		if a.conn != nil {
			_ = a.conn.Close() // nobody has seen it
		}
	}
}

// Close implements net.Listener. It returns when nothing of the listener runs any more.
func (l *listener) Close() error {
	l.stop()
	err := l.Listener.Close()
	l.begin.Do(func() {}) // nothing begins from now on
	l.work.Wait()
	return err
}
