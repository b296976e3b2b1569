package outbox

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// benchWorld has a task with agents whose endpoint is one good server, and an outbox at work.
func benchWorld(b *testing.B, agents int, taken func()) (*world, *Outbox) {
	w := newWorld(b)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { taken() }))
	b.Cleanup(server.Close)
	box := w.outbox(func(o *Options) { o.Now, o.Rand, o.Limits.Queue = time.Now, nil, 1<<30 })
	members := []readstate.MemberID{"author", "h0"}
	for i := range agents {
		agent := agentName(100 + i)
		w.member(string(agent))
		w.endpoint(box, agent, server.URL)
		members = append(members, agent)
	}
	w.task("bench", members...)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- box.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	return w, box
}

// BenchmarkWakes sends wakes of many agents to one server; one operation is one wake.
func BenchmarkWakes(b *testing.B) {
	const agents = 50
	var n atomic.Int64
	var want int64 = 1 << 60
	all := make(chan struct{})
	w, box := benchWorld(b, agents, func() {
		if n.Add(1) == atomic.LoadInt64(&want) {
			close(all)
		}
	})
	posts := (b.N + agents - 1) / agents
	atomic.StoreInt64(&want, int64(posts*agents))
	batch := w.lane.NewBatch(space)
	for range posts {
		batch.Post(facts.Post{Scope: "bench", OpID: w.id(), Author: "author", By: facts.Actor{Trusted: true}})
	}
	if _, err := batch.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	box.Poke(1)
	<-all
	b.ReportMetric(float64(posts*agents)/b.Elapsed().Seconds(), "wakes/s")
}

// BenchmarkWakeLatency is the time from the call that posts a message to the request that wakes its
// one agent.
func BenchmarkWakeLatency(b *testing.B) {
	taken := make(chan struct{}, 1)
	w, box := benchWorld(b, 1, func() { taken <- struct{}{} })
	for b.Loop() {
		_, err := w.lane.Post(b.Context(), space, facts.Post{
			Scope: "bench", OpID: w.id(), Author: "author", By: facts.Actor{Trusted: true},
		})
		if err != nil {
			b.Fatal(err)
		}
		box.Poke(1)
		<-taken
	}
}
