package nostrx

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/nbd-wtf/go-nostr/nip44"
)

// vectors is the official file, as far as its parts can be observed from outside an implementation:
// message keys show in the payloads that they make.
type vectors struct {
	V2 struct {
		Valid struct {
			Conversation []struct {
				Sec1, Pub2 string
				Key        string `json:"conversation_key"`
			} `json:"get_conversation_key"`
			Padded  [][2]int `json:"calc_padded_len"`
			Encrypt []struct {
				Sec1, Sec2, Nonce, Plaintext, Payload string
				Key                                   string `json:"conversation_key"`
			} `json:"encrypt_decrypt"`
			Long []struct {
				Nonce, Pattern string
				Repeat         int
				Key            string `json:"conversation_key"`
				PlainSum       string `json:"plaintext_sha256"`
				PayloadSum     string `json:"payload_sha256"`
			} `json:"encrypt_decrypt_long_msg"`
		}
		Invalid struct {
			Lengths      []int                               `json:"encrypt_msg_lengths"`
			Conversation []struct{ Sec1, Pub2, Note string } `json:"get_conversation_key"`
			Decrypt      []struct {
				Key           string `json:"conversation_key"`
				Payload, Note string
			}
		}
	}
}

// vectorsSum pins the file to the version that its authors published.
const vectorsSum = "269ed0f69e4c192512cc779e78c555090cebc7c785b609e338a62afc3ce25040"

func loadVectors(t *testing.T) vectors {
	t.Helper()
	data, err := os.ReadFile("testdata/nip44.vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := hexSum(data); got != vectorsSum {
		t.Fatalf("the vectors have SHA-256 %s, not that of the official file", got)
	}
	var v vectors
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func conversationKey(t *testing.T, text string) (key [32]byte) {
	t.Helper()
	raw, err := hex.DecodeString(text)
	if err != nil || copy(key[:], raw) != len(key) {
		t.Fatalf("not a key: %q", text)
	}
	return key
}

func sealWith(t *testing.T, plaintext string, key [32]byte, nonce string) string {
	t.Helper()
	raw, err := hex.DecodeString(nonce)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := nip44.Encrypt(plaintext, key, nip44.WithCustomNonce(raw))
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// What the official vectors accept is sealed to their bytes and opened again.
func TestVectorsValid(t *testing.T) {
	v := loadVectors(t).V2.Valid
	for i, c := range v.Conversation {
		key, err := nip44.GenerateConversationKey(c.Pub2, c.Sec1)
		if err != nil || hex.EncodeToString(key[:]) != c.Key {
			t.Errorf("conversation key %d: %x, %v", i, key, err)
		}
	}
	for i, c := range v.Encrypt {
		one, err1 := ParseKey(c.Sec1)
		two, err2 := ParseKey(c.Sec2)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		for _, side := range [][2]*Key{{one, two}, {two, one}} {
			key, err := nip44.GenerateConversationKey(string(side[1].public), side[0].secret)
			if err != nil || key != conversationKey(t, c.Key) {
				t.Errorf("exchange %d: the key is %x, %v", i, key, err)
			}
		}
		key := conversationKey(t, c.Key)
		if payload := sealWith(t, c.Plaintext, key, c.Nonce); payload != c.Payload {
			t.Errorf("exchange %d: sealed to %s", i, payload)
		}
		if plaintext, err := open(c.Payload, key); err != nil || plaintext != c.Plaintext {
			t.Errorf("exchange %d: opened to %q, %v", i, plaintext, err)
		}
	}
	for i, c := range v.Long {
		plaintext := strings.Repeat(c.Pattern, c.Repeat)
		payload := sealWith(t, plaintext, conversationKey(t, c.Key), c.Nonce)
		if hexSum([]byte(plaintext)) != c.PlainSum || hexSum([]byte(payload)) != c.PayloadSum {
			t.Errorf("long exchange %d differs", i)
		}
		if opened, err := open(payload, conversationKey(t, c.Key)); err != nil || opened != plaintext {
			t.Errorf("long exchange %d does not open: %v", i, err)
		}
	}
}

// A payload is as long as its padding says: a version, a nonce, a length, the text and a MAC.
func TestVectorsPadding(t *testing.T) {
	key := conversationKey(t, strings.Repeat("11", 32))
	for _, c := range loadVectors(t).V2.Valid.Padded {
		if c[0] > MaxPlaintext {
			continue // longer than what can be sealed
		}
		payload, err := seal(strings.Repeat("x", c[0]), key)
		if want := base64.StdEncoding.EncodedLen(1 + 32 + 2 + c[1] + 32); err != nil || len(payload) != want {
			t.Errorf("%d bytes make %d characters, want %d (%v)", c[0], len(payload), want, err)
		}
	}
}

// What they refuse is refused.
func TestVectorsInvalid(t *testing.T) {
	v := loadVectors(t).V2.Invalid
	for _, n := range v.Lengths {
		if _, err := seal(strings.Repeat("x", n), [32]byte{}); err == nil {
			t.Errorf("sealed %d bytes", n)
		}
	}
	for _, c := range v.Conversation {
		_, badKey := ParseKey(c.Sec1)
		if _, err := nip44.GenerateConversationKey(c.Pub2, c.Sec1); err == nil && badKey == nil {
			t.Errorf("a conversation key of %s", c.Note)
		}
	}
	for _, c := range v.Decrypt {
		if plaintext, err := open(c.Payload, conversationKey(t, c.Key)); err == nil {
			t.Errorf("%s: opened to %q", c.Note, plaintext)
		}
	}
}

// The largest text that older clients may have published fits a read-state event of 96 KiB.
// covers: RL-555
func TestSealSizes(t *testing.T) {
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for plain, want := range map[int]int{
		1: 132, 32: 132, 33: 176, 1000: 1456, 32768: 43780, 40960: 54704, MaxPlaintext: MaxPayload,
	} {
		text := strings.Repeat("x", plain)
		payload, err := key.Seal(text)
		if err != nil || len(payload) != want {
			t.Fatalf("%d bytes make %d characters, want %d (%v)", plain, len(payload), want, err)
		}
		if opened, err := key.Open(payload); err != nil || opened != text {
			t.Fatalf("%d bytes do not open: %v", plain, err)
		}
		slot := Tag{"d", "read-state:" + strings.Repeat("a", 32)}
		e, err := key.Sign(Event{Kind: KindAppData, CreatedAt: 1, Content: payload,
			Tags: []Tag{slot, {"t", "read-state"}}})
		if err != nil {
			t.Fatal(err)
		}
		data := e.Encode()
		if _, err := ParseEvent(data, true); err != nil {
			t.Errorf("an event of %d bytes of plaintext: %v", plain, err)
		}
		if plain == MaxPlaintext && len(data) > 88_000 {
			t.Errorf("the largest event has %d bytes", len(data))
		}
	}
	if _, err := key.Seal(strings.Repeat("x", MaxPlaintext+1)); err == nil {
		t.Error("sealed more than fits")
	}
}

// Only the own key opens what was sealed.
// covers: RL-429
func TestSealedToOneself(t *testing.T) {
	mine, err1 := NewKey()
	other, err2 := NewKey()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	payload, err := mine.Seal("read")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Open(payload); err == nil {
		t.Error("another key opened it")
	}
	if text, err := mine.Open(payload); err != nil || text != "read" {
		t.Errorf("opened to %q, %v", text, err)
	}
}
