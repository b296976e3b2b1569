package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidemark-im/tidemark/httpapi"
)

type listenOptions struct {
	public           string
	admin            string // empty for none
	certificate, key string // files; empty for plain HTTP
}

// listeners are the open ports of a server.
type listeners struct {
	public net.Listener
	admin  net.Listener // nil for none
	scheme string
}

// listen opens the ports, before anything else is touched.
func listen(ctx context.Context, o listenOptions) (*listeners, error) {
	l := &listeners{scheme: "http"}
	var config *tls.Config
	if o.certificate != "" {
		pair, err := tls.LoadX509KeyPair(o.certificate, o.key)
		if err != nil {
			return nil, fmt.Errorf("certificate %s: %w", o.certificate, err)
		}
		l.scheme = "https"
		config = &tls.Config{
			Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
			NextProtos: []string{"h2", "http/1.1"},
		}
	}
	var err error
	var ports net.ListenConfig
	if l.public, err = ports.Listen(ctx, "tcp", o.public); err != nil {
		return nil, err
	}
	if config != nil {
		l.public = tls.NewListener(l.public, config)
	}
	if o.admin != "" {
		if l.admin, err = ports.Listen(ctx, "tcp", o.admin); err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

func (l *listeners) url() string { return l.scheme + "://" + l.public.Addr().String() }

func (l *listeners) adminURL() string {
	if l.admin == nil {
		return noListener
	}
	return "http://" + l.admin.Addr().String()
}

// close gives the ports up. It is safe to call after serve, which closes them too.
func (l *listeners) close() {
	_ = l.public.Close()
	if l.admin != nil {
		_ = l.admin.Close()
	}
}

// serve answers until ctx ends, then lets streams and requests end for as long as the timeout
// allows, and cuts off what is left.
func (l *listeners) serve(
	ctx context.Context, s *httpapi.Server, limits httpapi.Limits, timeout time.Duration,
	log *slog.Logger,
) error {
	public := logHTTP(log, s, limits)
	admin := logHTTP(log, s.AdminHandler(), limits)
	group, serving := errgroup.WithContext(ctx)
	group.Go(func() error { return ended(public.Serve(s.Listener(l.public))) })
	if l.admin != nil {
		group.Go(func() error { return ended(admin.Serve(l.admin)) })
	}
	group.Go(func() error {
		<-serving.Done() // asked to end, or a port broke
		log.Info("draining", "streams", s.Streams().Streams, "timeout", timeout)
		// What ended is ctx; draining has a time of its own.
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		err := errors.Join(s.Drain(drain), public.Shutdown(drain))
		if err != nil {
			log.Warn("connections cut off", "error", oneLine(err))
		}
		return errors.Join(public.Close(), admin.Close())
	})
	err := group.Wait()
	if err == nil {
		log.Info("ended")
	}
	return err
}

// ended drops the error that says that a server was asked to end.
func ended(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
