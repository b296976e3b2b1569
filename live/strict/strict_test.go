package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

type sample struct {
	ID      string          `json:"id"`
	Kind    string          `json:"kind,omitempty" enum:"human,agent"`
	Names   []string        `json:"names,omitempty" maxItems:"2"`
	At      *Counter        `json:"at,omitempty"`
	N       int             `json:"n,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Inner   *inner          `json:"inner,omitempty"`
}

type inner struct {
	On bool `json:"on"`
}

func TestDecodeRefusesWhatItDoesNotUnderstand(t *testing.T) {
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	for _, c := range []struct{ text, want string }{
		{`{"id":"a"}`, ""},
		{" {\"id\" : \"a\" ,\n\"n\":-3}\t", ""},
		{`{"id":"a","payload":{"any":[1.5e3,null,{"x":{}}]}}`, ""},
		{`{"id":"a","inner":null,"at":null}`, ""},
		{`{"id":"\ud83d\ude00 \u00e9"}`, ""},
		{``, "ends too early"},
		{`{`, "key must be"},
		{`{"id"`, "colon"},
		{`{"id":`, "ends too early"},
		{`{"id":"a"`, "ends too early"},
		{`{"id":"a`, "ends too early"},
		{`{"id":"a\`, "escape"},
		{`{"id":"a\u12`, "ends too early"},
		{`{"id":"a"} {}`, "behind the value"},
		{`{"id":"a"}x`, "behind the value"},
		{`{"id":"a",}`, "comma"},
		{`{"id":"a" "n":1}`, "comma"},
		{`{,}`, "key must be"},
		{`{id:"a"}`, "key must be"},
		{`{"id":"a","id":"b"}`, "twice"},
		{`{"id":"a","payload":{"x":1,"x":2}}`, "twice"},
		{`{"id":"a","payload":{"x":1,"\u0078":2}}`, "twice"},
		{`{"ID":"a"}`, "unknown field"},
		{`{"id":"a","extra":1}`, `unknown field "extra"`},
		{`{}`, `"id" is missing`},
		{`[]`, "must not be a list"},
		{`null`, "must not be null"},
		{`{"id":null}`, "must not be null"},
		{`{"id":1}`, "must not be a number"},
		{`{"id":true}`, "must not be a truth value"},
		{`{"id":"a","n":1.5}`, "integer"},
		{`{"id":"a","n":1e3}`, "integer"},
		{`{"id":"a","n":"1"}`, "must not be a text"},
		{`{"id":"a","n":9007199254740992}`, "integer"},
		{`{"id":"a","n":01}`, "not a number"},
		{`{"id":"a","kind":"robot"}`, "must be one of human, agent"},
		{`{"id":"a","names":["x","y","z"]}`, "more than 2"},
		{`{"id":"a","names":["x",1]}`, "names[1]: must not be a number"},
		{`{"id":"a","inner":{"on":1}}`, "inner.on: must not be a number"},
		{`{"id":"a","inner":{}}`, `inner: field "on" is missing`},
		{`{"id":"a","payload":` + deep + `}`, "nested deeper"},
		{`{"id":"\ud800"}`, "unpaired surrogate"},
		{`{"id":"\udc00"}`, "unpaired surrogate"},
		{`{"id":"\ud800\u0041"}`, "unpaired surrogate"},
		{`{"id":"a","payload":"\ud800x"}`, "unpaired surrogate"},
		{"{\"id\":\"\xff\"}", "not valid UTF-8"},
		{"{\"id\":\"a\x01\"}", "control character"},
		{"\xff", "not JSON"},
		{`{"id":"a","at":1.5}`, "must be an integer"},
		{`{"id":"a","at":"1"}`, "must be an integer"},
		{`{"id":"a","payload":nul}`, "not JSON"},
		{`{"id":"a","payload":tru}`, "not JSON"},
	} {
		var v sample
		err := Decode([]byte(c.text), &v)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.text, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %q", c.text, err, c.want)
		}
		var refusal *Error
		if err != nil && !errors.As(err, &refusal) {
			t.Errorf("%s: %T is no *Error", c.text, err)
		}
	}
}

func TestCountersStayExact(t *testing.T) {
	for text, safe := range map[string]bool{
		"0": true, "12": true, "9007199254740991": true,
		"9007199254740992": false, "-1": false, "-0": true,
		"99999999999999999999999999": false, "-99999999999999999999": false,
	} {
		var v sample
		err := Decode(fmt.Appendf(nil, `{"id":"a","at":%s}`, text), &v)
		if text == "-0" {
			continue // either reading is harmless
		}
		if safe && (err != nil || fmt.Sprint(uint64(*v.At)) != text) {
			t.Errorf("%s: %v", text, err)
		}
		if !safe && !errors.Is(err, ErrUnsafe) {
			t.Errorf("%s: got %v, want ErrUnsafe", text, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"id":"a","payload":{"x":[1,2,{"y":"\ud83d\ude00"}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var v sample
		if Decode(data, &v) == nil && !json.Valid(data) {
			t.Fatalf("%q is no JSON and was taken", data)
		}
	})
}
