-- The facts of the hub. Ids are BLOBs, so that they compare bytewise; all else is numbers.
-- A member or scope number carries its workspace in the upper 32 bits: a range of numbers is a
-- workspace, and one number names a row of the whole database.

-- +goose Up

CREATE TABLE workspaces (
  workspace INTEGER PRIMARY KEY,
  id        BLOB    NOT NULL UNIQUE,
  name      TEXT    NOT NULL,
  term      INTEGER NOT NULL,
  lsn       INTEGER NOT NULL
);

CREATE TABLE members (
  member       INTEGER PRIMARY KEY,
  workspace    INTEGER NOT NULL,
  id           BLOB    NOT NULL,
  agent        INTEGER NOT NULL,
  active       INTEGER NOT NULL,
  display_name TEXT    NOT NULL,
  avatar       TEXT    NOT NULL,
  badge        INTEGER NOT NULL,
  private      INTEGER NOT NULL,
  erased       INTEGER NOT NULL,
  member_lsn   INTEGER NOT NULL,
  created_at   INTEGER NOT NULL
);
CREATE UNIQUE INDEX members_by_id ON members (workspace, id);
CREATE INDEX members_erased ON members (erased, member) WHERE erased = 1;

CREATE TABLE scopes (
  scope               INTEGER PRIMARY KEY,
  workspace           INTEGER NOT NULL,
  id                  BLOB    NOT NULL,
  type                INTEGER NOT NULL,
  name                TEXT    NOT NULL,
  parent              INTEGER NOT NULL, -- 0 for none
  root_message        BLOB,
  history             INTEGER NOT NULL,
  archived            INTEGER NOT NULL,
  tags                TEXT,             -- JSON array, NULL for none
  active              INTEGER NOT NULL,
  thinking            INTEGER NOT NULL,
  owner               INTEGER NOT NULL, -- 0 for none
  latest_seq          INTEGER NOT NULL,
  head_revision       INTEGER NOT NULL,
  floor_revision      INTEGER NOT NULL,
  floor_seq           INTEGER NOT NULL,
  latest_activity_seq INTEGER NOT NULL,
  signal_head         INTEGER NOT NULL,
  roster_generation   INTEGER NOT NULL,
  last_lsn            INTEGER NOT NULL,
  latest_id           BLOB,             -- newest live message
  latest_at           INTEGER NOT NULL,
  last_activity_at    INTEGER NOT NULL,
  replies             INTEGER NOT NULL,
  created_at          INTEGER NOT NULL
);
CREATE UNIQUE INDEX scopes_by_id ON scopes (workspace, id);
CREATE INDEX scopes_by_type ON scopes (workspace, type, id);
CREATE INDEX scopes_by_parent ON scopes (parent, id) WHERE parent <> 0;

