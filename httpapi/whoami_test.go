package httpapi_test

import (
	"testing"

	"github.com/tidemark-im/tidemark/httpapi"
)

// The server says whom a token speaks for, also where the names look like something else: clients
// never take a token apart.
func TestWhoAmI(t *testing.T) {
	h := newHarness(t)
	for _, c := range []struct {
		ws, member string
		role       httpapi.Role
	}{
		{"W", "A", httpapi.RoleMember},
		{"W", "backend", httpapi.RoleService},
		{"*", "root", httpapi.RoleAdmin},
		{"a:b", "c.d:e", httpapi.RoleMember}, // neither has to exist
	} {
		who := h.want(200, "GET", "/api/whoami", h.token(c.ws, c.member, c.role), nil)
		who.is(t, c.ws, "workspace")
		who.is(t, c.member, "member")
		who.is(t, c.role, "role")
		if len(who) != 3 {
			t.Errorf("more is told than asked for: %v", who)
		}
	}
	h.refused(httpapi.CodeUnauthenticated, "GET", "/api/whoami", "", nil)
}
