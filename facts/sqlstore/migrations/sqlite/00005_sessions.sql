-- Sessions. Their scopes, entries and read states are where those of all scopes are: a session
-- begins at revision zero with nothing read, so that nothing in it is unread.

-- +goose Up

-- What a session waits for its owner for.
ALTER TABLE scopes ADD COLUMN pending_input INTEGER NOT NULL DEFAULT 0;
ALTER TABLE scopes ADD COLUMN pending_permission INTEGER NOT NULL DEFAULT 0;

CREATE TABLE sessions (
  scope       INTEGER PRIMARY KEY,
  owner       INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL, -- milliseconds; of the last entry or change, never of a read
  replaced_by INTEGER NOT NULL  -- the scope it was merged into, 0 for none
);
CREATE INDEX sessions_by_time ON sessions (owner, updated_at, scope) WHERE replaced_by = 0;

-- +goose Down

DROP TABLE sessions;
ALTER TABLE scopes DROP COLUMN pending_permission;
ALTER TABLE scopes DROP COLUMN pending_input;
