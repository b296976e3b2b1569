package chaos

import (
	"net"
	"net/url"
	"sync"
	"testing"
)

// lossy is a way to a database that can be held up and cut.
type lossy struct {
	to       string
	listener net.Listener
	wg       sync.WaitGroup

	mu    sync.Mutex
	held  chan struct{} // closed when what is held up may go on; nil while nothing is
	conns map[net.Conn]struct{}
}

// newLossy returns a way to the database of a name, and the name by which it leads there.
func newLossy(t *testing.T, facts string) (*lossy, string) {
	t.Helper()
	u, err := url.Parse(facts)
	if err != nil {
		t.Fatal(err)
	}
	l := &lossy{to: u.Host, conns: map[net.Conn]struct{}{}}
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	u.Host = l.listener.Addr().String()
	l.wg.Go(l.accept)
	t.Cleanup(func() {
		_ = l.listener.Close()
		l.release()
		l.drop()
		l.wg.Wait()
	})
	return l, u.String()
}

func (l *lossy) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", l.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		l.mu.Lock()
		l.conns[near], l.conns[far] = struct{}{}, struct{}{}
		l.mu.Unlock()
		l.wg.Go(func() { l.carry(near, far) })
		l.wg.Go(func() { l.carry(far, near) })
	}
}

func (l *lossy) carry(from, to net.Conn) {
	defer func() {
		_, _ = from.Close(), to.Close()
		l.mu.Lock()
		delete(l.conns, from)
		l.mu.Unlock()
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		l.mu.Lock()
		held := l.held
		l.mu.Unlock()
		if held != nil {
			<-held
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// hold has nothing pass until release.
func (l *lossy) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(chan struct{})
	}
}

func (l *lossy) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held != nil {
		close(l.held)
		l.held = nil
	}
}

// drop ends every connection.
func (l *lossy) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = c.Close()
	}
}
