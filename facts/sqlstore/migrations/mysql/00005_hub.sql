-- The facts of the hub, in the form that SQLite has after its first five migrations: a number names
-- the same schema everywhere. Ids and texts are bytes: they compare bytewise, and nothing is folded,
-- padded or trimmed. A member or scope number carries its workspace in the upper 32 bits: a range of
-- numbers is a workspace, and one number names a row of the whole database.
--
-- There are no partial indexes: what they leave out elsewhere sorts apart here, by a column of its
-- own. A change of the schema is not taken back when it is cut short, so that each can be repeated.

-- +goose Up

CREATE TABLE IF NOT EXISTS workspaces (
  workspace BIGINT          PRIMARY KEY,
  id        VARBINARY(512)  NOT NULL UNIQUE,
  name      VARBINARY(2048) NOT NULL,
  term      BIGINT          NOT NULL,
  lsn       BIGINT          NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

CREATE TABLE IF NOT EXISTS members (
  member       BIGINT          PRIMARY KEY,
  workspace    BIGINT          NOT NULL,
  id           VARBINARY(512)  NOT NULL,
  agent        SMALLINT        NOT NULL,
  active       SMALLINT        NOT NULL,
  display_name VARBINARY(2048) NOT NULL,
  avatar       BLOB            NOT NULL,
  badge        SMALLINT        NOT NULL,
  private      SMALLINT        NOT NULL,
  erased       SMALLINT        NOT NULL,
  member_lsn   BIGINT          NOT NULL,
  created_at   BIGINT          NOT NULL,
  UNIQUE KEY members_by_id (workspace, id),
  KEY members_erased (erased, member),
  KEY members_by_number (workspace, member)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

CREATE TABLE IF NOT EXISTS scopes (
  scope               BIGINT          PRIMARY KEY,
  workspace           BIGINT          NOT NULL,
  id                  VARBINARY(512)  NOT NULL,
  type                SMALLINT        NOT NULL,
  name                VARBINARY(2048) NOT NULL,
  parent              BIGINT          NOT NULL, -- 0 for none
  root_message        VARBINARY(512),
  history             SMALLINT        NOT NULL,
  archived            SMALLINT        NOT NULL,
  tags                MEDIUMBLOB, -- JSON array, NULL for none
  active              SMALLINT        NOT NULL,
  thinking            SMALLINT        NOT NULL,
  owner               BIGINT          NOT NULL, -- 0 for none
  latest_seq          BIGINT          NOT NULL,
  head_revision       BIGINT          NOT NULL,
  floor_revision      BIGINT          NOT NULL,
  floor_seq           BIGINT          NOT NULL,
  latest_activity_seq BIGINT          NOT NULL,
  signal_head         BIGINT          NOT NULL,
  roster_generation   BIGINT          NOT NULL,
  last_lsn            BIGINT          NOT NULL,
  latest_id           VARBINARY(512), -- newest live message
  latest_at           BIGINT          NOT NULL,
  last_activity_at    BIGINT          NOT NULL,
  replies             BIGINT          NOT NULL,
  created_at          BIGINT          NOT NULL,
  -- What a session waits for its owner for.
  pending_input       SMALLINT        NOT NULL,
  pending_permission  SMALLINT        NOT NULL,
  UNIQUE KEY scopes_by_id (workspace, id),
  KEY scopes_by_type (workspace, type, id),
  KEY scopes_by_parent (parent, id),
  KEY scopes_by_number (workspace, scope)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

-- A removed message stays as a tombstone (live = 0) until the floor passes it. revision is
-- NULL for an entry that is not readable or was never counted.
CREATE TABLE IF NOT EXISTS scope_messages (
  scope          BIGINT         NOT NULL,
  seq            BIGINT         NOT NULL,
  revision       BIGINT,
  id             VARBINARY(512) NOT NULL,
  kind           VARBINARY(255) NOT NULL,
  author         BIGINT         NOT NULL,
  principal      BIGINT, -- NULL when the author acts for themself
  author_rank    BIGINT         NOT NULL,
  principal_rank BIGINT         NOT NULL,
  named          BLOB, -- varints of the members' local numbers
  recipients     BLOB,
  everyone       SMALLINT       NOT NULL,
  live           SMALLINT       NOT NULL,
  silent         SMALLINT       NOT NULL,
  reply_to       VARBINARY(512),
  peer_scope     BIGINT         NOT NULL, -- 0 for none
  peer_seq       BIGINT         NOT NULL,
  peer_revision  BIGINT         NOT NULL,
  thread         BIGINT         NOT NULL, -- the thread that hangs on the message, 0 for none
  op_actor       BIGINT, -- NULL on the channel copy of a broadcast reply and on moved rows
  op_id          VARBINARY(512),
  op_digest      VARBINARY(64),
  local_id       VARBINARY(512),
  expires_at     BIGINT, -- milliseconds, NULL for never
  created_at     BIGINT         NOT NULL,
  edited_at      BIGINT         NOT NULL,
  payload        MEDIUMBLOB,
  -- The workspace of what expires, and whether there is a payload, for the indexes.
  expiring BIGINT GENERATED ALWAYS AS
    (CASE WHEN live = 1 AND expires_at IS NOT NULL THEN scope DIV 4294967296 END) STORED,
  paid     SMALLINT GENERATED ALWAYS AS (payload IS NOT NULL) STORED,
  PRIMARY KEY (scope, seq),
  UNIQUE KEY scope_messages_by_id (scope, id),
  UNIQUE KEY scope_messages_by_op (op_actor, op_id),
  UNIQUE KEY scope_messages_by_local_id (scope, local_id),
  UNIQUE KEY scope_messages_by_revision (scope, revision),
  KEY scope_messages_live (scope, live, seq),
  KEY scope_messages_by_author (scope, author, revision, author_rank),
  KEY scope_messages_by_principal (scope, principal, revision, principal_rank),
  KEY scope_messages_removed_by_author (scope, author, live, revision),
  KEY scope_messages_removed_by_principal (scope, principal, live, revision),
  KEY scope_messages_expiring (expiring, expires_at),
  KEY scope_messages_uncounted (author, revision, paid, scope, seq)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

CREATE TABLE IF NOT EXISTS scope_writer_totals (
  scope              BIGINT NOT NULL,
  member             BIGINT NOT NULL,
  author_head        BIGINT NOT NULL,
  principal_head     BIGINT NOT NULL,
  actor_head         BIGINT NOT NULL,
  author_at_floor    BIGINT NOT NULL,
  principal_at_floor BIGINT NOT NULL,
  PRIMARY KEY (scope, member)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

CREATE TABLE IF NOT EXISTS message_mentions (
  scope    BIGINT   NOT NULL,
  member   BIGINT   NOT NULL,
  revision BIGINT   NOT NULL,
  author   BIGINT   NOT NULL,
  neutral  SMALLINT NOT NULL,
  live     SMALLINT NOT NULL,
  everyone SMALLINT NOT NULL,
  PRIMARY KEY (scope, member, revision),
  KEY message_mentions_by_revision (scope, revision)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

CREATE TABLE IF NOT EXISTS message_targets (
  scope    BIGINT   NOT NULL,
  member   BIGINT   NOT NULL,
  revision BIGINT   NOT NULL,
  author   BIGINT   NOT NULL,
  live     SMALLINT NOT NULL,
  PRIMARY KEY (scope, member, revision),
  KEY message_targets_by_revision (scope, revision)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

CREATE TABLE IF NOT EXISTS scope_activity_events (
  scope             BIGINT         NOT NULL,
  seq               BIGINT         NOT NULL,
  id                VARBINARY(512) NOT NULL,
  kind              VARBINARY(255) NOT NULL,
  high_signal       SMALLINT       NOT NULL,
  signal_rank       BIGINT, -- NULL for a low-signal activity
  actor             BIGINT         NOT NULL,
  actor_rank        BIGINT,
  recipients        BLOB,
  op_actor          BIGINT,
  op_id             VARBINARY(512),
  op_digest         VARBINARY(64),
  created_at        BIGINT         NOT NULL,
  payload           MEDIUMBLOB,
  -- What an activity refers to: 'task_event' for the timeline of a task, 'message' for the one that
  -- goes with a message of a task.
  activity_ref_type VARBINARY(255),
  activity_ref_id   VARBINARY(512),
  -- Whom an assignment is about, NULL for nobody.
  subject           BIGINT,
  -- The revision of the message that the activity goes with, NULL for none.
  revision          BIGINT,
  -- The place of an entry that has a rank, and whether there is a payload, for the indexes.
  signal_seq BIGINT GENERATED ALWAYS AS (CASE WHEN signal_rank IS NOT NULL THEN seq END) STORED,
  actor_seq  BIGINT GENERATED ALWAYS AS (CASE WHEN actor_rank IS NOT NULL THEN seq END) STORED,
  paid       SMALLINT GENERATED ALWAYS AS (payload IS NOT NULL) STORED,
  PRIMARY KEY (scope, seq),
  UNIQUE KEY scope_activity_events_by_id (scope, id),
  UNIQUE KEY scope_activity_events_by_op (op_actor, op_id),
  KEY scope_activity_events_by_signal (scope, signal_seq, signal_rank),
  KEY scope_activity_events_by_actor (scope, actor, actor_seq, actor_rank),
  KEY scope_activity_events_by_revision (scope, revision, seq),
  KEY scope_activity_events_of_task (scope, activity_ref_type, seq),
  KEY scope_activity_events_with_payload (actor, paid, scope, seq)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

CREATE TABLE IF NOT EXISTS activity_targets (
  scope        BIGINT NOT NULL,
  member       BIGINT NOT NULL,
  activity_seq BIGINT NOT NULL,
  actor        BIGINT NOT NULL,
  PRIMARY KEY (scope, member, activity_seq)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

CREATE TABLE IF NOT EXISTS scope_everyone (
  scope     BIGINT NOT NULL,
  revision  BIGINT NOT NULL,
  author    BIGINT NOT NULL,
  principal BIGINT NOT NULL, -- 0 when the author acts for themself
  PRIMARY KEY (scope, revision),
  KEY scope_everyone_by_author (scope, author, revision, principal),
  KEY scope_everyone_by_principal (scope, principal, revision)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

-- bits holds 64 words of 64 bits, little-endian; block = revision / 4096.
CREATE TABLE IF NOT EXISTS scope_removed_blocks (
  scope BIGINT         NOT NULL,
  block BIGINT         NOT NULL,
  count BIGINT         NOT NULL,
  bits  VARBINARY(512) NOT NULL,
  PRIMARY KEY (scope, block)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

CREATE TABLE IF NOT EXISTS scope_everyone_blocks (
  scope BIGINT         NOT NULL,
  block BIGINT         NOT NULL,
  count BIGINT         NOT NULL,
  bits  VARBINARY(512) NOT NULL,
  PRIMARY KEY (scope, block)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

CREATE TABLE IF NOT EXISTS scope_memberships (
  scope          BIGINT   NOT NULL,
  member         BIGINT   NOT NULL,
  joined         SMALLINT NOT NULL,
  visible        SMALLINT NOT NULL,
  eff            BIGINT   NOT NULL,
  epoch          BIGINT   NOT NULL,
  parent_epoch   BIGINT   NOT NULL,
  membership_lsn BIGINT   NOT NULL,
  PRIMARY KEY (scope, member),
  KEY scope_memberships_by_member (member, joined, scope),
  KEY scope_memberships_left (member, joined, membership_lsn)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

-- A member who never chose anything has no row.
CREATE TABLE IF NOT EXISTS scope_notification_settings (
  member           BIGINT   NOT NULL,
  scope            BIGINT   NOT NULL,
  level            SMALLINT, -- NULL inherits
  `until`          BIGINT   NOT NULL, -- a word of TiDB's
  followed         SMALLINT NOT NULL,
  notification_lsn BIGINT   NOT NULL,
  PRIMARY KEY (member, scope),
  KEY scope_notification_settings_followed (scope, followed, member)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

CREATE TABLE IF NOT EXISTS conversation_member_states (
  member                 BIGINT   NOT NULL,
  scope                  BIGINT   NOT NULL,
  read_revision          BIGINT   NOT NULL,
  manual_unread          SMALLINT NOT NULL,
  manual_unread_from     BIGINT   NOT NULL, -- 0 for none
  manual_unread_version  BIGINT   NOT NULL,
  e                      BIGINT   NOT NULL,
  author_at_e            BIGINT   NOT NULL,
  principal_at_e         BIGINT   NOT NULL,
  own_removed_above_e    BIGINT   NOT NULL,
  own_everyone_above_e   BIGINT   NOT NULL,
  direct_above_e         BIGINT   NOT NULL,
  targets_above_e        BIGINT   NOT NULL,
  activity_read_seq      BIGINT   NOT NULL,
  signal_at              BIGINT   NOT NULL,
  actor_at               BIGINT   NOT NULL,
  activity_targets_above BIGINT   NOT NULL,
  state_lsn              BIGINT   NOT NULL,
  PRIMARY KEY (member, scope)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

CREATE TABLE IF NOT EXISTS member_blocks (
  member BIGINT NOT NULL,
  other  BIGINT NOT NULL,
  PRIMARY KEY (member, other),
  KEY member_blocks_by_other (other, member)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

CREATE TABLE IF NOT EXISTS operations (
  workspace  BIGINT         NOT NULL,
  actor      BIGINT         NOT NULL, -- 0 for the system
  op_id      VARBINARY(512) NOT NULL,
  digest     VARBINARY(64)  NOT NULL,
  result     MEDIUMBLOB     NOT NULL,
  created_at BIGINT         NOT NULL,
  PRIMARY KEY (workspace, actor, op_id),
  KEY operations_by_age (created_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

-- Rows of the runtime that keeps its own facts elsewhere. The row with the empty member id is
-- the scope's frontier. Rank columns are NULL in rows of versions that had none.
CREATE TABLE IF NOT EXISTS member_scope_unread_runtime_snapshots (
  workspace_id                  VARBINARY(512) NOT NULL,
  member_id                     VARBINARY(512) NOT NULL,
  scope_id                      VARBINARY(512) NOT NULL,
  message_unread_count          BIGINT         NOT NULL,
  activity_unread_count         BIGINT         NOT NULL,
  manual_unread                 SMALLINT       NOT NULL,
  last_message_read_seq         BIGINT         NOT NULL,
  last_activity_read_seq        BIGINT         NOT NULL,
  effective_from_seq            BIGINT         NOT NULL,
  latest_message_accounted_seq  BIGINT         NOT NULL,
  latest_activity_accounted_seq BIGINT         NOT NULL,
  notification_state            VARBINARY(255) NOT NULL,
  membership_visibility         VARBINARY(255) NOT NULL,
  scope_roster_generation       BIGINT         NOT NULL,
  scope_message_generation      BIGINT         NOT NULL,
  scope_activity_generation     BIGINT         NOT NULL,
  membership_generation         BIGINT         NOT NULL,
  notification_generation       BIGINT         NOT NULL,
  manual_unread_generation      BIGINT         NOT NULL,
  rewind_generation             BIGINT         NOT NULL,
  task_snapshot_format_version  BIGINT,
  task_snapshot_json            MEDIUMBLOB,
  e                             BIGINT,
  author_at_e                   BIGINT,
  principal_at_e                BIGINT,
  own_removed_above_e           BIGINT,
  own_everyone_above_e          BIGINT,
  direct_above_e                BIGINT,
  targets_above_e               BIGINT,
  signal_at                     BIGINT,
  actor_at                      BIGINT,
  activity_targets_above        BIGINT,
  head_revision                 BIGINT,
  floor_revision                BIGINT,
  signal_head                   BIGINT,
  author_head                   BIGINT,
  principal_head                BIGINT,
  actor_head                    BIGINT,
  updated_at                    BIGINT         NOT NULL,
  -- What a row of the runtime's snapshot holds beside its columns, as JSON.
  rank_detail                   MEDIUMBLOB,
  PRIMARY KEY (workspace_id, member_id, scope_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

-- A task that was never assigned, named or given a status has no row.
CREATE TABLE IF NOT EXISTS tasks (
  scope    BIGINT          PRIMARY KEY,
  assignee BIGINT          NOT NULL, -- 0 for nobody
  status   VARBINARY(255)  NOT NULL,
  title    VARBINARY(2048) NOT NULL,
  task_lsn BIGINT          NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

-- One row for each fact that somebody has to be told of, written with the fact and never changed.
-- humans and agents are varints of the members' local numbers. event ascends within a workspace.
CREATE TABLE IF NOT EXISTS outbox (
  workspace  BIGINT         NOT NULL,
  event      BIGINT         NOT NULL,
  version    SMALLINT       NOT NULL,
  kind       SMALLINT       NOT NULL, -- 1 a message of a task, 2 an activity of a task
  scope      BIGINT         NOT NULL,
  seq        BIGINT         NOT NULL, -- of the message or of the activity
  id         VARBINARY(512) NOT NULL,
  actor      BIGINT         NOT NULL,
  humans     BLOB,
  agents     BLOB,
  created_at BIGINT         NOT NULL,
  PRIMARY KEY (workspace, event)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

-- One row for each member of a dm, and for each member whom a task has ever been delivered to or
-- who marked it unread. Where the logs stood when the row was last touched is message_seq and
-- activity_seq.
CREATE TABLE IF NOT EXISTS im_conversation_index (
  member       BIGINT         NOT NULL,
  scope        BIGINT         NOT NULL,
  kind         VARBINARY(255) NOT NULL, -- 'task' or 'dm'
  sort_at      BIGINT         NOT NULL, -- milliseconds
  message_seq  BIGINT         NOT NULL,
  activity_seq BIGINT         NOT NULL,
  updated_lsn  BIGINT         NOT NULL,
  PRIMARY KEY (member, scope),
  KEY im_conversation_index_by_time (member, kind, sort_at, scope)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

-- Rows of outbox up to here have been looked at; those above have no state yet.
CREATE TABLE IF NOT EXISTS outbox_progress (
  workspace BIGINT PRIMARY KEY,
  through   BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

CREATE TABLE IF NOT EXISTS outbox_state (
  workspace  BIGINT   NOT NULL,
  event      BIGINT   NOT NULL,
  state      SMALLINT NOT NULL, -- 1 leased, 2 deferred, 3 failed, 4 behind, 5 delivered, 6 dead
  due_at     BIGINT, -- when it may be taken again, of a leased row the end; NULL when finished
  lease      BIGINT   NOT NULL, -- the claim that has it; 0 for none
  term       BIGINT   NOT NULL, -- of the claim
  owner      BLOB     NOT NULL, -- likewise, for people
  failures   BIGINT   NOT NULL,
  deferrals  BIGINT   NOT NULL,
  error      BLOB     NOT NULL,
  created_at BIGINT   NOT NULL, -- of the row of outbox
  settled_at BIGINT, -- NULL while unfinished
  PRIMARY KEY (workspace, event),
  KEY outbox_state_due (due_at, workspace, event, state, created_at),
  KEY outbox_state_leased (state, workspace, event),
  KEY outbox_state_delivered (state, settled_at, workspace, event)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

-- The agents of unfinished rows that were put off, so that later rows of theirs stay behind.
CREATE TABLE IF NOT EXISTS outbox_waits (
  member BIGINT NOT NULL,
  event  BIGINT NOT NULL,
  PRIMARY KEY (member, event)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

-- One row for each recipient that ever had a wake or an address.
CREATE TABLE IF NOT EXISTS wake_endpoints (
  recipient BIGINT   PRIMARY KEY,
  url       BLOB, -- NULL: wakes wait to be read
  secret    BLOB,
  disabled  SMALLINT NOT NULL, -- the endpoint said that it is gone
  last_wake BIGINT   NOT NULL, -- highest number given out
  waiting   BIGINT   NOT NULL, -- wakes
  attempts  BIGINT   NOT NULL, -- that the first of them has cost
  streak    BIGINT   NOT NULL, -- failures since the last success
  slow      SMALLINT NOT NULL,
  due_at    BIGINT, -- NULL when there is nothing to send
  lease     BIGINT   NOT NULL,
  term      BIGINT   NOT NULL,
  owner     BLOB     NOT NULL,
  error     BLOB     NOT NULL,
  KEY wake_endpoints_due (slow, due_at),
  KEY wake_endpoints_leased (lease, recipient)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

CREATE TABLE IF NOT EXISTS wakes (
  recipient  BIGINT         NOT NULL,
  wake       BIGINT         NOT NULL,
  kind       SMALLINT       NOT NULL, -- 1 task message, 2 task activity, 3 threshold, 4 idle
  event      BIGINT         NOT NULL, -- of outbox; the LSN for 3 and 4
  scope      BIGINT         NOT NULL, -- 0 for none
  seq        BIGINT         NOT NULL,
  id         VARBINARY(512),
  actor      BIGINT         NOT NULL, -- for 3 and 4 the member concerned
  amount     BIGINT         NOT NULL,
  created_at BIGINT         NOT NULL,
  queued_at  BIGINT         NOT NULL,
  PRIMARY KEY (recipient, wake)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

-- What was given up: a wake, or a row of outbox, which stays where it is (recipient 0).
CREATE TABLE IF NOT EXISTS dead_letters (
  letter     BIGINT         AUTO_INCREMENT PRIMARY KEY,
  workspace  BIGINT         NOT NULL,
  recipient  BIGINT         NOT NULL,
  wake       BIGINT         NOT NULL,
  kind       SMALLINT       NOT NULL,
  event      BIGINT         NOT NULL,
  scope      BIGINT         NOT NULL,
  seq        BIGINT         NOT NULL,
  id         VARBINARY(512),
  actor      BIGINT         NOT NULL,
  amount     BIGINT         NOT NULL,
  created_at BIGINT         NOT NULL,
  overflow   SMALLINT       NOT NULL,
  attempts   BIGINT         NOT NULL,
  error      BLOB           NOT NULL,
  died_at    BIGINT         NOT NULL,
  KEY dead_letters_by_workspace (workspace, letter),
  KEY dead_letters_by_recipient (recipient),
  KEY dead_letters_by_age (died_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

CREATE TABLE IF NOT EXISTS webhooks (
  webhook    BIGINT         PRIMARY KEY,
  workspace  BIGINT         NOT NULL,
  id         VARBINARY(512) NOT NULL,
  threshold  BIGINT         NOT NULL, -- messages, 0 for never
  idle       BIGINT         NOT NULL, -- milliseconds, 0 for never
  created_at BIGINT         NOT NULL,
  UNIQUE KEY webhooks_by_id (workspace, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

-- Whom a webhook watches, and what it remembers of each.
CREATE TABLE IF NOT EXISTS webhook_states (
  webhook    BIGINT   NOT NULL,
  member     BIGINT   NOT NULL,
  seen       SMALLINT NOT NULL,
  armed      SMALLINT NOT NULL,
  idle_since BIGINT   NOT NULL, -- 0 for not idle
  idle_lsn   BIGINT   NOT NULL,
  idle_fired SMALLINT NOT NULL,
  PRIMARY KEY (webhook, member)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;

CREATE TABLE IF NOT EXISTS sessions (
  scope       BIGINT PRIMARY KEY,
  owner       BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL, -- milliseconds; of the last entry or change, never of a read
  replaced_by BIGINT NOT NULL, -- the scope it was merged into, 0 for none
  KEY sessions_by_time (owner, replaced_by, updated_at, scope)
) ENGINE = InnoDB DEFAULT CHARACTER SET binary;
