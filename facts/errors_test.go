package facts

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
)

// A refusal of the algebra is one of this package, too, and says once what is wrong.
func TestRefusalSaysItOnce(t *testing.T) {
	for cause, kind := range map[error]error{
		readstate.ErrFuture: ErrFuture, readstate.ErrConflict: ErrConflict,
	} {
		err := refusal(fmt.Errorf("%w: 99 is above 6", cause))
		if !errors.Is(err, kind) || !errors.Is(err, cause) {
			t.Errorf("%v is not both %q and %q", err, kind, cause)
		}
		if want := cause.Error() + ": 99 is above 6"; err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
	if refusal(nil) != nil {
		t.Error("nothing is refused")
	}
}
