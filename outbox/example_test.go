package outbox_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-im/tidemark/outbox"
)

// receiver is the whole of a receiver of wakes: it needs nothing of this module.
type receiver struct {
	secret []byte // decoded
	seen   map[string]bool
	now    func() time.Time
}

const oldest = 5 * time.Minute

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 64<<10))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	id, at := req.Header.Get("webhook-id"), req.Header.Get("webhook-timestamp")
	mac := hmac.New(sha256.New, r.secret)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	seconds, err := strconv.ParseInt(at, 10, 64)
	late := r.now().Sub(time.Unix(seconds, 0)).Abs() > oldest
	if err != nil || late || !hmac.Equal([]byte(want), []byte(req.Header.Get("webhook-signature"))) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.seen[id] {
		fmt.Println("again", id) // had it: the answer must have been lost
		return
	}
	r.seen[id] = true
	var wake struct{ Type, Agent, Scope, MessageID string }
	if json.Unmarshal(body, &wake) == nil {
		fmt.Println(wake.Type, "for", wake.Agent, "in", wake.Scope)
	}
}

// A receiver checks the signature, and knows by its id a wake that it has had.
func Example() {
	now := time.Unix(1767225600, 0)
	secret := []byte("a secret of 24 bytes or more")
	r := &receiver{secret: secret, seen: map[string]bool{}, now: func() time.Time { return now }}
	send := func(body, signed string) {
		req := httptest.NewRequest(http.MethodPost, "/otto", strings.NewReader(body))
		req.Header.Set("webhook-id", "wake_1_73728_6")
		req.Header.Set("webhook-timestamp", "1767225600")
		req.Header.Set("webhook-signature",
			outbox.Sign(secret, "wake_1_73728_6", now.Unix(), []byte(signed)))
		answer := httptest.NewRecorder()
		r.ServeHTTP(answer, req)
		fmt.Println(answer.Code)
	}
	const body = `{"type":"task.message","agent":"otto","scope":"fix-it","messageId":"m4"}`
	send(body, body)
	send(body, body)
	send(body, body+" ")
	// Output:
	// task.message for otto in fix-it
	// 200
	// again wake_1_73728_6
	// 200
	// 401
}
