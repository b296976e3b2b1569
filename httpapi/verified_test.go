package httpapi_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/readstate"
)

func signFor(t *testing.T, m string, expires time.Time) string {
	t.Helper()
	token, err := httpapi.SignToken(secret, httpapi.Claims{
		Workspace: "W", Member: readstate.MemberID(m), Expires: expires,
	})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// A token that was verified once is believed again as long as it lasts, and no longer; nothing
// else is.
func TestVerifiedTokens(t *testing.T) {
	clock := newHandClock()
	j, err := httpapi.NewJWT(httpapi.JWTConfig{Secrets: [][]byte{secret}, Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	token := signFor(t, "A", clock.Now().Add(time.Minute))
	first, err := authenticate(j, token)
	if err != nil || j.Verified() != 1 {
		t.Fatalf("%v, %d remembered", err, j.Verified())
	}
	clock.advance(59 * time.Second)
	if again, err := authenticate(j, token); err != nil || again != first {
		t.Errorf("the second time %+v, %v, the first time %+v", again, err, first)
	}
	parts := strings.Split(token, ".")
	other := strings.Split(signFor(t, "B", clock.Now().Add(time.Hour)), ".")
	for what, forged := range map[string]string{
		"the claims of another": parts[0] + "." + other[1] + "." + parts[2],
		"another signature":     parts[0] + "." + parts[1] + "." + other[2],
		"a longer text":         token + "A",
	} {
		if _, err := authenticate(j, forged); !errors.Is(err, httpapi.ErrUnauthenticated) {
			t.Errorf("%s: %v", what, err)
		}
	}
	clock.advance(time.Second)
	if _, err := authenticate(j, token); !errors.Is(err, httpapi.ErrTokenExpired) {
		t.Errorf("after its end: %v", err)
	}
	if j.Verified() != 1 {
		t.Errorf("%d remembered", j.Verified())
	}
}

// A token that has begun to count does not count before that, should the clock go back.
func TestVerifiedTokenBeforeItsTime(t *testing.T) {
	clock := newHandClock()
	j, err := httpapi.NewJWT(httpapi.JWTConfig{Secrets: [][]byte{secret}, Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"sub": "A", "ws": "W", "nbf": clock.Now().Unix(), "exp": clock.Now().Add(time.Hour).Unix(),
	}).SignedString(secret)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := authenticate(j, token); err != nil {
		t.Fatal(err)
	}
	clock.advance(-2 * time.Second)
	if _, err := authenticate(j, token); !errors.Is(err, httpapi.ErrUnauthenticated) {
		t.Errorf("before its time: %v", err)
	}
}

// What a key set verified is verified again each time, since a key may be withdrawn.
func TestTokensOfKeySetsAreNotRemembered(t *testing.T) {
	keys := newKeySet(t)
	file := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(file, keys.json, 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := httpapi.NewJWT(httpapi.JWTConfig{JWKS: file})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for range 2 {
		if _, err := authenticate(j, signed(t, jwt.SigningMethodES256, "e", keys.ec)); err != nil {
			t.Fatal(err)
		}
	}
	if j.Verified() != 0 {
		t.Errorf("%d remembered", j.Verified())
	}
}

// The figure of remembered tokens is exported.
func TestVerifiedTokensAreCounted(t *testing.T) {
	h := newHarness(t)
	h.world("A", "B")
	before := metric(t, h, "tidemark_http_verified_tokens")
	h.want(200, "GET", "W/unread", h.tokenUntil("W", "A", httpapi.RoleMember, time.Now().Add(3*time.Hour)), nil)
	if after := metric(t, h, "tidemark_http_verified_tokens"); after == before || before == "0" {
		t.Errorf("%s tokens, %s before", after, before)
	}
}
