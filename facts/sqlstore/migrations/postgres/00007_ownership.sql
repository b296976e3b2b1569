-- Who owns which workspace, among processes that share the database. A file has one owner and needs
-- none of this.

-- +goose Up

CREATE TABLE nodes (
  node        BYTEA PRIMARY KEY,
  address     BYTEA NOT NULL,
  epoch       BIGINT NOT NULL, -- of the process that has the name now
  lease_until BIGINT NOT NULL, -- milliseconds since 1970, by the database's clock
  may_own     BYTEA -- a JSON array of workspace ids; NULL for any
);

CREATE TABLE workspace_owners (
  workspace BIGINT PRIMARY KEY,
  node      BYTEA NOT NULL
);
CREATE INDEX workspace_owners_by_node ON workspace_owners (node);

-- +goose Down

DROP TABLE workspace_owners;
DROP TABLE nodes;
