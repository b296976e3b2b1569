package profile

import (
	"slices"
	"testing"
)

var sink int

//go:noinline
func churn() {
	for i := range 5_000_000 {
		sink += i * i
	}
}

func TestBroken(t *testing.T) {
	raw, err := record(4, churn)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := read(raw[:len(raw)-1], "x"); err == nil {
		t.Error("half a profile was read")
	}
	if _, _, err := read(slices.Concat(raw, []byte{0xff}), "x"); err == nil {
		t.Error("more than a profile was read")
	}
}
