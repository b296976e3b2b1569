package figures

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/httpapi"
	"github.com/tidemark-im/tidemark/internal/bench"
	"github.com/tidemark-im/tidemark/live"
	"github.com/tidemark-im/tidemark/readstate"
)

var secret = []byte("0123456789abcdef0123456789abcdef")

// shop is a server on a port of the loopback, over an office.
type shop struct {
	*office
	auth   *httpapi.JWT
	api    *httpapi.Server
	http   *http.Server
	served chan error
	addr   string
	// constant is what the handler outside the API answers with.
	constant []byte
}

// openShop starts a server with limits above what the figures ask for, as an operator may set
// them.
func openShop(ctx context.Context) (*shop, error) {
	o, err := openOffice(ctx, tidemark.Options{})
	if err != nil {
		return nil, err
	}
	s := &shop{office: o, served: make(chan error, 1)}
	if err := s.serve(ctx); err != nil {
		return nil, errors.Join(err, o.close())
	}
	return s, nil
}

func (s *shop) serve(ctx context.Context) error {
	var err error
	if s.auth, err = httpapi.NewJWT(httpapi.JWTConfig{Secrets: [][]byte{secret}}); err != nil {
		return err
	}
	s.api, err = httpapi.New(httpapi.Config{
		Engine: s.engine, Auth: s.auth, App: http.HandlerFunc(s.answerConstant),
		Limits: httpapi.Limits{MemberRate: 1e6, MemberBurst: 1e6},
		Live:   live.Options{Heartbeat: time.Hour},
	})
	if err != nil {
		return err
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.addr = l.Addr().String()
	s.http = &http.Server{Handler: s.api, ReadHeaderTimeout: 10 * time.Second}
	go func() { s.served <- s.http.Serve(l) }() // until close
	return nil
}

// answerConstant is the least that a handler of the server can do for as many bytes.
func (s *shop) answerConstant(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(s.constant)
}

// close ends the server with its streams, and the office.
func (s *shop) close() error {
	drain, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := errors.Join(s.api.Drain(drain), s.http.Close())
	if e := <-s.served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	s.auth.Close()
	return errors.Join(err, s.office.close())
}

// get is a request for a path as a member.
func (s *shop) get(m readstate.MemberID, path string) ([]byte, error) {
	token, err := httpapi.SignToken(secret, httpapi.Claims{
		Workspace: space, Member: m, Expires: time.Now().Add(24 * time.Hour),
	})
	if err != nil {
		return nil, err
	}
	return []byte("GET " + path + " HTTP/1.1\r\nHost: " + s.addr + "\r\nAuthorization: Bearer " +
		token + "\r\n\r\n"), nil
}

// unreadPath asks for all counts of a member with at most 200 channels.
const unreadPath = "/api/v1/workspaces/" + string(space) + "/unread?limit=200"

// client is one connection that asks the same thing again and again, with as little work of its
// own as HTTP allows.
type client struct {
	conn    net.Conn
	in      *bufio.Reader
	request []byte
}

func (s *shop) dial(ctx context.Context, request []byte) (*client, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, in: bufio.NewReaderSize(conn, 64<<10), request: request}, nil
}

func (c *client) close() { _ = c.conn.Close() }

// ask sends the request and reads the whole answer into w. It returns how long the body was.
func (c *client) ask(w io.Writer) (int64, error) {
	if _, err := c.conn.Write(c.request); err != nil {
		return 0, err
	}
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	n, err := io.Copy(w, res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("the server answered %s", res.Status)
	}
	return n, err
}

// shelves is what a reader with 200 channels has in a shop.
type shelves struct {
	messages int                  // in each channel
	read     []readstate.Revision // the reader's cursors
}

const reader readstate.MemberID = "reader"

// stockShelves makes the reader's channels, in which somebody else has written, and reads each
// of them as far as chance will have it.
func (s *shop) stockShelves(ctx context.Context, r *bench.Run, messages int) (*shelves, error) {
	h := &shelves{messages: messages, read: make([]readstate.Revision, crowdScopes)}
	perChannel := 3 + messages + 1
	bar := r.Bar("filling", "rows", crowdScopes*perChannel)
	defer bar.End()
	err := s.fill(ctx, crowdScopes*perChannel, func(b *facts.Batch, i int) {
		c, k := i/perChannel, i%perChannel
		switch {
		case k == 0:
			b.PutScope(facts.PutScope{ID: officeChannel(c), Type: readstate.Channel})
		case k < 3:
			b.PutMembership(facts.PutMembership{
				Scope: officeChannel(c), Member: []readstate.MemberID{reader, "writer"}[k-1],
				CreateMember: true,
			})
		case k < perChannel-1:
			b.Post(facts.Post{
				Scope: officeChannel(c), OpID: "op-" + strconv.Itoa(i), Author: "writer",
				Payload: payload, By: facts.Actor{Trusted: true},
			})
		default:
			h.read[c] = readstate.Revision(below(c, 1, messages+1))
			b.MarkRead(facts.MarkRead{
				Scope: officeChannel(c), Member: reader, Revision: &h.read[c], Trusted: true,
			})
		}
	}, func(n int) { bar.Set(int64(n)) })
	return h, err
}

