package sqlstore

import (
	"net"
	"time"
)

// How long it may take to reach a server, and after how long a silent one is given up.
const (
	dialTimeout   = 10 * time.Second
	keepAliveIdle = 15 * time.Second
	keepAlives    = 3
	silence       = keepAliveIdle + keepAlives*keepAliveEvery
	// keepAliveEvery is the time between two questions whether the other side is there.
	keepAliveEvery = keepAliveIdle / keepAlives
)

// dialer reaches servers, and gives up connections to one that says nothing any more.
func dialer() *net.Dialer {
	return &net.Dialer{
		Timeout: dialTimeout,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: keepAliveIdle, Interval: keepAliveEvery, Count: keepAlives,
		},
		Control: giveUpUnanswered,
	}
}
