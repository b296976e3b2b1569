package httpapi

import (
	"errors"
	"net/http"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Role says what a caller may do. Each role may do what the ones before it may.
type Role uint8

const (
	RoleMember  Role = iota // acts as itself
	RoleService             // acts for any member and manages the workspace
	RoleAdmin               // manages workspaces
)

var roleNames = [...]string{RoleMember: "member", RoleService: "service", RoleAdmin: "admin"}

// String returns the word that tokens carry.
func (r Role) String() string { return roleNames[r] }

// ParseRole is the inverse of String; the empty word is RoleMember.
func ParseRole(s string) (Role, bool) {
	if s == "" {
		return RoleMember, true
	}
	for r, name := range roleNames {
		if name == s {
			return Role(r), true
		}
	}
	return 0, false
}

// AllWorkspaces is the workspace of an admin who manages all of them.
const AllWorkspaces readstate.WorkspaceID = "*"

// Principal is who makes a request.
type Principal struct {
	Workspace readstate.WorkspaceID // AllWorkspaces only for RoleAdmin
	Member    readstate.MemberID
	Role      Role
	// Expires is when the principal's streams end; zero is never.
	Expires time.Time
	// Token names what rates and streams are limited by. Empty: the member in its workspace.
	Token string
}

// Authenticator says who makes a request. It reads the request's header; a token that came in
// the address of a stream has been put there. Its errors wrap ErrUnauthenticated or
// ErrTokenExpired; any other is answered as internal.
type Authenticator interface {
	Authenticate(r *http.Request) (Principal, error)
}

var (
	// ErrUnauthenticated means that a request names nobody who could be believed.
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrTokenExpired means that its token was good once.
	ErrTokenExpired = errors.New("token expired")
)

// check refuses a principal that no authenticator should have made.
func (p *Principal) check() error {
	if p.Workspace == AllWorkspaces && p.Role == RoleAdmin {
		return facts.CheckID("member", string(p.Member))
	}
	return errors.Join(
		facts.CheckID("workspace", string(p.Workspace)),
		facts.CheckID("member", string(p.Member)),
	)
}

// limitKey is what rates and streams are counted by.
func (p *Principal) limitKey() string {
	if p.Token != "" {
		return p.Token
	}
	return string(p.Workspace) + "\x00" + string(p.Member) + "\x00" + p.Role.String()
}
