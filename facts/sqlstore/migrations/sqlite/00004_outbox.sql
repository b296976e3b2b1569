-- What becomes of the rows of outbox: who works on them, the wakes that follow, and what could not
-- be delivered. Times are milliseconds. A recipient is an agent's number, or a webhook's, negative.

-- +goose Up

-- Rows of outbox up to here have been looked at; those above have no state yet.
CREATE TABLE outbox_progress (
  workspace INTEGER PRIMARY KEY,
  through   INTEGER NOT NULL
);

CREATE TABLE outbox_state (
  workspace  INTEGER NOT NULL,
  event      INTEGER NOT NULL,
  state      INTEGER NOT NULL, -- 1 leased, 2 deferred, 3 failed, 4 behind, 5 delivered, 6 dead
  due_at     INTEGER, -- when it may be taken again, of a leased row the end; NULL when finished
  lease      INTEGER NOT NULL, -- the claim that has it; 0 for none
  term       INTEGER NOT NULL, -- of the claim
  owner      TEXT    NOT NULL, -- likewise, for people
  failures   INTEGER NOT NULL,
  deferrals  INTEGER NOT NULL,
  error      TEXT    NOT NULL,
  created_at INTEGER NOT NULL, -- of the row of outbox
  settled_at INTEGER, -- NULL while unfinished
  PRIMARY KEY (workspace, event)
) WITHOUT ROWID;
CREATE INDEX outbox_state_due ON outbox_state (due_at, workspace, event, state, created_at)
  WHERE due_at IS NOT NULL;
CREATE INDEX outbox_state_leased ON outbox_state (workspace, event) WHERE state = 1;
CREATE INDEX outbox_state_delivered ON outbox_state (settled_at, workspace, event)
  WHERE state = 5;

-- The agents of unfinished rows that were put off, so that later rows of theirs stay behind.
CREATE TABLE outbox_waits (
  member INTEGER NOT NULL,
  event  INTEGER NOT NULL,
  PRIMARY KEY (member, event)
) WITHOUT ROWID;

-- One row for each recipient that ever had a wake or an address.
CREATE TABLE wake_endpoints (
  recipient INTEGER PRIMARY KEY,
  url       TEXT,             -- NULL: wakes wait to be read
  secret    BLOB,
  disabled  INTEGER NOT NULL, -- the endpoint said that it is gone
  last_wake INTEGER NOT NULL, -- highest number given out
  waiting   INTEGER NOT NULL, -- wakes
  attempts  INTEGER NOT NULL, -- that the first of them has cost
  streak    INTEGER NOT NULL, -- failures since the last success
  slow      INTEGER NOT NULL,
  due_at    INTEGER,          -- NULL when there is nothing to send
  lease     INTEGER NOT NULL,
  term      INTEGER NOT NULL,
  owner     TEXT    NOT NULL,
  error     TEXT    NOT NULL
);
CREATE INDEX wake_endpoints_due ON wake_endpoints (slow, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX wake_endpoints_leased ON wake_endpoints (recipient) WHERE lease <> 0;

CREATE TABLE wakes (
  recipient  INTEGER NOT NULL,
  wake       INTEGER NOT NULL,
  kind       INTEGER NOT NULL, -- 1 task message, 2 task activity, 3 threshold, 4 idle
  event      INTEGER NOT NULL, -- of outbox; the LSN for 3 and 4
  scope      INTEGER NOT NULL, -- 0 for none
  seq        INTEGER NOT NULL,
  id         BLOB,
  actor      INTEGER NOT NULL, -- for 3 and 4 the member concerned
  amount     INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  queued_at  INTEGER NOT NULL,
  PRIMARY KEY (recipient, wake)
) WITHOUT ROWID;

-- What was given up: a wake, or a row of outbox, which stays where it is (recipient 0).
CREATE TABLE dead_letters (
  letter     INTEGER PRIMARY KEY AUTOINCREMENT,
  workspace  INTEGER NOT NULL,
  recipient  INTEGER NOT NULL,
  wake       INTEGER NOT NULL,
  kind       INTEGER NOT NULL,
  event      INTEGER NOT NULL,
  scope      INTEGER NOT NULL,
  seq        INTEGER NOT NULL,
  id         BLOB,
  actor      INTEGER NOT NULL,
  amount     INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  overflow   INTEGER NOT NULL,
  attempts   INTEGER NOT NULL,
  error      TEXT    NOT NULL,
  died_at    INTEGER NOT NULL
);
CREATE INDEX dead_letters_by_workspace ON dead_letters (workspace, letter);
CREATE INDEX dead_letters_by_recipient ON dead_letters (recipient) WHERE recipient <> 0;
CREATE INDEX dead_letters_by_age ON dead_letters (died_at);

CREATE TABLE webhooks (
  webhook    INTEGER PRIMARY KEY,
  workspace  INTEGER NOT NULL,
  id         BLOB    NOT NULL,
  threshold  INTEGER NOT NULL, -- messages, 0 for never
  idle       INTEGER NOT NULL, -- milliseconds, 0 for never
  created_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX webhooks_by_id ON webhooks (workspace, id);

-- Whom a webhook watches, and what it remembers of each.
CREATE TABLE webhook_states (
  webhook    INTEGER NOT NULL,
  member     INTEGER NOT NULL,
  seen       INTEGER NOT NULL,
  armed      INTEGER NOT NULL,
  idle_since INTEGER NOT NULL, -- 0 for not idle
  idle_lsn   INTEGER NOT NULL,
  idle_fired INTEGER NOT NULL,
  PRIMARY KEY (webhook, member)
) WITHOUT ROWID;

-- +goose Down

-- Only what is delivered is left of the outbox, or the way back is refused: none of it may be
-- found again by a later program, which would take it for new.
DELETE FROM outbox;
DROP TABLE webhook_states;
DROP TABLE webhooks;
DROP TABLE dead_letters;
DROP TABLE wakes;
DROP TABLE wake_endpoints;
DROP TABLE outbox_waits;
DROP TABLE outbox_state;
DROP TABLE outbox_progress;
