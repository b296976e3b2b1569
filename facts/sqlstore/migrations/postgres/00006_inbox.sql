-- Inboxes: what is addressed to a member, up to where they have looked at it, and the projection of
-- it. An item is written with its message and keeps its position, live or not.

-- +goose Up

-- One row for each member who was ever sent anything.
CREATE TABLE inboxes (
  member       BIGINT PRIMARY KEY,
  accepted     BIGINT NOT NULL, -- the highest position
  acknowledged BIGINT NOT NULL,
  retractions  BIGINT NOT NULL, -- rises with every item that is taken back, or comes back
  floor        BIGINT NOT NULL  -- of the items at or below it only those are left that vouch
);

CREATE TABLE inbox_positions (
  member     BIGINT NOT NULL,
  position   BIGINT NOT NULL, -- from 1, without gaps above the floor
  scope      BIGINT NOT NULL, -- 0 for a text that was sent to the inbox
  seq        BIGINT NOT NULL, -- then the position
  sender     BIGINT NOT NULL,
  named      SMALLINT NOT NULL, -- addressed by a mention alone
  live       SMALLINT NOT NULL,
  created_at BIGINT NOT NULL, -- milliseconds
  PRIMARY KEY (member, position)
);
CREATE UNIQUE INDEX inbox_positions_by_message ON inbox_positions (scope, seq, member);
CREATE INDEX inbox_positions_live ON inbox_positions (sender, member, position) WHERE live = 1;

CREATE TABLE inbox_messages (
  member   BIGINT NOT NULL,
  position BIGINT NOT NULL,
  id       BYTEA    NOT NULL,
  text     BYTEA,             -- NULL once it was taken back
  PRIMARY KEY (member, position)
);

-- The projection: each sender's newest live item at or below through. It is derived.
CREATE TABLE inbox_projections (
  member  BIGINT PRIMARY KEY,
  through BIGINT NOT NULL
);

CREATE TABLE inbox_sender_maxima (
  member   BIGINT NOT NULL,
  sender   BIGINT NOT NULL,
  position BIGINT NOT NULL,
  PRIMARY KEY (member, sender)
);
CREATE INDEX inbox_sender_maxima_by_position ON inbox_sender_maxima (member, position);

-- Each opening of an inbox, under an id that nobody can guess.
CREATE TABLE inbox_snapshots (
  id         BYTEA    PRIMARY KEY,
  member     BIGINT NOT NULL,
  boundary   BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX inbox_snapshots_by_member ON inbox_snapshots (member);
CREATE INDEX inbox_snapshots_by_age ON inbox_snapshots (created_at, member);

-- The receipts of acknowledgements.
CREATE TABLE inbox_acks (
  member       BIGINT NOT NULL,
  op_id        BYTEA    NOT NULL,
  snapshot     BYTEA    NOT NULL,
  acknowledged BIGINT NOT NULL, -- as the operation left it
  created_at   BIGINT NOT NULL,
  PRIMARY KEY (member, op_id)
);
CREATE INDEX inbox_acks_by_age ON inbox_acks (created_at, member);

-- +goose Down

DROP TABLE inbox_acks;
DROP TABLE inbox_snapshots;
DROP TABLE inbox_sender_maxima;
DROP TABLE inbox_projections;
DROP TABLE inbox_messages;
DROP TABLE inbox_positions;
DROP TABLE inboxes;
