package sqlsnap

import (
	"context"
	"fmt"
	"time"

	"github.com/tidemark-im/tidemark/readstate"
	"github.com/tidemark-im/tidemark/unread/snapshot"
)

// Folding is what there is to bring back from the Task columns of a file.
type Folding struct {
	Protected int64 // rows that have such columns
	// Obstacles are those of them that stop the way back, at most MaxObstacles, of Stopped.
	Obstacles []snapshot.Obstacle
	Stopped   int64
}

// MaxObstacles bounds how many rows are named.
const MaxObstacles = 100

// foldPage is how many rows are looked at, and written, at once.
const foldPage = 500

// Folding says what Fold would do. It changes nothing.
func (s *Store) Folding(ctx context.Context) (f Folding, err error) {
	err = s.eachProtected(ctx, func(rows []snapshot.Row, obstacles []snapshot.Obstacle) error {
		f.Protected += int64(len(rows) + len(obstacles))
		f.Stopped += int64(len(obstacles))
		room := MaxObstacles - len(f.Obstacles)
		f.Obstacles = append(f.Obstacles, obstacles[:min(room, len(obstacles))]...)
		return nil
	})
	return f, err
}

// Fold brings the Task columns of all rows back into the regular ones, for programs that know no
// others, and empties them. It changes nothing where there is an obstacle. The store has the file to
// itself, so that nobody writes meanwhile; a crash leaves rows that are brought back and rows that
// are not, both right, and Fold goes on from there.
func (s *Store) Fold(ctx context.Context) (Folding, error) {
	f, err := s.Folding(ctx)
	if err != nil || f.Stopped > 0 {
		return f, err
	}
	err = s.eachProtected(ctx, func(rows []snapshot.Row, _ []snapshot.Obstacle) error {
		for i := range rows {
			rows[i].Durable = true
		}
		return s.Upsert(ctx, rows)
	})
	return f, err
}

// eachProtected hands out what the rows that have Task columns are to become, page by page.
func (s *Store) eachProtected(
	ctx context.Context, use func(rows []snapshot.Row, obstacles []snapshot.Obstacle) error,
) error {
	now := time.Now().UnixMilli()
	for after := (snapshot.RowID{}); ; {
		ids, err := s.protected(ctx, after)
		if err != nil || len(ids) == 0 {
			return err
		}
		for len(ids) > 0 {
			n := 0
			for n < len(ids) && ids[n].Workspace == ids[0].Workspace {
				n++
			}
			rows, obstacles, err := snapshot.Fold(ctx, s, ids[:n], now)
			if err == nil {
				err = use(rows, obstacles)
			}
			if err != nil {
				return fmt.Errorf("fold %s: %w", ids[0].Workspace, err)
			}
			after, ids = ids[n-1], ids[n:]
		}
	}
}

const selectProtected = `SELECT workspace_id, member_id, scope_id FROM ` + name + `
  WHERE task_snapshot_format_version IS NOT NULL AND task_snapshot_format_version <> 0
    AND (workspace_id, member_id, scope_id) > (?, ?, ?)
  ORDER BY workspace_id, member_id, scope_id LIMIT ?`

// protected lists rows that have Task columns, in the order of the primary key.
func (s *Store) protected(ctx context.Context, after snapshot.RowID) (ids []snapshot.RowID, err error) {
	s.observe(ctx, selectProtected)
	found, err := s.db.QueryContext(ctx, selectProtected,
		id(after.Workspace), id(after.Member), id(after.Scope), foldPage)
	if err != nil {
		return nil, fmt.Errorf("list protected snapshots: %w", err)
	}
	defer found.Close()
	for found.Next() {
		var workspace, member, scope []byte
		if err := found.Scan(&workspace, &member, &scope); err != nil {
			return nil, fmt.Errorf("list protected snapshots: %w", err)
		}
		ids = append(ids, snapshot.RowID{
			Workspace: readstate.WorkspaceID(workspace), Member: readstate.MemberID(member),
			Scope: readstate.ScopeID(scope),
		})
	}
	return ids, found.Err()
}
