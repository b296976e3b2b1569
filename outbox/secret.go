package outbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemark-im/tidemark/facts"
)

// SecretPrefix may stand before a secret, so that people recognise it.
const SecretPrefix = "whsec_"

// ParseSecret reads a signing secret: base64 of MinSecretBytes to MaxSecretBytes random bytes,
// with or without SecretPrefix. It is facts.ErrInvalid otherwise; the secret is never in the
// error's text.
func ParseSecret(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, SecretPrefix))
	if err != nil {
		return nil, fmt.Errorf("%w: secret must be base64", facts.ErrInvalid)
	}
	if len(key) < MinSecretBytes || len(key) > MaxSecretBytes {
		return nil, fmt.Errorf("%w: secret must hold %d to %d bytes", facts.ErrInvalid,
			MinSecretBytes, MaxSecretBytes)
	}
	return key, nil
}

// Sign is the value of the header webhook-signature for a body sent at a time, in seconds.
func Sign(secret []byte, id string, at int64, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(id + "." + strconv.FormatInt(at, 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
