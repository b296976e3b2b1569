-- Who owns which workspace, among processes that share the database. A file has one owner and needs
-- none of this.

-- +goose Up

CREATE TABLE IF NOT EXISTS nodes (
  node        VARBINARY(512) PRIMARY KEY,
  address     VARBINARY(2048) NOT NULL,
  epoch       BIGINT NOT NULL, -- of the process that has the name now
  lease_until BIGINT NOT NULL, -- milliseconds since 1970, by the database's clock
  may_own     MEDIUMBLOB -- a JSON array of workspace ids; NULL for any
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

CREATE TABLE IF NOT EXISTS workspace_owners (
  workspace BIGINT PRIMARY KEY,
  node      VARBINARY(512) NOT NULL,
  KEY workspace_owners_by_node (node)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

-- +goose Down

DROP TABLE workspace_owners;
DROP TABLE nodes;
