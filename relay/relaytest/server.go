package relaytest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Server is a Relay that listens.
type Server struct {
	*Relay
	URL string // ws:// and the address

	http   *http.Server
	served chan error
}

// Listen starts a relay at an address, as 127.0.0.1:0.
func Listen(ctx context.Context, address string, o Options) (*Server, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{
		Relay: New(o), URL: "ws://" + listener.Addr().String(),
		served: make(chan error, 1),
	}
	s.http = &http.Server{Handler: s.Relay, ReadHeaderTimeout: 10 * time.Second}
	go func() { s.served <- s.http.Serve(listener) }()
	return s, nil
}

// Close ends everything and returns when nothing runs any more.
func (s *Server) Close() error {
	s.cancel() // stalled requests end
	err := s.http.Close()
	s.Relay.Close()
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
