package framing_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// BenchmarkRequests asks over one connection: what the gate costs a request.
func BenchmarkRequests(b *testing.B) {
	fields := "Host: x\r\nUser-Agent: a browser of some length, as they all are; and more of it\r\n" +
		"Accept: */*\r\nAccept-Encoding: gzip, deflate, br\r\nOrigin: https://example.com\r\n" +
		"Authorization: Bearer " + strings.Repeat("x", 200) + "\r\n"
	for name, request := range map[string]string{
		"get":    "GET /boxes/a HTTP/1.1\r\n" + fields + "\r\n",
		"post":   "POST /elsewhere HTTP/1.1\r\n" + fields + "Content-Length: 500\r\n\r\n" + strings.Repeat("x", 500),
		"big":    "POST /elsewhere HTTP/1.1\r\n" + fields + "Content-Length: 200000\r\n\r\n" + strings.Repeat("x", 200_000),
		"chunks": "POST /elsewhere HTTP/1.1\r\n" + fields + "Transfer-Encoding: chunked\r\n\r\n1F4\r\n" + strings.Repeat("x", 500) + "\r\n0\r\n\r\n",
		"letter": "POST /boxes/a/letters HTTP/1.1\r\n" + fields + "Content-Length: 500\r\n\r\n" + strings.Repeat("x", 500),
	} {
		for _, gated := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/gate=%t", name, gated), func(b *testing.B) {
				g := newGate(b)
				h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if err := g.Check(r); err != nil {
						panic(err)
					}
					_, _ = io.Copy(io.Discard, r.Body)
					_, _ = io.WriteString(w, "done")
				})
				var address string
				if gated {
					address = start(b, g, h, nil)
				} else {
					address = startPlain(b, h)
				}
				c := dial(b, address)
				in := bufio.NewReader(c.Conn)
				b.ReportAllocs()
				for b.Loop() {
					c.say(request)
					r, err := http.ReadResponse(in, nil)
					if err != nil || r.StatusCode != 200 {
						b.Fatal(r, err)
					}
					_, _ = io.Copy(io.Discard, r.Body)
					r.Body.Close()
				}
			})
		}
	}
}

// forever is a connection on which one request comes again and again, a packet each.
type forever struct {
	script
	request []byte
}

func (f *forever) Read(p []byte) (int, error) { return copy(p, f.request), nil }

// BenchmarkHeads is what the gate itself does for a request, without a network or net/http.
func BenchmarkHeads(b *testing.B) {
	fields := "Host: x\r\nUser-Agent: a browser of some length, as they all are; and more of it\r\n" +
		"Accept: */*\r\nAccept-Encoding: gzip, deflate, br\r\nOrigin: https://example.com\r\n" +
		"Authorization: Bearer " + strings.Repeat("x", 200) + "\r\nContent-Length: 5\r\n\r\nhello"
	for name, line := range map[string]string{
		"get": "GET /boxes/a", "post": "POST /elsewhere", "escaped": "POST /els%65where", "letter": "POST /boxes/a/letters",
	} {
		b.Run(name, func(b *testing.B) {
			l := newGate(b).Listener(listenTo(&forever{request: []byte(line + " HTTP/1.1\r\n" + fields)}))
			defer l.Close()
			c, err := l.Accept()
			if err != nil {
				b.Fatal(err)
			}
			buffer := make([]byte, 4<<10)
			b.ReportAllocs()
			for b.Loop() {
				if n, err := c.Read(buffer); n < len(line) || err != nil {
					b.Fatal(n, err)
				}
			}
		})
	}
}

func startPlain(b *testing.B, h http.Handler) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: patience}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	b.Cleanup(func() { s.Close(); <-ended })
	return l.Addr().String()
}
