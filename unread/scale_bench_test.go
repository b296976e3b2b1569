package unread

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/internal/slab"
	"github.com/tidemark-im/tidemark/readstate"
)

// scaleMembers is how many members of 200 scopes the benchmarks of size hold;
// TIDEMARK_BENCH_MEMBERS sets another number.
func scaleMembers(b *testing.B) int {
	b.Helper()
	n := 5_000
	if s := os.Getenv("TIDEMARK_BENCH_MEMBERS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			b.Fatal(err)
		}
	}
	return n
}

const scaleScopes = 200

// large is a state of members with 200 scopes each, of which every tenth row has something in
// its cold record.
func large(members, scopes int) *state {
	st := newState(new(slab.Memory), 2_000, new(tally))
	rng := rand.New(rand.NewPCG(1, 1))
	for s := range scopes {
		st.addScope(&readstate.ScopeInfo{
			Key: readstate.ScopeKey(s + 1), ID: readstate.ScopeID(fmt.Sprint("channel-", s)),
			Type: readstate.Channel, Name: fmt.Sprint("channel ", s),
		}, &readstate.ScopeRanks{Head: 1000, Latest: readstate.Latest{ID: "m-1000", At: 5}})
	}
	for m := range members {
		key := readstate.MemberKey(m + 1)
		i := st.addMember(readstate.MemberInfo{
			Key: key, ID: readstate.MemberID(fmt.Sprint("member-", m)), DisplayName: "Somebody",
		}, nil)
		for n := range scaleScopes {
			s := (m*7919 + n*(scopes/scaleScopes)) % scopes
			row := readstate.MemberRow{StateLSN: 9, Row: readstate.Row{
				Joined: true, Visible: true, Epoch: 1, Effective: 1, Read: 1000,
				Point: readstate.Point{E: 1000, AuthorRank: uint64(rng.IntN(50))},
			}}
			row.Writer.AuthorHead = row.Row.Point.AuthorRank
			if rng.IntN(10) == 0 {
				row.Row.Manual = readstate.Manual{Version: 2}
			}
			st.addEntry(i, st.scopeByKey[readstate.ScopeKey(s+1)], &row)
		}
		if _, err := st.anyUnread(i); err != nil {
			panic(err)
		}
	}
	return st
}

// BenchmarkScale prints what many read states cost to hold and to read.
func BenchmarkScale(b *testing.B) {
	members := scaleMembers(b)
	empty := collect()
	st := large(members, 20_000)
	states := float64(st.rows.n)
	full := collect()
	rng := rand.New(rand.NewPCG(3, 4))
	var counts []Count
	for b.Loop() {
		m := int32(1 + rng.IntN(members))
		var err error
		if counts, err = st.counts(m, 1, counts[:0]); err != nil || len(counts) != scaleScopes {
			b.Fatal(err, len(counts))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/scaleScopes, "ns/count")
	b.ReportMetric(float64(st.memory.Bytes())/states, "B/state")
	b.ReportMetric(float64(st.rows.hot.Bytes())/states, "B-hot")
	b.ReportMetric(float64(st.rows.cold.Bytes())/states, "B-cold")
	b.ReportMetric(float64(st.text.Bytes())/states, "B-text")
	b.ReportMetric(float64(empty.Microseconds()), "µs-gc-empty")
	b.ReportMetric(float64(full.Microseconds()), "µs-gc-full")
	runtime.KeepAlive(st)
}

func collect() time.Duration {
	runtime.GC()
	start := time.Now()
	runtime.GC()
	return time.Since(start)
}
