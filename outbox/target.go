package outbox

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/tidemark-im/tidemark/facts"
)

// errRefused means that an address may not be reached, whoever asks for it.
var errRefused = errors.New("address is not allowed")

// forbidden are the networks that no public server is in, and those through which such a network
// could be reached.
var forbidden = func() []netip.Prefix {
	var out []netip.Prefix
	for _, text := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
		"172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16",
		"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32",
		"2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
	} {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}()

// permits says whether an address may be dialled.
func (n Network) permits(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if !ip.IsValid() {
		return false
	}
	for _, p := range n.Allow {
		if p.Contains(ip) {
			return true
		}
	}
	for _, p := range forbidden {
		if p.Contains(ip) {
			return false
		}
	}
	return true
}

// checkURL says why an endpoint's address is not acceptable. What its name stands for is looked
// at when it is dialled, each time.
func (n Network) checkURL(text string) error {
	refuse := func(why string) error { return fmt.Errorf("%w: url %s", facts.ErrInvalid, why) }
	if len(text) > MaxURLBytes {
		return refuse(fmt.Sprintf("is longer than %d bytes", MaxURLBytes))
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return refuse("cannot be read")
	case u.Scheme == "http" && !n.AllowHTTP:
		return refuse("must begin with https")
	case u.Scheme != "https" && u.Scheme != "http":
		return refuse("must begin with https")
	case u.Hostname() == "":
		return refuse("has no host")
	case u.User != nil:
		return refuse("must not hold a user or password")
	case u.Fragment != "":
		return refuse("must not have a fragment")
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && !n.permits(ip) {
		return refuse("names an address that is not allowed")
	}
	return nil
}

// hostOf is what counts as one host: name and port.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = u.Scheme
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}

// newClient makes the client that wakes are sent with. It follows no redirect and no proxy, and
// looks at every address it is about to connect to, so that a name that changes what it stands
// for reaches nothing it should not.
func newClient(n Network, l Limits) *http.Client {
	dialer := &net.Dialer{
		Timeout: l.WakeTimeout, KeepAlive: 30 * time.Second,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || !n.permits(at.Addr()) {
				return errRefused
			}
			return nil
		},
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: n.Roots},
			TLSHandshakeTimeout:    l.WakeTimeout,
			ResponseHeaderTimeout:  l.WakeTimeout,
			MaxResponseHeaderBytes: maxHeaderBytes,
			DisableCompression:     true,
			ForceAttemptHTTP2:      true,
			MaxIdleConns:           2 * (l.Senders + l.SlowSenders),
			MaxIdleConnsPerHost:    l.PerHost,
			IdleConnTimeout:        90 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
