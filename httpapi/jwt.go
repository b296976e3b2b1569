package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"

	"github.com/tidemark-im/tidemark/readstate"
)

// MinSecret is the least length of a secret in bytes: that of the digest it keys.
const MinSecret = 32

// maxToken bounds a token before anything is done with it.
const maxToken = 8 << 10

// Algorithms that tokens may be signed with, by where the key comes from. A token cannot choose:
// one signed with a secret is never checked against a public key, and the other way round.
var (
	secretAlgorithms = []string{"HS256"}
	keyAlgorithms    = []string{"RS256", "ES256", "EdDSA"}
)

// JWTConfig says which tokens to believe. At least one secret or a key set is needed.
type JWTConfig struct {
	// Secrets are one or two, for rotation: the first one signs, both are believed.
	Secrets [][]byte
	// JWKS names a key set: a file, or an address that begins with http:// or https://, which
	// is read again every hour and when a token names an unknown key.
	JWKS string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// HTTP fetches the key set; nil is a client with a timeout.
	HTTP *http.Client
	// Log takes failures to read the key set again; nil discards them.
	Log *slog.Logger
}

// JWT believes signed tokens. It is safe for concurrent use. Close ends its goroutine, if any.
type JWT struct {
	secrets  jwt.VerificationKeySet
	keys     keyfunc.Keyfunc // nil without a key set
	parser   *jwt.Parser
	now      func() time.Time
	verified verified
	stop     context.CancelFunc
}

// Claims are what a token says.
type Claims struct {
	Workspace readstate.WorkspaceID
	Member    readstate.MemberID
	Role      Role
	Expires   time.Time
}

type wireClaims struct {
	Workspace string `json:"ws"`
	Role      string `json:"role,omitempty"`
	jwt.RegisteredClaims
}

// NewJWT makes an authenticator of signed tokens. It fails when a secret is too short or the key
// set cannot be read.
func NewJWT(cfg JWTConfig) (*JWT, error) {
	if len(cfg.Secrets) == 0 && cfg.JWKS == "" {
		return nil, errors.New("tokens: neither a secret nor a key set is given")
	}
	if len(cfg.Secrets) > 2 {
		return nil, errors.New("tokens: at most two secrets at once")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	j := &JWT{now: cfg.Now, stop: stop}
	var algorithms []string
	for _, secret := range cfg.Secrets {
		if len(secret) < MinSecret {
			stop()
			return nil, fmt.Errorf("tokens: a secret has %d bytes, at least %d are needed",
				len(secret), MinSecret)
		}
		j.secrets.Keys = append(j.secrets.Keys, secret)
		algorithms = secretAlgorithms
	}
	if cfg.JWKS != "" {
		keys, err := readKeys(ctx, cfg)
		if err != nil {
			stop()
			return nil, fmt.Errorf("tokens: key set %s: %w", cfg.JWKS, err)
		}
		j.keys = keys
		algorithms = append(algorithms[:len(algorithms):len(algorithms)], keyAlgorithms...)
	}
	j.parser = jwt.NewParser(
		jwt.WithValidMethods(algorithms), jwt.WithExpirationRequired(),
		jwt.WithStrictDecoding(), jwt.WithTimeFunc(cfg.Now),
	)
	return j, nil
}

func readKeys(ctx context.Context, cfg JWTConfig) (keyfunc.Keyfunc, error) {
	if !strings.HasPrefix(cfg.JWKS, "http://") && !strings.HasPrefix(cfg.JWKS, "https://") {
		raw, err := os.ReadFile(cfg.JWKS)
		if err != nil {
			return nil, err
		}
		return keyfunc.NewJWKSetJSON(json.RawMessage(raw))
	}
	failFirst := false
	client := cfg.HTTP
	if client == nil {
		client = &http.Client{Timeout: 10 * time.Second}
	}
	return keyfunc.NewDefaultOverrideCtx(ctx, []string{cfg.JWKS}, keyfunc.Override{
		Client: client, NoErrorReturnFirstHTTPReq: &failFirst,
		// A token with a made-up key id must not wait for the next refresh.
		RateLimitWaitMax: time.Millisecond,
		RefreshErrorHandlerFunc: func(u string) func(context.Context, error) {
			return func(_ context.Context, err error) {
				cfg.Log.Warn("the key set cannot be read again", "url", u, "error", err)
			}
		},
	})
}

// Close ends the refreshing of a key set.
func (j *JWT) Close() { j.stop() }

// Authenticate implements Authenticator.
func (j *JWT) Authenticate(r *http.Request) (Principal, error) {
	scheme, text, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || len(text) > maxToken {
		return Principal{}, fmt.Errorf("%w: no bearer token", ErrUnauthenticated)
	}
	sum := sha256.Sum256([]byte(text))
	if p, ok := j.verified.get(sum, j.now()); ok {
		return p, nil
	}
	var c wireClaims
	token, err := j.parser.ParseWithClaims(text, &c, j.key)
	switch {
	case errors.Is(err, jwt.ErrTokenExpired) && !errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return Principal{}, fmt.Errorf("%w at %s", ErrTokenExpired,
			c.ExpiresAt.UTC().Format(time.RFC3339))
	case err != nil || !token.Valid:
		// Why a token is not believed is nobody's business but its signer's.
		return Principal{}, fmt.Errorf("%w: the token is not valid", ErrUnauthenticated)
	}
	role, ok := ParseRole(c.Role)
	if !ok {
		return Principal{}, fmt.Errorf("%w: unknown role", ErrUnauthenticated)
	}
	p := Principal{
		Workspace: readstate.WorkspaceID(c.Workspace), Member: readstate.MemberID(c.Subject),
		Role: role, Expires: c.ExpiresAt.Time, Token: string(sum[:16]),
	}
	if err := p.check(); err != nil {
		return Principal{}, fmt.Errorf("%w: claims: %s", ErrUnauthenticated, err.Error())
	}
	if token.Method.Alg() == secretAlgorithms[0] {
		known := proof{who: p}
		if c.NotBefore != nil {
			known.notBefore = c.NotBefore.Time
		}
		j.verified.put(sum, known)
	}
	return p, nil
}

// Verified is how many tokens are remembered as verified, at most MaxVerified.
func (j *JWT) Verified() int { return j.verified.count() }

// key chooses the keys by the algorithm, which the parser has found among the allowed ones.
func (j *JWT) key(t *jwt.Token) (any, error) {
	if t.Method.Alg() == secretAlgorithms[0] {
		return j.secrets, nil
	}
	return j.keys.Keyfunc(t)
}

// SignToken signs claims with a secret. It is what the command line and embedders use; the
// server itself only verifies.
func SignToken(secret []byte, c Claims) (string, error) {
	if len(secret) < MinSecret {
		return "", fmt.Errorf("sign token: the secret has %d bytes, at least %d are needed",
			len(secret), MinSecret)
	}
	p := Principal{Workspace: c.Workspace, Member: c.Member, Role: c.Role}
	if err := p.check(); err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	if c.Expires.IsZero() {
		return "", errors.New("sign token: an expiry is needed")
	}
	claims := wireClaims{
		Workspace: string(c.Workspace),
		RegisteredClaims: jwt.RegisteredClaims{
			Subject: string(c.Member), ExpiresAt: jwt.NewNumericDate(c.Expires),
		},
	}
	if c.Role != RoleMember {
		claims.Role = c.Role.String()
	}
	return jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(secret)
}
