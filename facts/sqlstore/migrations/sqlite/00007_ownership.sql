-- Who owns which workspace, among processes that share the database. A file has one owner and needs
-- none of this.

-- +goose Up

CREATE TABLE nodes (
  node        BLOB PRIMARY KEY,
  address     BLOB NOT NULL,
  epoch       INTEGER NOT NULL, -- of the process that has the name now
  lease_until INTEGER NOT NULL, -- milliseconds since 1970, by the database's clock
  may_own     BLOB -- a JSON array of workspace ids; NULL for any
);

CREATE TABLE workspace_owners (
  workspace INTEGER PRIMARY KEY,
  node      BLOB NOT NULL
);
CREATE INDEX workspace_owners_by_node ON workspace_owners (node);

-- +goose Down

DROP TABLE workspace_owners;
DROP TABLE nodes;
