package outbox

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidemark-im/tidemark/facts"
)

// Addresses that no public server has are refused, in every way of writing them; allowed networks
// are not.
func TestPermits(t *testing.T) {
	for _, text := range []string{
		"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1",
		"172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "192.0.0.8",
		"192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.2.3",
		"240.0.0.1", "255.255.255.255", "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
		"::7f00:1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001::1", "2001:db8::1",
		"fc00::1", "fd12::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "100::1",
	} {
		ip := netip.MustParseAddr(text)
		if (Network{}).permits(ip) {
			t.Errorf("%s is allowed", text)
		}
		open := Network{Allow: []netip.Prefix{netip.PrefixFrom(ip.Unmap().WithZone(""), ip.Unmap().BitLen())}}
		if !open.permits(ip) {
			t.Errorf("%s is refused although it is allowed", text)
		}
	}
	for _, text := range []string{
		"1.1.1.1", "8.8.8.8", "172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1",
		"192.167.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8",
	} {
		if !(Network{}).permits(netip.MustParseAddr(text)) {
			t.Errorf("%s is refused", text)
		}
	}
	if (Network{}).permits(netip.Addr{}) {
		t.Error("no address is allowed")
	}
}

func TestCheckURL(t *testing.T) {
	for _, c := range []struct {
		url, want string
		n         Network
	}{
		{"https://example.com/hook?a=b", "", Network{}},
		{"https://example.com:8443", "", Network{}},
		{"https://8.8.8.8/", "", Network{}},
		{"http://example.com/", "https", Network{}},
		{"http://example.com/", "", Network{AllowHTTP: true}},
		{"ftp://example.com/", "https", Network{AllowHTTP: true}},
		{"example.com", "https", Network{}},
		{"https://", "no host", Network{}},
		{"https:///path", "no host", Network{}},
		{"https://u:p@example.com/", "user", Network{}},
		{"https://example.com/#x", "fragment", Network{}},
		{"https://127.0.0.1/", "not allowed", Network{}},
		{"https://[::1]:80/", "not allowed", Network{}},
		{"https://[::ffff:10.0.0.1]/", "not allowed", Network{}},
		{"https://127.0.0.1/", "", Network{Allow: AllowPrivate()}},
		{"https://example.com/" + strings.Repeat("x", MaxURLBytes), "longer", Network{}},
		{"https://exa mple.com/", "read", Network{}},
		{"", "https", Network{}},
	} {
		err := c.n.checkURL(c.url)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%q: %v", c.url, err)
		case c.want != "" && (!errors.Is(err, facts.ErrInvalid) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q: %v, want one about %q", c.url, err, c.want)
		}
	}
}

// The address that is dialled is looked at, not the name: a name that stands for a local address
// reaches nothing, whatever was known of it before.
func TestDialIsChecked(t *testing.T) {
	w, r := newWorld(t), newReceiver(t)
	at, err := url.Parse(r.URL)
	w.ok(err)
	named := "http://localhost:" + at.Port() + "/"
	b := w.outbox(func(o *Options) { o.Network = Network{AllowHTTP: true} })
	w.endpoint(b, "a0", named)
	w.post("t")
	w.rows(b)
	w.send(b)
	state, _ := b.Endpoint(t.Context(), space, "a0")
	if state.Streak != 1 || state.Error != errRefused.Error() || len(r.take()) != 0 {
		t.Fatalf("%+v", state)
	}
	w.clock.ms.Add(5000)
	open := w.outbox()
	w.send(open)
	if len(r.take()) != 1 {
		t.Error("an allowed network was not reached")
	}
}

// A proxy of the environment is not used: it would be dialled in the receiver's place.
func TestNoProxy(t *testing.T) {
	proxy := newReceiver(t)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	t.Setenv("NO_PROXY", "")
	w, r := newWorld(t), newReceiver(t)
	b := w.outbox()
	w.endpoint(b, "a0", r.URL)
	w.post("t")
	w.rows(b)
	w.send(b)
	if len(proxy.take()) != 0 || len(r.take()) != 1 {
		t.Error("the wake went through a proxy")
	}
}

// A server whose certificate nobody vouches for gets nothing.
func TestTLS(t *testing.T) {
	w := newWorld(t)
	taken := make(chan struct{}, 8)
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		taken <- struct{}{}
	}))
	server.Config.ErrorLog = nil
	defer server.Close()
	b := w.outbox()
	w.endpoint(b, "a0", server.URL)
	w.post("t")
	w.rows(b)
	w.send(b)
	if state, _ := b.Endpoint(t.Context(), space, "a0"); state.Streak != 1 || len(taken) != 0 {
		t.Fatalf("%+v", state)
	}
	w.clock.ms.Add(5000)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	b = w.outbox(func(o *Options) { o.Network = Network{Allow: AllowPrivate(), Roots: roots} })
	w.send(b)
	if len(taken) != 1 {
		t.Error("the wake did not arrive over TLS")
	}
}

