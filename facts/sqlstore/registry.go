package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Nodes are locked before workspaces, both in the order of their keys, and the lane locks workspaces
// alone: nobody waits in a circle.
var (
	selectNodes = query("list nodes", 0,
		`SELECT n.node, n.address, n.epoch, n.lease_until - {now}, n.may_own FROM nodes n ORDER BY n.node`)
	selectOwned = query("list owners", 0,
		`SELECT w.workspace, w.id, w.term, o.node FROM workspaces w
  LEFT JOIN workspace_owners o ON o.workspace = w.workspace ORDER BY w.workspace`)
	selectSeats = query("lock nodes", 1,
		`SELECT n.node, n.epoch, n.lease_until - {now} FROM {keys} k CROSS JOIN nodes n
  WHERE n.node = k.k1 {lock n}`)
	selectClaimed = query("load owners", 1,
		`SELECT o.workspace, o.node FROM {keys} k CROSS JOIN workspace_owners o WHERE o.workspace = k.k1`)
	selectWorkspaceByKey = query("load workspace by key", 0,
		`SELECT `+workspaceColumns+` FROM workspaces w WHERE w.workspace = ?`)

	insertNodes = insert("insert nodes", insertion{
		table: "nodes", columns: list("node address epoch lease_until may_own"), keys: 1, ignore: true,
	})
	enrollNode = query("enroll", 0, `UPDATE nodes
  SET address = ?, epoch = epoch + 1, lease_until = {now} + ?, may_own = ? WHERE node = ?`)
	renewNode = query("renew lease", 0,
		`UPDATE nodes SET lease_until = {now} + ? WHERE node = ? AND epoch = ?`)
	upsertOwners = insert("write owners", insertion{
		table: "workspace_owners", columns: list("workspace node"), keys: 1, update: list("node"),
	})
	updateTerms = update("raise terms", change{
		table: "workspaces", columns: list("workspace term"), keys: 1,
	})
	removeOwners        = remove("remove owners", "workspace_owners", "workspace", "node")
	selectLastWorkspace = query("load last workspace", 0,
		`SELECT w.workspace FROM workspaces w WHERE w.workspace > 0 ORDER BY w.workspace DESC LIMIT 1`)
	renameWorkspace = query("rename workspace", 0, `UPDATE workspaces SET name = ? WHERE workspace = ?`)
	retireNode      = query("leave workspaces", 0, `DELETE FROM workspace_owners WHERE node = ?`)
)

// Registry returns the registry of the processes that share the store. It has a session of its own:
// a lease is renewed also while a large group is being committed.
func (st *Store) Registry() facts.Registry { return registry{st} }

type registry struct{ *Store }

