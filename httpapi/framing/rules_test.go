package framing_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// breaches are heads of the route that is held to the rules, without their request line, each with
// a part of what is said about it.
var breaches = map[string]struct{ head, says string }{
	"empty transfer encoding":    {"Host: x\r\nContent-Length: 2\r\nTransfer-Encoding:\r\n", "Transfer-Encoding"},
	"blank transfer encoding":    {"Host: x\r\nContent-Length: 2\r\nTransfer-Encoding: \t \r\n", "Transfer-Encoding"},
	"chunked":                    {"Host: x\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding"},
	"chunked in other letters":   {"Host: x\r\ntRANSFER-eNCODING: cHUNKED\r\n", "Transfer-Encoding"},
	"chunked beside a length":    {"Host: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding"},
	"chunked twice":              {"Host: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding"},
	"chunked and something":      {"Host: x\r\nTransfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding"},
	"identity":                   {"Host: x\r\nContent-Length: 2\r\nTransfer-Encoding: identity\r\n", "Transfer-Encoding"},
	"with trailers":              {"Host: x\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Length\r\n", "Transfer-Encoding"},
	"no length":                  {"Host: x\r\n", "missing"},
	"no length and no host":      {"", "missing"},
	"two lengths":                {"Host: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n", "more than one"},
	"two equal lengths":          {"Host: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n", "more than one"},
	"two in other letters":       {"Host: x\r\nContent-Length: 2\r\ncontent-length: 2\r\n", "more than one"},
	"a list of lengths":          {"Host: x\r\nContent-Length: 2, 2\r\n", "decimal"},
	"a list of other lengths":    {"Host: x\r\nContent-Length: 2,3\r\n", "decimal"},
	"an empty length":            {"Host: x\r\nContent-Length:\r\n", "decimal"},
	"a negative length":          {"Host: x\r\nContent-Length: -2\r\n", "decimal"},
	"a signed length":            {"Host: x\r\nContent-Length: +2\r\n", "decimal"},
	"a hexadecimal length":       {"Host: x\r\nContent-Length: 0x2\r\n", "decimal"},
	"a length in words":          {"Host: x\r\nContent-Length: two\r\n", "decimal"},
	"a fraction":                 {"Host: x\r\nContent-Length: 2.0\r\n", "decimal"},
	"an exponent":                {"Host: x\r\nContent-Length: 2e0\r\n", "decimal"},
	"two words":                  {"Host: x\r\nContent-Length: 2 2\r\n", "decimal"},
	"digits of another script":   {"Host: x\r\nContent-Length: \u0662\r\n", "decimal"},
	"zeros before it":            {"Host: x\r\nContent-Length: 02\r\n", "decimal"},
	"an underscore in it":        {"Host: x\r\nContent-Length: 0_2\r\n", "decimal"},
	"a length above the bound":   {"Host: x\r\nContent-Length: 1025\r\n", "1024 bytes"},
	"a huge length":              {"Host: x\r\nContent-Length: 9223372036854775807\r\n", "1024 bytes"},
	"beyond 63 bits":             {"Host: x\r\nContent-Length: 9223372036854775808\r\n", "1024 bytes"},
	"beyond 64 bits":             {"Host: x\r\nContent-Length: 18446744073709551618\r\n", "1024 bytes"},
	"a thousand digits":          {"Host: x\r\nContent-Length: " + strings.Repeat("9", 1000) + "\r\n", "1024 bytes"},
	"a thousand zeros":           {"Host: x\r\nContent-Length: " + strings.Repeat("0", 1000) + "2\r\n", "decimal"},
	"a fold":                     {"Host: x\r\nContent-Length: 2\r\nX: a\r\n b\r\n", "folded"},
	"a folded length":            {"Host: x\r\nContent-Length:\r\n 2\r\n", "folded"},
	"a folded encoding":          {"Host: x\r\nContent-Length: 2\r\nTransfer-Encoding:\r\n chunked\r\n", "folded"},
	"an encoding in a fold":      {"Host: x\r\nContent-Length: 2\r\nX: a\r\n\tTransfer-Encoding: chunked\r\n", "folded"},
	"a fold at the beginning":    {" Host: x\r\nContent-Length: 2\r\n", "folded"},
	"a bare line feed":           {"Host: x\nContent-Length: 2\r\n", "CRLF"},
	"an encoding behind one":     {"Host: x\r\nX: a\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n", "CRLF"},
	"a bare carriage return":     {"Host: x\r\nX: a\rTransfer-Encoding: chunked\r\nContent-Length: 2\r\n", "control"},
	"two carriage returns":       {"Host: x\r\nContent-Length: 2\r\r\n", "control"},
	"a zero byte":                {"Host: x\r\nContent-Length: 2\x00\r\n", "control"},
	"a vertical tab":             {"Host: x\r\nContent-Length: 2\r\nTransfer-Encoding: \x0bchunked\r\n", "control"},
	"a space before the colon":   {"Host: x\r\nContent-Length : 2\r\n", "name"},
	"an encoding with a space":   {"Host: x\r\nContent-Length: 2\r\nTransfer-Encoding : chunked\r\n", "name"},
	"a tab before the colon":     {"Host: x\r\nContent-Length\t: 2\r\n", "name"},
	"a name that is none":        {"Host: x\r\nContent-Length: 2\r\n: chunked\r\n", "name"},
	"a name with a zero byte":    {"Host: x\r\nContent-Length: 2\r\nTransfer-Encoding\x00: chunked\r\n", "name"},
	"a line without a colon":     {"Host: x\r\nContent-Length: 2\r\nTransfer-Encoding chunked\r\n", "no field"},
	"a mark of the client's own": {"tidemark-framing: 0123456789abcdef0123456789abcdef\r\nHost: x\r\n", "missing"},
}

