-- Inboxes: what is addressed to a member, up to where they have looked at it, and the projection of
-- it. An item is written with its message and keeps its position, live or not.

-- +goose Up

-- One row for each member who was ever sent anything.
CREATE TABLE inboxes (
  member       INTEGER PRIMARY KEY,
  accepted     INTEGER NOT NULL, -- the highest position
  acknowledged INTEGER NOT NULL,
  retractions  INTEGER NOT NULL, -- rises with every item that is taken back, or comes back
  floor        INTEGER NOT NULL  -- of the items at or below it only those are left that vouch
);

CREATE TABLE inbox_positions (
  member     INTEGER NOT NULL,
  position   INTEGER NOT NULL, -- from 1, without gaps above the floor
  scope      INTEGER NOT NULL, -- 0 for a text that was sent to the inbox
  seq        INTEGER NOT NULL, -- then the position
  sender     INTEGER NOT NULL,
  named      INTEGER NOT NULL, -- addressed by a mention alone
  live       INTEGER NOT NULL,
  created_at INTEGER NOT NULL, -- milliseconds
  PRIMARY KEY (member, position)
) WITHOUT ROWID;
CREATE UNIQUE INDEX inbox_positions_by_message ON inbox_positions (scope, seq, member);
CREATE INDEX inbox_positions_live ON inbox_positions (sender, member, position) WHERE live = 1;

CREATE TABLE inbox_messages (
  member   INTEGER NOT NULL,
  position INTEGER NOT NULL,
  id       BLOB    NOT NULL,
  text     BLOB,             -- NULL once it was taken back
  PRIMARY KEY (member, position)
) WITHOUT ROWID;

-- The projection: each sender's newest live item at or below through. It is derived.
CREATE TABLE inbox_projections (
  member  INTEGER PRIMARY KEY,
  through INTEGER NOT NULL
);

CREATE TABLE inbox_sender_maxima (
  member   INTEGER NOT NULL,
  sender   INTEGER NOT NULL,
  position INTEGER NOT NULL,
  PRIMARY KEY (member, sender)
) WITHOUT ROWID;
CREATE INDEX inbox_sender_maxima_by_position ON inbox_sender_maxima (member, position);

-- Each opening of an inbox, under an id that nobody can guess.
CREATE TABLE inbox_snapshots (
  id         BLOB    PRIMARY KEY,
  member     INTEGER NOT NULL,
  boundary   INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX inbox_snapshots_by_member ON inbox_snapshots (member);
CREATE INDEX inbox_snapshots_by_age ON inbox_snapshots (created_at, member);

-- The receipts of acknowledgements.
CREATE TABLE inbox_acks (
  member       INTEGER NOT NULL,
  op_id        BLOB    NOT NULL,
  snapshot     BLOB    NOT NULL,
  acknowledged INTEGER NOT NULL, -- as the operation left it
  created_at   INTEGER NOT NULL,
  PRIMARY KEY (member, op_id)
) WITHOUT ROWID;
CREATE INDEX inbox_acks_by_age ON inbox_acks (created_at, member);

-- +goose Down

DROP TABLE inbox_acks;
DROP TABLE inbox_snapshots;
DROP TABLE inbox_sender_maxima;
DROP TABLE inbox_projections;
DROP TABLE inbox_messages;
DROP TABLE inbox_positions;
DROP TABLE inboxes;