func TestParseSecret(t *testing.T) {
	if key, err := ParseSecret(secretText); err != nil || string(key) != string(secretBytes) {
		t.Errorf("%q %v", key, err)
	}
	if _, err := ParseSecret(strings.TrimPrefix(secretText, SecretPrefix)); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", SecretPrefix, "short", SecretPrefix + "c2hvcnQ=", "%%%",
		SecretPrefix + strings.Repeat("QUFB", 22)} {
		if _, err := ParseSecret(bad); !errors.Is(err, facts.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		} else if bad != "" && len(bad) > 10 && strings.Contains(err.Error(), bad[6:]) {
			t.Errorf("the secret is in %q", err)
		}
	}
}

// The example of the standard's own text, so that its libraries check what is signed here.
func TestSignVector(t *testing.T) {
	key, err := ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	got := Sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Errors keep no address, which may hold a secret.
func TestReasons(t *testing.T) {
	secret := "s3cr3t"
	for _, err := range []error{
		&url.Error{Op: "Post", URL: "https://x/?" + secret, Err: errors.New("reset")},
		&url.Error{Op: "Post", URL: "https://x/?" + secret, Err: context.DeadlineExceeded},
		&url.Error{Op: "Post", URL: "https://x/?" + secret, Err: &net.OpError{Err: errRefused}},
	} {
		if got := reason(err); strings.Contains(got.Error(), secret) || got.Error() == "" {
			t.Errorf("%v", got)
		}
	}
	w := newWorld(t)
	b := w.outbox()
	w.endpoint(b, "a0", "http://127.0.0.1:1/?"+secret)
	w.post("t")
	w.rows(b)
	w.send(b)
	if state, _ := b.Endpoint(t.Context(), space, "a0"); strings.Contains(state.Error, secret) ||
		state.Error == "" {
		t.Errorf("%+v", state)
	}
}

// What cannot work is refused when the outbox is made.
func TestOptions(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(o *Options){
		"no store":       func(o *Options) { o.Store = nil },
		"no terms":       func(o *Options) { o.Terms = nil },
		"a bad network":  func(o *Options) { o.Network.Allow = []netip.Prefix{{}} },
		"a bad limit":    func(o *Options) { o.Limits.Burst = -1 },
		"a bad span":     func(o *Options) { o.Limits.Rescan = -1 },
		"a short lease":  func(o *Options) { o.Limits.LeaseFor = DefaultLimits().WakeTimeout },
		"a short stage":  func(o *Options) { o.Limits.StageTimeout = DefaultLimits().LeaseFor },
		"a long request": func(o *Options) { o.Limits.WakeTimeout = DefaultLimits().LeaseFor },
	} {
		o := Options{Store: w.store, Terms: w.termOf}
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	b, err := New(Options{Store: w.store, Terms: w.termOf})
	if err != nil || b.Limits != DefaultLimits() {
		t.Errorf("%+v %v", b.Limits, err)
	}
	bad := Endpoint{URL: "https://example.com/", Secret: "short"}
	if err := b.PutEndpoint(t.Context(), space, "a0", bad); !errors.Is(err, facts.ErrInvalid) {
		t.Errorf("a bad secret: %v", err)
	}
	good := Endpoint{URL: "https://example.com/", Secret: secretText}
	if err := b.PutEndpoint(t.Context(), space, "h0", good); !errors.Is(err, facts.ErrInvalid) {
		t.Errorf("a human: %v", err)
	}
	if err := b.PutEndpoint(t.Context(), space, "nobody", good); !errors.Is(err, facts.ErrNotFound) {
		t.Errorf("nobody: %v", err)
	}
	if err := b.PutEndpoint(t.Context(), "elsewhere", "a0", good); !errors.Is(err, facts.ErrNotFound) {
		t.Errorf("elsewhere: %v", err)
	}
}

// A connection is used again only where an answer names its request.
func TestConnections(t *testing.T) {
	const wakes = 10
	for name, c := range map[string]struct {
		http2 bool
		want  int32
	}{"HTTP/1.1": {false, wakes}, "HTTP/2": {true, 2}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var conns atomic.Int32
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			server.EnableHTTP2 = c.http2
			server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateNew {
					conns.Add(1)
				}
			}
			server.StartTLS()
			defer server.Close()
			roots := x509.NewCertPool()
			roots.AddCert(server.Certificate())
			b := w.outbox(func(o *Options) { o.Network.Roots = roots })
			w.endpoint(b, "a0", server.URL)
			for range wakes {
				w.post("t")
			}
			w.rows(b)
			w.send(b)
			if n := len(w.waiting("a0")); n != 0 || conns.Load() != c.want {
				t.Errorf("%d connections, %d wakes are left", conns.Load(), n)
			}
		})
	}
}
