package httpapi

import (
	"net/http"
	"slices"

	"github.com/tidemark-im/tidemark/httpapi/framing"
)

// inboxWrites are the routes that write to inboxes. They take the length of a request in one form
// only (IN-116 to IN-124): what is acknowledged there must be what was sent.
var inboxWrites = []string{
	"POST /api/v1/workspaces/{ws}/members/{m}/inbox/messages",
	"POST /api/v1/workspaces/{ws}/members/{m}/inbox:open",
	"POST /api/v1/workspaces/{ws}/members/{m}/inbox/acks",
}

// newGate makes what holds routes to the rules.
func newGate(cfg *Config) (*framing.Gate, error) {
	return framing.New(framing.Config{
		Routes: slices.Concat(inboxWrites, cfg.Framed), Prefix: cfg.Prefix, MaxBody: MaxBody,
		HeadBytes: cfg.Limits.HeaderBytes, HandshakeTimeout: cfg.Limits.HeaderTimeout,
	})
}

// refuseFrame answers a request that breaks them. Where it ends is not certain, so that nothing
// behind it on its connection may count; an HTTP/2 connection has other streams, and frames that
// say where each ends.
func (s *Server) refuseFrame(w http.ResponseWriter, r *http.Request, err error) {
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	s.cors.answer(w, r)
	s.writeProblem(w, r, err)
}
