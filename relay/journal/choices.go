package journal

import (
	"context"
	"database/sql"
	"fmt"
)

// MaxChoices is how many choices of a kind a partition keeps: the latest.
const MaxChoices = 1000

// Choose saves what the viewer chose, as to follow a thread, under a kind and a name. It never leaves the
// device. Beyond MaxChoices of a kind the oldest is forgotten. An empty value takes the choice back.
func (b *Book) Choose(ctx context.Context, kind, name, value string) error {
	scope, viewer := b.partition.Scope, string(b.partition.Viewer)
	err := b.journal.atOnce(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if value == "" {
			_, err := tx.ExecContext(ctx, `DELETE FROM choices
				WHERE scope = ? AND viewer = ? AND kind = ? AND name = ?`,
				scope, viewer, kind, name)
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO choices (scope, viewer, kind, name, value, at)
			SELECT ?, ?, ?, ?, ?, coalesce(max(at), 0) + 1 FROM choices WHERE scope = ? AND viewer = ?
			ON CONFLICT DO UPDATE SET value = excluded.value, at = excluded.at`,
			scope, viewer, kind, name, value, scope, viewer)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM choices WHERE scope = ?1 AND viewer = ?2 AND kind = ?3 AND at <=
			(SELECT at FROM choices WHERE scope = ?1 AND viewer = ?2 AND kind = ?3
				ORDER BY at DESC LIMIT 1 OFFSET ?4)`,
			scope, viewer, kind, MaxChoices)
		return err
	})
	if err != nil {
		return fmt.Errorf("choose in %s: %w", scope, err)
	}
	return nil
}

// Choices returns what was chosen, of one kind, by name.
func (b *Book) Choices(ctx context.Context, kind string) (map[string]string, error) {
	found := make(map[string]string)
	err := b.journal.atOnce(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT name, value FROM choices
			WHERE scope = ? AND viewer = ? AND kind = ?`,
			b.partition.Scope, string(b.partition.Viewer), kind)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name, value string
			if err := rows.Scan(&name, &value); err != nil {
				return err
			}
			found[name] = value
		}
		return rows.Err()
	})
	return found, err
}
