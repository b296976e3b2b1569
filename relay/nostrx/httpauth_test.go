package nostrx

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"
)

// An authorisation is good for one address, method, body and minute, and for its signer only.
func TestAuthorize(t *testing.T) {
	key, now := keyOf(t, 5), time.Unix(1_700_000_000, 0)
	const address = "https://relay.example/query"
	body := []byte(`[{}]`)
	header, err := key.Authorize("POST", address, body, now)
	if err != nil {
		t.Fatal(err)
	}
	e, err := CheckAuthorization(header, "POST", address, body, now.Add(authLeeway))
	if err != nil || e.PubKey != key.Public() {
		t.Fatalf("%v, %+v", err, e)
	}
	second, err := key.Authorize("POST", address, body, now)
	if err != nil || second == header {
		t.Errorf("the second in one second is the first (%v)", err)
	}
	forge := func(change func(*Event)) string {
		bad := e
		bad.Tags = append([]Tag(nil), e.Tags...)
		change(&bad)
		return "Nostr " + base64.StdEncoding.EncodeToString(signed(t, key, bad).Encode())
	}
	tampered := e
	tampered.Content = "x"
	for name, c := range map[string]struct {
		header, method, address, body string
		now                           time.Time
	}{
		"none":            {"", "POST", address, "[{}]", now},
		"another scheme":  {strings.Replace(header, "Nostr", "Bearer", 1), "POST", address, "[{}]", now},
		"no base64":       {"Nostr !", "POST", address, "[{}]", now},
		"no event":        {"Nostr e30=", "POST", address, "[{}]", now},
		"another method":  {header, "GET", address, "[{}]", now},
		"another address": {header, "POST", address + "x", "[{}]", now},
		"another body":    {header, "POST", address, "[{ }]", now},
		"too late":        {header, "POST", address, "[{}]", now.Add(authLeeway + time.Second)},
		"too early":       {header, "POST", address, "[{}]", now.Add(-authLeeway - time.Second)},
		"tampered": {"Nostr " + base64.StdEncoding.EncodeToString(tampered.Encode()), "POST", address,
			"[{}]", now},
		"another kind": {forge(func(e *Event) { e.Kind = KindAuth }), "POST", address, "[{}]", now},
		"two addresses": {forge(func(e *Event) { e.Tags = append(e.Tags, Tag{"u", address}) }), "POST",
			address, "[{}]", now},
		"with content": {forge(func(e *Event) { e.Content = "x" }), "POST", address, "[{}]", now},
	} {
		if _, err := CheckAuthorization(c.header, c.method, c.address, []byte(c.body), c.now); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
