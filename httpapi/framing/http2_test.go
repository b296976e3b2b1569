package framing_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// Frames and flags of HTTP/2, as far as these tests need them, RFC 9113 section 6.
const (
	frameData, frameHeaders, frameReset, frameSettings, frameGoAway = 0, 1, 3, 4, 7

	endStream, endHeaders = 1, 4
)

func frame(kind, flags byte, stream uint32, payload string) string {
	head := make([]byte, 9)
	head[1], head[2] = byte(len(payload)>>8), byte(len(payload))
	head[3], head[4] = kind, flags
	binary.BigEndian.PutUint32(head[5:], stream)
	return string(head) + payload
}

// literal is a field that is written out, RFC 7541 section 6.2.2.
func literal(name, value string) string {
	return "\x00" + string([]byte{byte(len(name))}) + name + string([]byte{byte(len(value))}) + value
}

// startHTTP2 serves HTTP/2 without TLS, beside HTTP/1.
func startHTTP2(t *testing.T, h *handler) (address string) {
	t.Helper()
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, Protocols: &protocols, ReadHeaderTimeout: patience}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(h.gate.Listener(l)) }()
	t.Cleanup(func() { s.Close(); <-ended })
	return l.Addr().String()
}

// verdict reads frames until the first stream is answered or reset. Statuses are fields that HPACK
// has numbers for.
func (c *client) verdict() string {
	c.t.Helper()
	for {
		head := make([]byte, 9)
		if _, err := io.ReadFull(c.in, head); err != nil {
			c.t.Fatal(err)
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(c.in, payload); err != nil {
			c.t.Fatal(err)
		}
		switch head[3] {
		case frameHeaders:
			if status := map[byte]string{0x88: "200", 0x8c: "400"}[payload[0]]; status != "" {
				return status
			}
			c.t.Fatalf("a head that begins with %#x", payload[0])
		case frameReset, frameGoAway:
			return "reset"
		}
	}
}

// What HTTP/2 has no use for, or says twice, is refused there as well, and so is a length that is
// not that of the body.
//
// covers: IN-116 IN-117 IN-119 IN-122
func TestFieldsOfHTTP2(t *testing.T) {
	g := newGate(t)
	h := &handler{gate: g}
	address := startHTTP2(t, h)
	for what, c := range map[string]struct{ fields, want string }{
		"one length":              {literal("content-length", "2"), "200"},
		"no length":               {"", "400"},
		"equal lengths":           {literal("content-length", "2") + literal("content-length", "2"), "400 reset"},
		"two lengths":             {literal("content-length", "2") + literal("content-length", "3"), "400 reset"},
		"a list":                  {literal("content-length", "2, 2"), "400 reset"},
		"a sign":                  {literal("content-length", "+2"), "400 reset"},
		"too much":                {literal("content-length", "1025"), "400 reset"},
		"less than there is":      {literal("content-length", "1"), "400 reset"},
		"more than there is":      {literal("content-length", "3"), "400 reset"},
		"chunked":                 {literal("content-length", "2") + literal("transfer-encoding", "chunked"), "400 reset"},
		"empty transfer encoding": {literal("content-length", "2") + literal("transfer-encoding", ""), "400 reset"},
	} {
		conn := dial(t, address)
		conn.say("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(frameSettings, 0, 0, "") +
			frame(frameHeaders, endHeaders, 1, literal(":method", "POST")+literal(":scheme", "http")+
				literal(":authority", "x")+literal(":path", "/boxes/a/letters")+c.fields) +
			frame(frameData, endStream, 1, "{}"))
		if got := conn.verdict(); !strings.Contains(c.want, got) {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
	if got := h.seen(); len(got) != 1 {
		t.Errorf("what arrived: %q", got)
	}
}

// Whole clients of HTTP/2 without TLS, beside those of HTTP/1.
func TestOverHTTP2WithoutTLS(t *testing.T) {
	h := &handler{gate: newGate(t)}
	address := startHTTP2(t, h)
	c := dial(t, address)
	c.say("POST /boxes/a/letters HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}")
	c.answers(400, "more than one")
	var only http.Protocols
	only.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &only}
	defer transport.CloseIdleConnections()
	checkHTTP2(t, transport, "http://"+address)
}