// in runs f in a writing transaction of the registry.
func (r registry) in(ctx context.Context, what string, f func(t *tx) error) error {
	from := r.registrar
	if from == nil {
		from = r.writer
	}
	t, err := beginOn(ctx, from)
	if err == nil {
		defer t.Rollback()
		if err = f(t); err == nil {
			err = t.Commit(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Enroll implements facts.Registry.
func (r registry) Enroll(
	ctx context.Context, n facts.NodeInfo, ttl time.Duration,
) (epoch uint64, err error) {
	may, err := packOnly(n.Only)
	if err != nil {
		return 0, fmt.Errorf("enroll: %w", err)
	}
	err = r.in(ctx, "enroll", func(t *tx) error {
		// Insert first: a row that is not there cannot be locked.
		fresh := []facts.NodeInfo{n}
		err := execRows(ctx, t.session, insertNodes, fresh, func(args []any, n *facts.NodeInfo) []any {
			return append(args, id(n.Node), id(n.Address), int64(0), int64(0), may)
		})
		if err != nil {
			return err
		}
		_, err = t.exec(ctx, enrollNode, 0, id(n.Address), ttl.Milliseconds(), may, id(n.Node))
		if err != nil {
			return err
		}
		seats, err := t.seats(ctx, []string{n.Node})
		epoch = seats[n.Node].epoch
		return err
	})
	return epoch, err
}

func packOnly(only []readstate.WorkspaceID) (any, error) {
	if only == nil {
		return nil, nil
	}
	b, err := json.Marshal(only)
	return b, err
}

// Renew implements facts.Registry.
func (r registry) Renew(ctx context.Context, n facts.Seat, ttl time.Duration) error {
	return r.in(ctx, "renew lease", func(t *tx) error {
		changed, err := t.exec(ctx, renewNode, 0, ttl.Milliseconds(), id(n.Node), number(n.Epoch))
		if err == nil && changed == 0 {
			err = notSeated(n)
		}
		return err
	})
}

func notSeated(n facts.Seat) error {
	return fmt.Errorf("node %q of epoch %d: %w", n.Node, n.Epoch, facts.ErrNotOwner)
}

// Survey implements facts.Registry.
func (r registry) Survey(ctx context.Context) (s facts.Survey, err error) {
	err = r.inView(ctx, "survey", func(v *session) error {
		err := v.each(ctx, selectNodes, 0, nil, func(row *record) error {
			n := facts.NodeRow{
				NodeInfo: facts.NodeInfo{Node: row.string(), Address: row.string()},
				Epoch:    row.uint(), Left: time.Duration(row.int()) * time.Millisecond,
			}
			if may := row.bytes(); may != nil {
				if err := json.Unmarshal(may, &n.Only); err != nil {
					return fmt.Errorf("node %q: %w", n.Node, err)
				}
			}
			s.Nodes = append(s.Nodes, n)
			return nil
		})
		if err != nil {
			return err
		}
		return v.each(ctx, selectOwned, 0, nil, func(row *record) error {
			s.Workspaces = append(s.Workspaces, facts.OwnedRow{
				Key: facts.WorkspaceKey(row.uint()), ID: readstate.WorkspaceID(row.string()),
				Term: row.uint(), Owner: row.string(),
			})
			return nil
		})
	})
	return s, err
}

// seat is a node's epoch and what is left of its lease.
type seat struct {
	epoch uint64
	left  int64 // milliseconds
}

// seats locks nodes, so that none of them is renewed before the transaction ends.
func (t *tx) seats(ctx context.Context, nodes []string) (map[string]seat, error) {
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	out := make(map[string]seat, len(nodes))
	bind := func(args []any, n string) []any { return append(args, id(n)) }
	err := eachKey(ctx, t.session, selectSeats, nodes, bind, func(row *record) error {
		name := row.string()
		out[name] = seat{epoch: row.uint(), left: row.int()}
		return nil
	})
	return out, err
}

// owners returns who owns workspaces, without locking anything.
func (t *tx) owners(
	ctx context.Context, keys []facts.WorkspaceKey,
) (map[facts.WorkspaceKey]string, error) {
	out := make(map[facts.WorkspaceKey]string, len(keys))
	err := eachKey(ctx, t.session, selectClaimed, keys, bindNumber, func(row *record) error {
		key := facts.WorkspaceKey(row.uint())
		out[key] = row.string()
		return nil
	})
	return out, err
}

// hold locks the caller's node, the owners of the claimed workspaces and then the workspaces, and
// returns the claims whose term is in force, by ascending key, with their owners. It fails with
// ErrNotOwner unless the caller has a lease.
func (t *tx) hold(
	ctx context.Context, n facts.Seat, claims []facts.Claim,
) (held []facts.Claim, owners map[facts.WorkspaceKey]string, seats map[string]seat, err error) {
	claims = slices.SortedFunc(slices.Values(claims), func(a, b facts.Claim) int {
		return int(int64(a.Key) - int64(b.Key))
	})
	keys := make([]facts.WorkspaceKey, len(claims))
	for i, c := range claims {
		keys[i] = c.Key
	}
	if owners, err = t.owners(ctx, keys); err != nil {
		return nil, nil, nil, err
	}
	nodes := []string{n.Node}
	for _, owner := range owners {
		nodes = append(nodes, owner)
	}
	if seats, err = t.seats(ctx, nodes); err != nil {
		return nil, nil, nil, err
	}
	if me := seats[n.Node]; me.epoch != n.Epoch || me.left <= 0 {
		return nil, nil, nil, notSeated(n)
	}
	fences, err := t.fences(ctx, keys)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, c := range claims {
		if f, ok := fences[c.Key]; ok && f.Term == c.Term {
			held = append(held, c)
		}
	}
	// Under the lock of the workspaces nobody changes their owners.
	owners, err = t.owners(ctx, keys)
	return held, owners, seats, err
}

// Claim implements facts.Registry.
func (r registry) Claim(
	ctx context.Context, n facts.Seat, claims []facts.Claim,
) (rows []facts.WorkspaceRow, err error) {
	err = r.in(ctx, "claim workspaces", func(t *tx) error {
		rows = nil
		held, owners, seats, err := t.hold(ctx, n, claims)
		if err != nil {
			return err
		}
		taken := slices.DeleteFunc(held, func(c facts.Claim) bool {
			owner := owners[c.Key]
			s, known := seats[owner] // one that came meanwhile is not known, and has a lease
			return owner != "" && owner != n.Node && (!known || s.left > 0)
		})
		err = execRows(ctx, t.session, upsertOwners, taken, func(args []any, c *facts.Claim) []any {
			return append(args, number(c.Key), id(n.Node))
		})
		if err != nil {
			return err
		}
		err = execRows(ctx, t.session, updateTerms, taken, func(args []any, c *facts.Claim) []any {
			return append(args, number(c.Key), number(c.Term+1))
		})
		if err != nil {
			return err
		}
		for _, c := range taken {
			err := t.each(ctx, selectWorkspaceByKey, 0, []any{number(c.Key)}, func(row *record) error {
				rows = append(rows, readWorkspace(row))
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// Release implements facts.Registry.
func (r registry) Release(ctx context.Context, n facts.Seat, claims []facts.Claim) error {
	return r.in(ctx, "release workspaces", func(t *tx) error {
		held, _, _, err := t.hold(ctx, n, claims)
		if err != nil {
			return err
		}
		return execRows(ctx, t.session, removeOwners, held, func(args []any, c *facts.Claim) []any {
			return append(args, number(c.Key), id(n.Node))
		})
	})
}

// Retire implements facts.Registry.
func (r registry) Retire(ctx context.Context, n facts.Seat) error {
	return r.in(ctx, "retire", func(t *tx) error {
		changed, err := t.exec(ctx, renewNode, 0, int64(0), id(n.Node), number(n.Epoch))
		if err == nil && changed == 0 {
			err = notSeated(n)
		}
		if err == nil {
			_, err = t.exec(ctx, retireNode, 0, id(n.Node))
		}
		return err
	})
}
