package httpapi

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
)

// However many tokens there are, a bounded number is remembered, each for whom it is; what is used
// all the time stays.
func TestVerifiedTokensAreBounded(t *testing.T) {
	var v verified
	now := time.Unix(1_800_000_000, 0)
	whose := func(i int) (d tokenDigest, p proof) {
		binary.BigEndian.PutUint64(d[:], uint64(i))
		p.who.Member = readstate.MemberID(fmt.Sprint("m", i))
		p.who.Expires = now.Add(time.Hour)
		return d, p
	}
	often, mine := whose(0)
	v.put(often, mine)
	for i := 1; i <= 3*MaxVerified; i++ {
		d, p := whose(i)
		v.put(d, p)
		v.put(d, p)
		if who, ok := v.get(d, now); !ok || who != p.who {
			t.Fatalf("%+v, %t after %d tokens", who, ok, i)
		}
		if who, ok := v.get(often, now); !ok || who != mine.who {
			t.Fatalf("%+v, %t after %d tokens", who, ok, i)
		}
		if n := v.count(); n > MaxVerified || n < min(i+1, MaxVerified/2) {
			t.Fatalf("%d of %d tokens are remembered", n, i+1)
		}
	}
	if _, ok := v.get(often, now.Add(time.Hour)); ok {
		t.Error("a token counts at its end")
	}
}