// Each breach is answered with 400 whatever comes behind it, in its turn behind an earlier request
// of the same connection, which is closed then; and the server goes on serving others.
//
// covers: IN-117 IN-118 IN-119 IN-120 IN-124 IN-125
func TestBreaches(t *testing.T) {
	g := newGate(t)
	h := &handler{gate: g}
	address := start(t, g, h, nil)
	for what, b := range breaches {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			request := "POST /boxes/a/letters HTTP/1.1\r\n" + b.head + "\r\n"
			for _, behind := range []string{
				"", "{}", "2\r\n{}\r\n0\r\n\r\n", "{}GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
				"0\r\n\r\nPOST /boxes/smuggled/letters HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
			} {
				c := dial(t, address)
				c.say("GET /before HTTP/1.1\r\nHost: x\r\n\r\n" + request + behind)
				c.answers(200, "GET /before")
				if status, body, closes := c.answer(); status != 400 || !closes || !strings.Contains(body, b.says) {
					t.Errorf("before %q: %d %s, closes %t", behind, status, body, closes)
				}
				c.ends()
			}
			c := dial(t, address)
			c.say(letter("{}"))
			c.answers(200, `"{}"`)
		})
	}
	t.Cleanup(func() {
		for _, got := range h.seen() {
			if got != `GET /before ""` && got != `POST /boxes/a/letters "{}"` {
				t.Errorf("what should not have arrived: %s", got)
			}
		}
	})
}

// What is as it should be arrives, in any of the forms that a client may choose.
//
// covers: IN-116
func TestWhatIsRight(t *testing.T) {
	g := newGate(t)
	h := &handler{gate: g}
	c := dial(t, start(t, g, h, nil))
	for _, head := range []string{
		"Host: x\r\nContent-Length: 2\r\n", "Host: x\r\ncontent-LENGTH:2\r\n", "Host: x\r\nContent-Length: \t 2 \t\r\n",
		"Content-Length: 2\r\nHost: x\r\nX-Transfer-Encoding: chunked\r\nTransfer_Encoding: chunked\r\n",
		"Host: x\r\nContent-Length: 2\r\nTE: trailers\r\nTrailer: X\r\nX: \xff\r\n",
		"Host: x\r\nContent-Length: 2\r\nUpgrade: h2c\r\nConnection: upgrade\r\n",
		"Host: x\r\nContent-Length: 2\r\nTidemark-Framing: of the client\r\n",
		"Host: x\r\nContent-Length: 2\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n",
	} {
		c.say("POST /boxes/a/letters HTTP/1.1\r\n" + head + "\r\n{}")
		c.answers(200, `POST /boxes/a/letters "{}"`)
	}
	full := strings.Repeat("x", maxBody)
	for _, body := range []string{"", full, "\r\n\r\n"} {
		c.say(letter(body))
		c.answers(200, fmt.Sprintf("%q", body))
	}
}

