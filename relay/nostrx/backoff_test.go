package nostrx

import (
	"testing"
	"time"
)

// Delays double up to a minute, less up to a half.
func TestBackoff(t *testing.T) {
	for failures, seconds := range []int{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		full := time.Duration(seconds) * time.Second
		for range 100 {
			if got := backoff(failures); got < full/2 || got > full {
				t.Fatalf("after %d failures %s, want %s to %s", failures, got, full/2, full)
			}
		}
	}
	if got := backoff(1 << 30); got < maxDelay/2 || got > maxDelay {
		t.Errorf("after very many %s", got)
	}
}