// compare checks an answer against what was written and read: the reader wrote nothing, so that
// everything above the cursor counts.
func (h *shelves) compare(r *bench.Run, body []byte) error {
	var page live.Page
	if err := json.Unmarshal(body, &page); err != nil {
		return err
	}
	var wrong []string
	for c, read := range h.read {
		want := uint64(h.messages) - uint64(read)
		if row, ok := page.Scopes[string(officeChannel(c))]; !ok || row.Unread != want {
			wrong = append(wrong, fmt.Sprintf("channel %d over HTTP: %d, want %d", c, row.Unread, want))
		}
	}
	return r.Check("counts over HTTP", len(h.read), wrong)
}

// runWeb measures the rate of counts over HTTP against that of constant bytes.
func runWeb(ctx context.Context, r *bench.Run) (err error) {
	s, err := openShop(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	h, err := s.stockShelves(ctx, r, bench.Pick(r.Scale, 10, 200, 1000))
	if err != nil {
		return err
	}
	counts, err1 := s.get(reader, unreadPath)
	constant, err2 := s.get(reader, "/constant")
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	one, err := s.dial(ctx, counts)
	if err != nil {
		return err
	}
	defer one.close()
	body := new(sample)
	if _, err := one.ask(body); err != nil {
		return err
	}
	if err := h.compare(r, *body); err != nil {
		return err
	}
	s.constant = *body
	n := bench.Pick(r.Scale, 5, 500, 2_000)
	f := r.Figure(httpConstant)
	f.Note("GET %s, %d bytes, %d requests a round over each of two connections. Client and server "+
		"share the machine; the client is the same for both.", unreadPath, len(*body), n)
	return r.Each(ctx, func(ctx context.Context, round int) error {
		var rates [3]float64
		order := []int{0, 1, 2}
		if round%2 == 1 {
			order = []int{2, 1, 0}
		}
		for _, k := range order {
			request := [][]byte{counts, constant, counts}[k]
			if rates[k], err = s.rate(ctx, request, n); err != nil {
				return err
			}
		}
		f.Add("200 counts", bench.PerSecond, rates[0])
		f.Add("constant bytes", bench.PerSecond, rates[1])
		if err := s.latency(ctx, f, one, n, rates[0]/4); err != nil {
			return err
		}
		f.Hold(rates[0] / rates[1])
		f.HoldControl(rates[2] / rates[0])
		return nil
	})
}

// latency adds what counts take over one connection at a rate that leaves the server idle most of
// the time, and beside it a loop that does nothing at the same moments.
func (s *shop) latency(
	ctx context.Context, f *bench.Figure, c *client, n int, perSecond float64,
) error {
	every := time.Duration(float64(time.Second) / perSecond)
	asked, err1 := bench.OpenLoop(ctx, n, every, func(int) error {
		_, err := c.ask(io.Discard)
		return err
	})
	idle, err2 := bench.OpenLoop(ctx, n, every, bench.Idle)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	for _, q := range []struct {
		name  string
		share float64
	}{{"median", 0.5}, {"p99", 0.99}} {
		f.Add(q.name+" of 200 counts in an open loop", bench.Nanoseconds,
			float64(bench.Quantile(asked.Response, q.share)))
		f.Add(q.name+" of an idle loop", bench.Nanoseconds,
			float64(bench.Quantile(idle.Response, q.share)))
	}
	return nil
}

// sample keeps an answer.
type sample []byte

// Write implements io.Writer.
func (s *sample) Write(p []byte) (int, error) {
	*s = append(*s, p...)
	return len(p), nil
}

// rate asks over two connections at once, n times each.
func (s *shop) rate(ctx context.Context, request []byte, n int) (float64, error) {
	const connections = 2
	clients := make([]*client, connections)
	for i := range clients {
		c, err := s.dial(ctx, request)
		if err != nil {
			return 0, err
		}
		defer c.close()
		clients[i] = c
	}
	took, err := together(connections, func(g int) error {
		for range n {
			if _, err := clients[g].ask(io.Discard); err != nil {
				return err
			}
		}
		return nil
	})
	return float64(connections*n) / took.Seconds(), err
}
