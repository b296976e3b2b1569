package figures

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// audience is many connections that only read, held as bare descriptors: they take nothing of
// this process's memory worth speaking of, so that what it grows by is the server's.
type audience struct {
	epoll  int
	fds    []int
	frames []int // ends of events seen, by connection
	index  map[int32]int
	last   []byte // of each connection, whether the last byte read was a newline
	buf    []byte
	events []unix.EpollEvent
	bytes  int64 // read in all
}

// errQuiet means that nothing came for longer than the audience waits.
var errQuiet = errors.New("nothing came for too long")

// seat opens n connections and sends each its request.
func seat(addr string, n int, request func(i int) ([]byte, error)) (*audience, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	a := &audience{
		frames: make([]int, n), last: make([]byte, n), index: make(map[int32]int, n),
		buf: make([]byte, 64<<10), events: make([]unix.EpollEvent, 256),
	}
	if a.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	for i := range n {
		if err := a.connect(to, i, request); err != nil {
			a.close()
			return nil, fmt.Errorf("connection %d: %w", i+1, err)
		}
	}
	return a, nil
}

func (a *audience) connect(
	to netip.AddrPort, i int, request func(i int) ([]byte, error),
) error {
	text, err := request(i)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	a.fds = append(a.fds, fd)
	a.index[int32(fd)] = i
	err = unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	if err != nil {
		return err
	}
	for len(text) > 0 {
		n, err := unix.Write(fd, text)
		if err != nil {
			return err
		}
		text = text[n:]
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	return unix.EpollCtl(a.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{
		Events: unix.EPOLLIN, Fd: int32(fd),
	})
}

// await reads until every connection has seen so many more ends of events.
func (a *audience) await(more int) error {
	missing := len(a.fds)
	want := make([]int, len(a.fds))
	for i := range want {
		want[i] = a.frames[i] + more
	}
	for missing > 0 {
		n, err := unix.EpollWait(a.epoll, a.events, int(patience.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("%d connections wait: %w", missing, errQuiet)
		}
		for _, ev := range a.events[:n] {
			i := a.index[ev.Fd]
			before := a.frames[i]
			if err := a.read(int(ev.Fd), i); err != nil {
				return err
			}
			if before < want[i] && a.frames[i] >= want[i] {
				missing--
			}
		}
	}
	return nil
}

// read takes what a connection has and counts the empty lines in it, which end events.
func (a *audience) read(fd, i int) error {
	n, err := unix.Read(fd, a.buf)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return nil
	case err != nil:
		return err
	case n == 0:
		return errors.New("the server ended a stream")
	}
	a.bytes += int64(n)
	got := a.buf[:n]
	if a.last[i] == '\n' && got[0] == '\n' {
		a.frames[i]++
	}
	a.frames[i] += bytes.Count(got, []byte("\n\n"))
	a.last[i] = got[n-1]
	return nil
}

// close breaks every connection off, so that none stays behind in the system for a minute.
func (a *audience) close() {
	for _, fd := range a.fds {
		_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		_ = unix.Close(fd)
	}
	_ = unix.Close(a.epoll)
}

// allowFiles raises the limit of open files as far as the system lets it, and returns the limit.
func allowFiles(want uint64) uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	if l.Cur >= want {
		return l.Cur
	}
	raised := unix.Rlimit{Cur: want, Max: max(want, l.Max)}
	if unix.Setrlimit(unix.RLIMIT_NOFILE, &raised) == nil {
		return want
	}
	raised = unix.Rlimit{Cur: l.Max, Max: l.Max}
	if unix.Setrlimit(unix.RLIMIT_NOFILE, &raised) == nil {
		return l.Max
	}
	return l.Cur
}
