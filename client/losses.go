package client

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/tidemark-im/tidemark/client/readsync"
)

// lossesSchema is what version 2 of the file adds: the losses of each namespace, and whether OnEvent
// has returned from being told of them.
const lossesSchema = `
CREATE TABLE losses (
	n         INTEGER PRIMARY KEY AUTOINCREMENT,
	origin    TEXT NOT NULL,
	workspace TEXT NOT NULL,
	member    TEXT NOT NULL,
	id        TEXT NOT NULL,
	loss      TEXT NOT NULL,
	told      INTEGER NOT NULL,
	UNIQUE (origin, workspace, member, id)
);
CREATE INDEX losses_in_order ON losses (origin, workspace, member, n)`

// keptLosses is how many losses are remembered after they were told.
const keptLosses = 100

// lost writes losses beside the removal of their operations, and lets the oldest go that were told.
func (s *store) lost(ctx context.Context, tx *sql.Tx, ns Namespace, losses []readsync.Loss) error {
	for i := range losses {
		text, err := json.Marshal(losses[i])
		if err != nil {
			return fmt.Errorf("write loss: %w", err)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO losses (origin, workspace, member, id, loss, told)
			VALUES (?, ?, ?, ?, ?, 0) ON CONFLICT DO NOTHING`,
			s.origin, ns.Workspace, ns.Member, losses[i].Operation.ID, string(text))
		if err != nil {
			return fmt.Errorf("write loss: %w", err)
		}
	}
	if len(losses) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM losses
		WHERE origin = ?1 AND workspace = ?2 AND member = ?3 AND told = 1 AND n <= (
			SELECT n FROM losses WHERE origin = ?1 AND workspace = ?2 AND member = ?3
			ORDER BY n DESC LIMIT 1 OFFSET ?4)`,
		s.origin, ns.Workspace, ns.Member, keptLosses)
	if err != nil {
		return fmt.Errorf("forget losses: %w", err)
	}
	return nil
}

// told notes that OnEvent knows of a loss.
func (s *store) told(ns Namespace, id string) error {
	_, err := s.db.ExecContext(context.Background(), `UPDATE losses SET told = 1
		WHERE origin = ? AND workspace = ? AND member = ? AND id = ?`,
		s.origin, ns.Workspace, ns.Member, id)
	if err != nil {
		return fmt.Errorf("note that a loss was told: %w", err)
	}
	return nil
}

// losses returns those of a namespace that are remembered, oldest first, and those of them that
// nobody was told of.
func (s *store) losses(ctx context.Context, ns Namespace) (all, untold []readsync.Loss, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT loss, told FROM losses
		WHERE origin = ? AND workspace = ? AND member = ? ORDER BY n`,
		s.origin, ns.Workspace, ns.Member)
	if err != nil {
		return nil, nil, fmt.Errorf("load losses: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		var told bool
		if err := rows.Scan(&text, &told); err != nil {
			return nil, nil, fmt.Errorf("load losses: %w", err)
		}
		var loss readsync.Loss
		if err := json.Unmarshal([]byte(text), &loss); err != nil {
			return nil, nil, fmt.Errorf("load losses: %w", err)
		}
		all = append(all, loss)
		if !told {
			untold = append(untold, loss)
		}
	}
	return all, untold, rows.Err()
}
