package sqlstore

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// giveUpUnanswered bounds how long something that was sent may stay unanswered: questions whether the
// other side is there are only asked while nothing is.
func giveUpUnanswered(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var err error
	refused := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT,
			int(silence.Milliseconds()))
	})
	if refused != nil {
		return refused
	}
	return err
}
