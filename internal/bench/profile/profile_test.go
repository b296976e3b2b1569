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

func TestShare(t *testing.T) {
	share, samples, err := Share(t.Context(), "profile.churn", churn)
	if err != nil {
		t.Fatal(err)
	}
	if share < 0.5 || share > 1 || samples < enough {
		t.Errorf("%.2f of %d samples", share, samples)
	}
	if share, _, err = Share(t.Context(), "no.such", churn); err != nil || share != 0 {
		t.Errorf("a function that is not there has %.2f, %v", share, err)
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
