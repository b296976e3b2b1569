package nostrx

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/btcsuite/btcd/btcec/v2"
	nostr "github.com/nbd-wtf/go-nostr"
	"github.com/nbd-wtf/go-nostr/nip44"
)

// ErrKey says that a text is no secret key. The text is never part of the message.
var ErrKey = errors.New("not a secret key: 64 hexadecimal digits of a number within the curve's order")

// PubKey is an x-only public key as 64 lower-case hexadecimal digits.
type PubKey string

// Key is the identity of the viewer: it signs and encrypts to itself, and nothing hands its secret
// out. The zero value is no key. It is safe for concurrent use.
type Key struct {
	secret string // 64 lower-case hexadecimal digits
	public PubKey
	self   [32]byte // the NIP-44 conversation key with oneself
}

// ParseKey reads 64 hexadecimal digits of either case, with white space around them.
func ParseKey(text string) (*Key, error) {
	secret := strings.ToLower(strings.TrimSpace(text))
	raw, err := hex.DecodeString(secret)
	if err != nil || len(raw) != 32 {
		return nil, ErrKey
	}
	var scalar btcec.ModNScalar
	if scalar.SetByteSlice(raw) || scalar.IsZero() {
		return nil, ErrKey
	}
	public, err := nostr.GetPublicKey(secret)
	if err != nil {
		return nil, ErrKey
	}
	self, err := nip44.GenerateConversationKey(public, secret)
	if err != nil {
		return nil, ErrKey
	}
	return &Key{secret: secret, public: PubKey(public), self: self}, nil
}

// NewKey makes a key of random bytes.
func NewKey() (*Key, error) {
	for {
		var raw [32]byte
		if _, err := rand.Read(raw[:]); err != nil {
			return nil, fmt.Errorf("make a key: %w", err)
		}
		if key, err := ParseKey(hex.EncodeToString(raw[:])); err == nil {
			return key, nil // of 2^128 numbers, one is out of the order
		}
	}
}

// Public returns the public key.
func (k *Key) Public() PubKey { return k.public }

// String names the key by its public half, so that no log and no error shows the secret.
func (k *Key) String() string { return "key of " + string(k.public) }

// GoString is String: %#v shows no secret either.
func (k *Key) GoString() string { return k.String() }

// LogValue is String for slog.
func (k *Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// Sign completes an event: author, id and signature. The kind, tags, content and time are the
// caller's. It fails when they are not those of an event.
func (k *Key) Sign(e Event) (Event, error) {
	e.PubKey = k.public
	if e.Tags == nil {
		e.Tags = []Tag{}
	}
	signed := e.library()
	if err := signed.Sign(k.secret); err != nil {
		return Event{}, fmt.Errorf("sign an event of kind %d: %w", e.Kind, err)
	}
	e.ID, e.Sig = EventID(signed.ID), signed.Sig
	if err := e.Verify(); err != nil {
		return Event{}, fmt.Errorf("sign an event of kind %d: %w", e.Kind, err)
	}
	return e, nil
}

// MaxPlaintext is the most that NIP-44 encrypts, in bytes; MaxPayload is what that becomes, in
// characters of base64.
const (
	MaxPlaintext = 65535
	MaxPayload   = 87472
)

// ErrPlaintext says that a text is empty or longer than MaxPlaintext.
var ErrPlaintext = fmt.Errorf("a plaintext has 1 to %d bytes", MaxPlaintext)

// ErrSealed says that a payload was not encrypted to this key, is of another version, or damaged.
var ErrSealed = errors.New("not a payload that this key can open")

// Seal encrypts a text of 1 to MaxPlaintext bytes to the key itself (NIP-44 version 2).
func (k *Key) Seal(plaintext string) (string, error) { return seal(plaintext, k.self) }

// Open decrypts what Seal made of a text. Whoever asks has verified the event that carries it:
// NIP-44 authenticates by that signature.
func (k *Key) Open(payload string) (string, error) { return open(payload, k.self) }

func seal(plaintext string, conversation [32]byte) (string, error) {
	if len(plaintext) < 1 || len(plaintext) > MaxPlaintext {
		return "", ErrPlaintext
	}
	payload, err := nip44.Encrypt(plaintext, conversation)
	if err != nil {
		return "", fmt.Errorf("seal: %w", err)
	}
	return payload, nil
}

func open(payload string, conversation [32]byte) (string, error) {
	if len(payload) > MaxPayload {
		return "", ErrSealed
	}
	plaintext, err := nip44.Decrypt(payload, conversation)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrSealed, err)
	}
	return plaintext, nil
}