-- A removed message stays as a tombstone (live = 0) until the floor passes it. revision is
-- NULL for an entry that is not readable or was never counted.
CREATE TABLE scope_messages (
  scope          INTEGER NOT NULL,
  seq            INTEGER NOT NULL,
  revision       INTEGER,
  id             BLOB    NOT NULL,
  kind           TEXT    NOT NULL,
  author         INTEGER NOT NULL,
  principal      INTEGER, -- NULL when the author acts for themself
  author_rank    INTEGER NOT NULL,
  principal_rank INTEGER NOT NULL,
  named          BLOB,    -- varints of the members' local numbers
  recipients     BLOB,
  everyone       INTEGER NOT NULL,
  live           INTEGER NOT NULL,
  silent         INTEGER NOT NULL,
  reply_to       BLOB,
  peer_scope     INTEGER NOT NULL, -- 0 for none
  peer_seq       INTEGER NOT NULL,
  peer_revision  INTEGER NOT NULL,
  thread         INTEGER NOT NULL, -- the thread that hangs on the message, 0 for none
  op_actor       INTEGER, -- NULL on the channel copy of a broadcast reply and on moved rows
  op_id          BLOB,
  op_digest      BLOB,
  local_id       BLOB,
  expires_at     INTEGER, -- milliseconds, NULL for never
  created_at     INTEGER NOT NULL,
  edited_at      INTEGER NOT NULL,
  payload        BLOB,
  PRIMARY KEY (scope, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX scope_messages_by_id ON scope_messages (scope, id);
CREATE UNIQUE INDEX scope_messages_by_op ON scope_messages (op_actor, op_id)
  WHERE op_actor IS NOT NULL;
CREATE UNIQUE INDEX scope_messages_by_local_id ON scope_messages (scope, local_id)
  WHERE local_id IS NOT NULL;
CREATE UNIQUE INDEX scope_messages_by_revision ON scope_messages (scope, revision)
  WHERE revision IS NOT NULL;
CREATE INDEX scope_messages_live ON scope_messages (scope, seq) WHERE live = 1;
CREATE INDEX scope_messages_by_author
  ON scope_messages (scope, author, revision, author_rank) WHERE revision IS NOT NULL;
CREATE INDEX scope_messages_by_principal
  ON scope_messages (scope, principal, revision, principal_rank)
  WHERE principal IS NOT NULL AND revision IS NOT NULL;
CREATE INDEX scope_messages_removed_by_author
  ON scope_messages (scope, author, revision) WHERE live = 0 AND revision IS NOT NULL;
CREATE INDEX scope_messages_removed_by_principal
  ON scope_messages (scope, principal, revision)
  WHERE live = 0 AND principal IS NOT NULL AND revision IS NOT NULL;
CREATE INDEX scope_messages_with_payload ON scope_messages (author) WHERE payload IS NOT NULL;
CREATE INDEX scope_messages_expiring
  ON scope_messages (scope >> 32, expires_at) WHERE live = 1 AND expires_at IS NOT NULL;

CREATE TABLE scope_writer_totals (
  scope              INTEGER NOT NULL,
  member             INTEGER NOT NULL,
  author_head        INTEGER NOT NULL,
  principal_head     INTEGER NOT NULL,
  actor_head         INTEGER NOT NULL,
  author_at_floor    INTEGER NOT NULL,
  principal_at_floor INTEGER NOT NULL,
  PRIMARY KEY (scope, member)
) WITHOUT ROWID;

CREATE TABLE message_mentions (
  scope    INTEGER NOT NULL,
  member   INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  author   INTEGER NOT NULL,
  neutral  INTEGER NOT NULL,
  live     INTEGER NOT NULL,
  everyone INTEGER NOT NULL,
  PRIMARY KEY (scope, member, revision)
) WITHOUT ROWID;
CREATE INDEX message_mentions_by_revision ON message_mentions (scope, revision);

CREATE TABLE message_targets (
  scope    INTEGER NOT NULL,
  member   INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  author   INTEGER NOT NULL,
  live     INTEGER NOT NULL,
  PRIMARY KEY (scope, member, revision)
) WITHOUT ROWID;
CREATE INDEX message_targets_by_revision ON message_targets (scope, revision);

CREATE TABLE scope_activity_events (
  scope       INTEGER NOT NULL,
  seq         INTEGER NOT NULL,
  id          BLOB    NOT NULL,
  kind        TEXT    NOT NULL,
  high_signal INTEGER NOT NULL,
  signal_rank INTEGER, -- NULL for a low-signal activity
  actor       INTEGER NOT NULL,
  actor_rank  INTEGER,
  recipients  BLOB,
  op_actor    INTEGER,
  op_id       BLOB,
  op_digest   BLOB,
  created_at  INTEGER NOT NULL,
  payload     BLOB,
  PRIMARY KEY (scope, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX scope_activity_events_by_id ON scope_activity_events (scope, id);
CREATE UNIQUE INDEX scope_activity_events_by_op ON scope_activity_events (op_actor, op_id)
  WHERE op_actor IS NOT NULL;
CREATE INDEX scope_activity_events_by_signal ON scope_activity_events (scope, seq, signal_rank)
  WHERE signal_rank IS NOT NULL;
CREATE INDEX scope_activity_events_by_actor
  ON scope_activity_events (scope, actor, seq, actor_rank) WHERE actor_rank IS NOT NULL;

CREATE TABLE activity_targets (
  scope        INTEGER NOT NULL,
  member       INTEGER NOT NULL,
  activity_seq INTEGER NOT NULL,
  actor        INTEGER NOT NULL,
  PRIMARY KEY (scope, member, activity_seq)
) WITHOUT ROWID;

CREATE TABLE scope_everyone (
  scope     INTEGER NOT NULL,
  revision  INTEGER NOT NULL,
  author    INTEGER NOT NULL,
  principal INTEGER NOT NULL, -- 0 when the author acts for themself
  PRIMARY KEY (scope, revision)
) WITHOUT ROWID;
CREATE INDEX scope_everyone_by_author ON scope_everyone (scope, author, revision, principal);
CREATE INDEX scope_everyone_by_principal ON scope_everyone (scope, principal, revision)
  WHERE principal <> 0;

-- bits holds 64 words of 64 bits, little-endian; block = revision / 4096.
CREATE TABLE scope_removed_blocks (
  scope INTEGER NOT NULL,
  block INTEGER NOT NULL,
  count INTEGER NOT NULL,
  bits  BLOB    NOT NULL,
  PRIMARY KEY (scope, block)
) WITHOUT ROWID;

CREATE TABLE scope_everyone_blocks (
  scope INTEGER NOT NULL,
  block INTEGER NOT NULL,
  count INTEGER NOT NULL,
  bits  BLOB    NOT NULL,
  PRIMARY KEY (scope, block)
) WITHOUT ROWID;

CREATE TABLE scope_memberships (
  scope          INTEGER NOT NULL,
  member         INTEGER NOT NULL,
  joined         INTEGER NOT NULL,
  visible        INTEGER NOT NULL,
  eff            INTEGER NOT NULL,
  epoch          INTEGER NOT NULL,
  parent_epoch   INTEGER NOT NULL,
  membership_lsn INTEGER NOT NULL,
  PRIMARY KEY (scope, member)
) WITHOUT ROWID;
CREATE INDEX scope_memberships_by_member ON scope_memberships (member, joined, scope);
CREATE INDEX scope_memberships_left ON scope_memberships (member, membership_lsn)
  WHERE joined = 0;

-- A member who never chose anything has no row.
CREATE TABLE scope_notification_settings (
  member           INTEGER NOT NULL,
  scope            INTEGER NOT NULL,
  level            INTEGER, -- NULL inherits
  until            INTEGER NOT NULL,
  followed         INTEGER NOT NULL,
  notification_lsn INTEGER NOT NULL,
  PRIMARY KEY (member, scope)
) WITHOUT ROWID;

CREATE TABLE conversation_member_states (
  member                 INTEGER NOT NULL,
  scope                  INTEGER NOT NULL,
  read_revision          INTEGER NOT NULL,
  manual_unread          INTEGER NOT NULL,
  manual_unread_from     INTEGER NOT NULL, -- 0 for none
  manual_unread_version  INTEGER NOT NULL,
  e                      INTEGER NOT NULL,
  author_at_e            INTEGER NOT NULL,
  principal_at_e         INTEGER NOT NULL,
  own_removed_above_e    INTEGER NOT NULL,
  own_everyone_above_e   INTEGER NOT NULL,
  direct_above_e         INTEGER NOT NULL,
  targets_above_e        INTEGER NOT NULL,
  activity_read_seq      INTEGER NOT NULL,
  signal_at              INTEGER NOT NULL,
  actor_at               INTEGER NOT NULL,
  activity_targets_above INTEGER NOT NULL,
  state_lsn              INTEGER NOT NULL,
  PRIMARY KEY (member, scope)
) WITHOUT ROWID;

CREATE TABLE member_blocks (
  member INTEGER NOT NULL,
  other  INTEGER NOT NULL,
  PRIMARY KEY (member, other)
) WITHOUT ROWID;
CREATE INDEX member_blocks_by_other ON member_blocks (other, member);

CREATE TABLE operations (
  workspace  INTEGER NOT NULL,
  actor      INTEGER NOT NULL, -- 0 for the system
  op_id      BLOB    NOT NULL,
  digest     BLOB    NOT NULL,
  result     BLOB    NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (workspace, actor, op_id)
) WITHOUT ROWID;
CREATE INDEX operations_by_age ON operations (created_at);

-- Rows of the runtime that keeps its own facts elsewhere. The row with the empty member id is
-- the scope's frontier. Rank columns are NULL in rows of versions that had none.
CREATE TABLE member_scope_unread_runtime_snapshots (
  workspace_id                  BLOB    NOT NULL,
  member_id                     BLOB    NOT NULL,
  scope_id                      BLOB    NOT NULL,
  message_unread_count          INTEGER NOT NULL,
  activity_unread_count         INTEGER NOT NULL,
  manual_unread                 INTEGER NOT NULL,
  last_message_read_seq         INTEGER NOT NULL,
  last_activity_read_seq        INTEGER NOT NULL,
  effective_from_seq            INTEGER NOT NULL,
  latest_message_accounted_seq  INTEGER NOT NULL,
  latest_activity_accounted_seq INTEGER NOT NULL,
  notification_state            TEXT    NOT NULL,
  membership_visibility         TEXT    NOT NULL,
  scope_roster_generation       INTEGER NOT NULL,
  scope_message_generation      INTEGER NOT NULL,
  scope_activity_generation     INTEGER NOT NULL,
  membership_generation         INTEGER NOT NULL,
  notification_generation       INTEGER NOT NULL,
  manual_unread_generation      INTEGER NOT NULL,
  rewind_generation             INTEGER NOT NULL,
  task_snapshot_format_version  INTEGER,
  task_snapshot_json            TEXT,
  e                             INTEGER,
  author_at_e                   INTEGER,
  principal_at_e                INTEGER,
  own_removed_above_e           INTEGER,
  own_everyone_above_e          INTEGER,
  direct_above_e                INTEGER,
  targets_above_e               INTEGER,
  signal_at                     INTEGER,
  actor_at                      INTEGER,
  activity_targets_above        INTEGER,
  head_revision                 INTEGER,
  floor_revision                INTEGER,
  signal_head                   INTEGER,
  author_head                   INTEGER,
  principal_head                INTEGER,
  actor_head                    INTEGER,
  updated_at                    INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, member_id, scope_id)
) WITHOUT ROWID;
