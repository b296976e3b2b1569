package outbox

import (
	"time"
	"unicode/utf8"
)

// backoff is the pause before the next attempt when so many have failed before: it doubles each
// time, and half of it is left to chance, so that what failed together does not come back
// together.
func backoff(random func() float64, first, most time.Duration, failures int) time.Duration {
	wait := most
	if failures < 62 && first<<failures>>failures == first {
		wait = min(most, first<<failures)
	}
	return wait/2 + time.Duration(random()*float64(wait-wait/2))
}

// short is an error's text as it is kept.
func short(err error) string {
	text := err.Error()
	if len(text) <= maxErrorBytes {
		return text
	}
	cut := maxErrorBytes
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}
