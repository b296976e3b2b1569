package redisset

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/tidemark-im/tidemark/internal/dbtest"
)

// A client that is closed may still be about to look whether its server has come back.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// server is a private server with a client of its own.
type server struct {
	*dbtest.Redis
	t      *testing.T
	client rueidis.Client
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{Redis: dbtest.NewRedis(t), t: t}
	s.Start()
	s.client = s.connect()
	t.Cleanup(s.client.Close)
	return s
}

func (s *server) connect() rueidis.Client {
	s.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; {
		c, err := rueidis.NewClient(s.Option())
		if err == nil {
			return c
		}
		if time.Now().After(end) {
			s.t.Fatal(err)
		}
	}
}

// do sends a command.
func (s *server) do(args ...string) rueidis.RedisResult {
	s.t.Helper()
	return s.client.Do(s.t.Context(), s.client.B().Arbitrary(args...).Build())
}

func (s *server) number(args ...string) int64 {
	s.t.Helper()
	n, err := s.do(args...).AsInt64()
	if err != nil {
		s.t.Fatalf("%v: %v", args, err)
	}
	return n
}
