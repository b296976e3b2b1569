package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The program itself decides how long a request to an inbox is before anything else reads it, with
// and without TLS, and goes on serving.
//
// covers: IN-118 IN-119 IN-120 IN-125
func TestServeHoldsLengthsToTheRules(t *testing.T) {
	cert, key, pool := certificate(t)
	secret := secretFile(t, testSecret)
	for scheme, flags := range map[string][]string{"http": nil, "https": {"--tls-cert", cert, "--tls-key", key}} {
		db, _ := database(t)
		s := serve(t, append([]string{db, "--jwt-secret-file", secret}, flags...)...)
		address := strings.TrimPrefix(s.url, scheme+"://")
		service := sign(t, secret, "--ws", "w", "--sub", "backend", "--role", "service")
		for _, lengths := range []string{
			"Content-Length: 2\r\nContent-Length: 2", "Content-Length: 2\r\nTransfer-Encoding:",
			"Content-Length: 99999999999999999999",
		} {
			for _, path := range []string{"inbox/messages", "inbox:open", "inbox/acks"} {
				var conn net.Conn
				var err error
				if scheme == "https" {
					conn, err = tls.Dial("tcp", address, &tls.Config{RootCAs: pool})
				} else {
					conn, err = net.Dial("tcp", address)
				}
				if err != nil {
					t.Fatal(err)
				}
				conn.SetDeadline(time.Now().Add(10 * time.Second))
				fmt.Fprintf(conn, "POST /api/v1/workspaces/w/members/m/%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
					"Content-Type: application/json\r\n%s\r\n\r\n{}", path, service, lengths)
				r, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(r.Body)
				r.Body.Close()
				conn.Close()
				if r.StatusCode != 400 || !r.Close || !strings.Contains(string(body), `"code":"invalid_request"`) {
					t.Errorf("%s, %s, %q: %s %s", scheme, path, lengths, r.Status, body)
				}
			}
		}
		if scheme == "http" {
			if n := unreadAfterPrepare(t, s.url, secret); n != "0" {
				t.Errorf("unread %s", n)
			}
		}
		s.end(t)
	}
}

func unreadAfterPrepare(t *testing.T, url, secret string) string {
	t.Helper()
	_, alice := prepare(t, url, secret)
	return unreadOf(t, url, alice)
}
