//go:build !race

package profile

import "testing"

// Under the race detector most samples are the detector's.
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