// The routes are found however their addresses are written, and in no other.
func TestAddresses(t *testing.T) {
	g := newGate(t)
	h := &handler{gate: g}
	address := start(t, g, h, nil)
	for line, held := range map[string]bool{
		"POST /boxes/a/letters HTTP/1.1":                 true,
		"POST /boxes/a/letters HTTP/1.0":                 true,
		"POST /boxes/a/letters?x=/y HTTP/1.1":            true,
		"POST /boxes/a%2Fb/letters HTTP/1.1":             true,
		"POST /boxes/%2E%2E/letters HTTP/1.1":            true,
		"POST /%62oxes/a/%6Cetter%73 HTTP/1.1":           true,
		"POST /boxes/../letters HTTP/1.1":                true,
		"POST /boxes/\"/letters HTTP/1.1":                true,
		"POST http://x/boxes/a/letters HTTP/1.1":         true,
		"POST HTTP://other:1/boxes/a/letters?q HTTP/1.1": true,
		"POST /boxes/a:open HTTP/1.1":                    true,
		"POST /%62oxes/a:open HTTP/1.1":                  true,
		"POST /boxes/a%3Aopen HTTP/1.1":                  false,
		"POST /boxes/:open HTTP/1.1":                     false,
		"POST /boxes//letters HTTP/1.1":                  false,
		"POST //boxes/a/letters HTTP/1.1":                false,
		"POST /boxes/a//letters HTTP/1.1":                false,
		"POST /boxes/a/letters/ HTTP/1.1":                false,
		"POST /boxes/a/b/letters HTTP/1.1":               false,
		"POST /boxes/a/../a/letters HTTP/1.1":            false,
		"POST /boxes/a/Letters HTTP/1.1":                 false,
		"POST /boxes/a/letters%20 HTTP/1.1":              false,
		"POST /boxes/a/letters%252F HTTP/1.1":            false,
		"PUT /boxes/a/letters HTTP/1.1":                  false,
		"post /boxes/a/letters HTTP/1.1":                 false,
		"POST /?/boxes/a/letters HTTP/1.1":               false,
	} {
		c := dial(t, address)
		c.say(line + "\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}")
		status, body, _ := c.answer()
		if want := map[bool]int{true: 400, false: 200}[held]; status != want {
			t.Errorf("%s: %d %s, want %d", line, status, body, want)
		}
		// It is the length that is refused, and not the address.
		c = dial(t, address)
		c.say(line + "\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody")
		c.answers(200, `"body"`)
	}
	// Nobody understands these, the gate included.
	for _, line := range []string{
		"POST  /boxes/a/letters HTTP/1.1", "POST\t/boxes/a/letters HTTP/1.1", "POST /boxes/a/letters  HTTP/1.1",
		"POST /boxes/a/letters", "POST /boxes/a/letters HTTP/1.1 ", " POST /boxes/a/letters HTTP/1.1",
		"POST /boxes/a/letters\rHTTP/1.1", "POST boxes/a/letters HTTP/1.1", "POST /boxes/%zz/letters HTTP/1.1",
		"POST /boxes/a/letters HTTP/1", "POST /boxes/a/letters http/1.1", "POST /boxes/a\x00/letters HTTP/1.1",
	} {
		c := dial(t, address)
		c.say(line + "\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}" + letter("behind"))
		if status, body, closes := c.answer(); status != 400 || !closes {
			t.Errorf("%q: %d %s", line, status, body)
		}
		c.ends()
	}
	c := dial(t, address)
	c.say("POST /boxes/a/letters HTTP/1.7\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
	c.answers(400, "not certain")
	c = dial(t, address)
	c.say("POST /boxes/a/letters HTTP/1.1\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
	c.answers(400, "CRLF")
	c = dial(t, address)
	c.say("POST /boxes/a/letters HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\n{}")
	c.answers(400, "CRLF")
	for _, got := range h.seen() {
		if strings.Contains(got, "behind") {
			t.Errorf("what should not have arrived: %s", got)
		}
	}
}

// A number is all that a length costs, however large it is.
//
// covers: IN-120
func TestHugeLengthsCostNothing(t *testing.T) {
	g := newGate(t)
	address := start(t, g, &handler{gate: g}, nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const times = 20
	for range times {
		c := dial(t, address)
		c.say("POST /boxes/a/letters HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775807\r\n\r\n")
		c.answers(400, "above 1024 bytes")
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / times; each > 64<<10 {
		t.Errorf("%d bytes were allocated for each", each)
	}
}

// A head that does not end is refused once it is longer than any may be. Elsewhere net/http does so.
func TestHugeHeads(t *testing.T) {
	g := newGate(t)
	h := &handler{gate: g}
	address := start(t, g, h, nil)
	field := "X: " + strings.Repeat("x", 60<<10) + "\r\n"
	for line, want := range map[string]int{
		"POST /boxes/a/letters": 400, "POST /elsewhere": 431, "GET /" + strings.Repeat("x", 2<<20): 431,
	} {
		c := dial(t, address)
		go func() { // what the server does not read any more cannot be written
			_, _ = c.Write([]byte(line + " HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n" + strings.Repeat(field, 20) + "\r\n{}"))
		}()
		if status, body, closes := c.answer(); status != want || !closes {
			t.Errorf("%.30s: %d %s, want %d", line, status, body, want)
		}
	}
	if got := h.seen(); len(got) > 0 {
		t.Errorf("what should not have arrived: %.100s", got)
	}
}
