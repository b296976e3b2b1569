-- Inboxes: what is addressed to a member, up to where they have looked at it, and the projection of
-- it. An item is written with its message and keeps its position, live or not.

-- +goose Up

-- One row for each member who was ever sent anything.
CREATE TABLE IF NOT EXISTS inboxes (
  member       BIGINT PRIMARY KEY,
  accepted     BIGINT NOT NULL, -- the highest position
  acknowledged BIGINT NOT NULL,
  retractions  BIGINT NOT NULL, -- rises with every item that is taken back, or comes back
  floor        BIGINT NOT NULL  -- of the items at or below it only those are left that vouch
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

CREATE TABLE IF NOT EXISTS inbox_positions (
  member     BIGINT NOT NULL,
  position   BIGINT NOT NULL, -- from 1, without gaps above the floor
  scope      BIGINT NOT NULL, -- 0 for a text that was sent to the inbox
  seq        BIGINT NOT NULL, -- then the position
  sender     BIGINT NOT NULL,
  named      SMALLINT NOT NULL, -- addressed by a mention alone
  live       SMALLINT NOT NULL,
  created_at BIGINT NOT NULL, -- milliseconds
  PRIMARY KEY (member, position),
  UNIQUE KEY inbox_positions_by_message (scope, seq, member),
  KEY inbox_positions_live (sender, live, member, position)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

CREATE TABLE IF NOT EXISTS inbox_messages (
  member   BIGINT NOT NULL,
  position BIGINT NOT NULL,
  id       VARBINARY(512) NOT NULL,
  text     MEDIUMBLOB, -- NULL once it was taken back
  PRIMARY KEY (member, position)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

-- The projection: each sender's newest live item at or below through. It is derived.
CREATE TABLE IF NOT EXISTS inbox_projections (
  member  BIGINT PRIMARY KEY,
  through BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

CREATE TABLE IF NOT EXISTS inbox_sender_maxima (
  member   BIGINT NOT NULL,
  sender   BIGINT NOT NULL,
  position BIGINT NOT NULL,
  PRIMARY KEY (member, sender),
  KEY inbox_sender_maxima_by_position (member, position)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

-- Each opening of an inbox, under an id that nobody can guess.
CREATE TABLE IF NOT EXISTS inbox_snapshots (
  id         VARBINARY(512) PRIMARY KEY,
  member     BIGINT NOT NULL,
  boundary   BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  KEY inbox_snapshots_by_member (member),
  KEY inbox_snapshots_by_age (created_at, member)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

-- The receipts of acknowledgements.
CREATE TABLE IF NOT EXISTS inbox_acks (
  member       BIGINT NOT NULL,
  op_id        VARBINARY(512) NOT NULL,
  snapshot     VARBINARY(512) NOT NULL,
  acknowledged BIGINT NOT NULL, -- as the operation left it
  created_at   BIGINT NOT NULL,
  PRIMARY KEY (member, op_id),
  KEY inbox_acks_by_age (created_at, member)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

-- +goose Down

DROP TABLE IF EXISTS inbox_acks;
DROP TABLE IF EXISTS inbox_snapshots;
DROP TABLE IF EXISTS inbox_sender_maxima;
DROP TABLE IF EXISTS inbox_projections;
DROP TABLE IF EXISTS inbox_messages;
DROP TABLE IF EXISTS inbox_positions;
DROP TABLE IF EXISTS inboxes;
