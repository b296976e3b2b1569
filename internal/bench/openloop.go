package bench

import (
	"context"
	"runtime"
	"time"
)

// Latencies is what an open loop saw, one value for each operation.
type Latencies struct {
	// Response is from the moment at which the operation was meant to start to its end.
	Response []time.Duration
	// Service is from its real start to its end.
	Service []time.Duration
}

// spinFor is how long before its time the loop stops sleeping: a sleeper wakes up late.
const spinFor = 100 * time.Microsecond

// OpenLoop runs n operations that are meant to start at equal distances, whatever became of the
// one before. An operation that comes late because its forerunner was slow counts the delay.
func OpenLoop(
	ctx context.Context, n int, every time.Duration, op func(i int) error,
) (Latencies, error) {
	return openLoop(ctx, n, every, await, op)
}

func openLoop(
	ctx context.Context, n int, every time.Duration, await func(time.Time), op func(i int) error,
) (Latencies, error) {
	l := Latencies{
		Response: make([]time.Duration, 0, n), Service: make([]time.Duration, 0, n),
	}
	began := time.Now()
	for i := range n {
		meant := began.Add(time.Duration(i) * every)
		await(meant)
		start := time.Now()
		if err := op(i); err != nil {
			return l, err
		}
		end := time.Now()
		l.Response = append(l.Response, end.Sub(meant))
		l.Service = append(l.Service, end.Sub(start))
		if i%1024 == 0 && ctx.Err() != nil {
			return l, ctx.Err()
		}
	}
	return l, nil
}

// await returns at a moment, or at once when it has passed.
func await(at time.Time) {
	if left := time.Until(at); left > spinFor {
		time.Sleep(left - spinFor)
	}
	for time.Now().Before(at) {
		runtime.Gosched()
	}
}

// Idle is an operation that does nothing: the control of an open loop.
func Idle(int) error { return nil }

// Time returns how long fn takes.
func Time(fn func() error) (time.Duration, error) {
	start := time.Now()
	err := fn()
	return time.Since(start), err
}
