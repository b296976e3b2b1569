package httpapi_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/tidemark-im/tidemark/httpapi"
)

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// keySet is a set of public keys with a private one of each kind.
type keySet struct {
	rsa  *rsa.PrivateKey
	ec   *ecdsa.PrivateKey
	ed   ed25519.PrivateKey
	json []byte
}

func newKeySet(t *testing.T) *keySet {
	t.Helper()
	var k keySet
	var err error
	if k.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	if k.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	var public ed25519.PublicKey
	if public, k.ed, err = ed25519.GenerateKey(rand.Reader); err != nil {
		t.Fatal(err)
	}
	point, err := k.ec.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	k.json, err = json.Marshal(object{"keys": []object{
		{"kty": "RSA", "kid": "r", "alg": "RS256", "n": b64(k.rsa.N.Bytes()), "e": b64(big.NewInt(int64(k.rsa.E)).Bytes())},
		{"kty": "EC", "kid": "e", "alg": "ES256", "crv": "P-256", "x": b64(point[1:33]), "y": b64(point[33:])},
		{"kty": "OKP", "kid": "o", "alg": "EdDSA", "crv": "Ed25519", "x": b64(public)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return &k
}

func signed(t *testing.T, method jwt.SigningMethod, kid string, key any) string {
	t.Helper()
	token := jwt.NewWithClaims(method, jwt.MapClaims{
		"sub": "A", "ws": "W", "exp": time.Now().Add(time.Hour).Unix(),
	})
	token.Header["kid"] = kid
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func authenticate(j *httpapi.JWT, token string) (httpapi.Principal, error) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "bearer "+token)
	return j.Authenticate(r)
}

func TestKeySets(t *testing.T) {
	keys := newKeySet(t)
	file := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(file, keys.json, 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(keys.json)
	}))
	defer server.Close()
	for _, source := range []string{file, server.URL} {
		client := server.Client()
		j, err := httpapi.NewJWT(httpapi.JWTConfig{JWKS: source, HTTP: client})
		if err != nil {
			t.Fatal(err)
		}
		for what, token := range map[string]string{
			"RS256": signed(t, jwt.SigningMethodRS256, "r", keys.rsa),
			"ES256": signed(t, jwt.SigningMethodES256, "e", keys.ec),
			"EdDSA": signed(t, jwt.SigningMethodEdDSA, "o", keys.ed),
		} {
			if p, err := authenticate(j, token); err != nil || p.Member != "A" || p.Workspace != "W" {
				t.Errorf("%s: %+v %v", what, p, err)
			}
		}
		other := newKeySet(t)
		for what, token := range map[string]string{
			"RS384":          signed(t, jwt.SigningMethodRS384, "r", keys.rsa),
			"PS256":          signed(t, jwt.SigningMethodPS256, "r", keys.rsa),
			"a secret":       signed(t, jwt.SigningMethodHS256, "r", secret),
			"modulus as key": signed(t, jwt.SigningMethodHS256, "r", keys.rsa.N.Bytes()),
			"key set as key": signed(t, jwt.SigningMethodHS256, "r", keys.json),
			"another key":    signed(t, jwt.SigningMethodRS256, "r", other.rsa),
			"unknown kid":    signed(t, jwt.SigningMethodRS256, "x", other.rsa),
			"kid of another": signed(t, jwt.SigningMethodRS256, "e", keys.rsa),
			"algorithm none": signed(t, jwt.SigningMethodNone, "r", jwt.UnsafeAllowNoneSignatureType),
		} {
			if _, err := authenticate(j, token); !errors.Is(err, httpapi.ErrUnauthenticated) {
				t.Errorf("%s: %v", what, err)
			}
		}
		j.Close()
		client.CloseIdleConnections()
	}
}

// A secret beside a key set does not let tokens choose which of the two they are checked with.
func TestSecretBesideAKeySet(t *testing.T) {
	keys := newKeySet(t)
	file := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(file, keys.json, 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := httpapi.NewJWT(httpapi.JWTConfig{Secrets: [][]byte{secret}, JWKS: file})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for what, token := range map[string]string{
		"secret": signed(t, jwt.SigningMethodHS256, "", secret),
		"key":    signed(t, jwt.SigningMethodRS256, "r", keys.rsa),
	} {
		if _, err := authenticate(j, token); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	forged := signed(t, jwt.SigningMethodHS256, "r", keys.rsa.N.Bytes())
	if _, err := authenticate(j, forged); !errors.Is(err, httpapi.ErrUnauthenticated) {
		t.Errorf("forged: %v", err)
	}
}

func TestSettingsOfTokensAreChecked(t *testing.T) {
	for what, cfg := range map[string]httpapi.JWTConfig{
		"nothing":       {},
		"short secret":  {Secrets: [][]byte{[]byte("short")}},
		"three secrets": {Secrets: [][]byte{secret, secret, secret}},
		"no file":       {JWKS: filepath.Join(t.TempDir(), "missing")},
		"no server":     {JWKS: "http://127.0.0.1:1/keys"},
	} {
		if j, err := httpapi.NewJWT(cfg); err == nil {
			j.Close()
			t.Errorf("%s: taken", what)
		}
	}
	expires := time.Now().Add(time.Hour)
	for what, c := range map[string]httpapi.Claims{
		"no member":        {Workspace: "W", Expires: expires},
		"no workspace":     {Member: "A", Expires: expires},
		"no expiry":        {Workspace: "W", Member: "A"},
		"all as a member":  {Workspace: "*", Member: "A", Expires: expires},
		"all as a service": {Workspace: "*", Member: "A", Role: httpapi.RoleService, Expires: expires},
		"a long id":        {Workspace: "W", Member: httpapi.Principal{}.Member + "\x00", Expires: expires},
	} {
		if _, err := httpapi.SignToken(secret, c); err == nil {
			t.Errorf("%s: signed", what)
		}
	}
	if _, err := httpapi.SignToken([]byte("short"), httpapi.Claims{Workspace: "W", Member: "A", Expires: expires}); err == nil {
		t.Error("signed with a short secret")
	}
	token, err := httpapi.SignToken(secret, httpapi.Claims{
		Workspace: "*", Member: "root", Role: httpapi.RoleAdmin, Expires: expires,
	})
	if err != nil || strings.Count(token, ".") != 2 {
		t.Errorf("%q %v", token, err)
	}
}
