package facts

import (
	"context"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
)

// Registry is where processes that share a store agree on who owns which workspace. All times are
// differences by the store's own clock, so that no two clocks are ever compared. Each method is one
// transaction; those that write fail with ErrNotOwner where the caller's lease is over or another
// process goes by the name of its node, and then have changed nothing.
type Registry interface {
	// Enroll begins the lease of a node for a process that has just started, and returns its epoch.
	// An earlier process of the same name has lost its lease by that, and its workspaces to the next
	// claim.
	Enroll(ctx context.Context, n NodeInfo, ttl time.Duration) (epoch uint64, err error)
	// Renew moves the end of a lease to ttl from now. A lease that has ended may be renewed as long
	// as nobody else enrolled: what others claimed meanwhile stays theirs.
	Renew(ctx context.Context, n Seat, ttl time.Duration) error
	// Survey returns all nodes and all workspaces, as of one moment.
	Survey(ctx context.Context) (Survey, error)
	// Claim makes the node the owner of those workspaces that still have the term given and that
	// nobody else owns with a lease that lasts. It raises their terms, so that nobody commits any more
	// by the earlier one, and returns them as they are then. The others are left out.
	Claim(ctx context.Context, n Seat, claims []Claim) ([]WorkspaceRow, error)
	// Release leaves workspaces of the node without an owner, where the term is still the one given.
	Release(ctx context.Context, n Seat, claims []Claim) error
	// Retire ends the lease and leaves all workspaces of the node without an owner.
	Retire(ctx context.Context, n Seat) error
	// PutWorkspace creates a workspace, or renames it, and returns it as it is then; created says
	// which. It asks nobody who owns it: names are no part of what an owner has in memory. A new one
	// has no owner and a key that none had before. An id or a name that no workspace may have is
	// ErrInvalid.
	PutWorkspace(ctx context.Context, w PutWorkspace) (row WorkspaceRow, created bool, err error)
}

// RegistryStore is a store that processes may share.
type RegistryStore interface {
	Store
	Registry() Registry
}

// Seat is one process in its role as a node. The epoch tells it from earlier and later processes of
// the same name.
type Seat struct {
	Node  string
	Epoch uint64
}

// NodeInfo is what a node says of itself.
type NodeInfo struct {
	Node    string
	Address string // where it is reached, a base URL; empty where it serves nobody
	// Only are the workspaces it may own; nil for any, empty for none.
	Only []readstate.WorkspaceID
}

// NodeRow is a node as it is stored.
type NodeRow struct {
	NodeInfo
	Epoch uint64
	// Left is how long its lease lasts, zero or less when it has ended.
	Left time.Duration
}

// Claim is a workspace at the term at which somebody saw it.
type Claim struct {
	Key  WorkspaceKey
	Term uint64
}

// OwnedRow is a workspace with its owner, a node, empty for none. An owner need not have a lease.
type OwnedRow struct {
	Key   WorkspaceKey
	ID    readstate.WorkspaceID
	Term  uint64
	Owner string
}

// Survey is who there is and who owns what.
type Survey struct {
	Nodes      []NodeRow  // ascending by name
	Workspaces []OwnedRow // ascending by key
}
