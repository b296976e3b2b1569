package httpapi

import "net/http"

// Identity is who a token speaks for. Clients key what they keep by it: what a token looks like
// inside is the authenticator's business, and none of theirs.
type Identity struct {
	Workspace string `json:"workspace"`
	Member    string `json:"member"`
	Role      string `json:"role" enum:"member,service,admin"`
}

func (s *Server) addIdentity() {
	add(s, route{
		method: http.MethodGet, path: "/api/whoami", id: "whoami", tag: "sessions", management: true,
		about: "Whom the token speaks for: the namespace of everything a client keeps.",
	}, func(c *call, _ *noParams, _ *none) (Identity, error) {
		return Identity{
			Workspace: string(c.who.Workspace), Member: string(c.who.Member),
			Role: c.who.Role.String(),
		}, nil
	})
}
