-- The facts of the hub, in the form that SQLite has after its first five migrations: a number names
-- the same schema everywhere. Ids and texts are bytes: they compare bytewise and may be any, NUL
-- included. A member or scope number carries its workspace in the upper 32 bits: a range of numbers
-- is a workspace, and one number names a row of the whole database.

-- +goose Up

CREATE TABLE workspaces (
  workspace BIGINT PRIMARY KEY,
  id        BYTEA  NOT NULL UNIQUE,
  name      BYTEA  NOT NULL,
  term      BIGINT NOT NULL,
  lsn       BIGINT NOT NULL
);

CREATE TABLE members (
  member       BIGINT   PRIMARY KEY,
  workspace    BIGINT   NOT NULL,
  id           BYTEA    NOT NULL,
  agent        SMALLINT NOT NULL,
  active       SMALLINT NOT NULL,
  display_name BYTEA    NOT NULL,
  avatar       BYTEA    NOT NULL,
  badge        SMALLINT NOT NULL,
  private      SMALLINT NOT NULL,
  erased       SMALLINT NOT NULL,
  member_lsn   BIGINT   NOT NULL,
  created_at   BIGINT   NOT NULL
);
CREATE UNIQUE INDEX members_by_id ON members (workspace, id);
CREATE INDEX members_erased ON members (erased, member) WHERE erased = 1;

CREATE TABLE scopes (
  scope               BIGINT   PRIMARY KEY,
  workspace           BIGINT   NOT NULL,
  id                  BYTEA    NOT NULL,
  type                SMALLINT NOT NULL,
  name                BYTEA    NOT NULL,
  parent              BIGINT   NOT NULL, -- 0 for none
  root_message        BYTEA,
  history             SMALLINT NOT NULL,
  archived            SMALLINT NOT NULL,
  tags                BYTEA, -- JSON array, NULL for none
  active              SMALLINT NOT NULL,
  thinking            SMALLINT NOT NULL,
  owner               BIGINT   NOT NULL, -- 0 for none
  latest_seq          BIGINT   NOT NULL,
  head_revision       BIGINT   NOT NULL,
  floor_revision      BIGINT   NOT NULL,
  floor_seq           BIGINT   NOT NULL,
  latest_activity_seq BIGINT   NOT NULL,
  signal_head         BIGINT   NOT NULL,
  roster_generation   BIGINT   NOT NULL,
  last_lsn            BIGINT   NOT NULL,
  latest_id           BYTEA, -- newest live message
  latest_at           BIGINT   NOT NULL,
  last_activity_at    BIGINT   NOT NULL,
  replies             BIGINT   NOT NULL,
  created_at          BIGINT   NOT NULL,
  -- What a session waits for its owner for.
  pending_input       SMALLINT NOT NULL,
  pending_permission  SMALLINT NOT NULL
);
CREATE UNIQUE INDEX scopes_by_id ON scopes (workspace, id);
CREATE INDEX scopes_by_type ON scopes (workspace, type, id);
CREATE INDEX scopes_by_parent ON scopes (parent, id) WHERE parent <> 0;

-- A removed message stays as a tombstone (live = 0) until the floor passes it. revision is
-- NULL for an entry that is not readable or was never counted.
CREATE TABLE scope_messages (
  scope          BIGINT   NOT NULL,
  seq            BIGINT   NOT NULL,
  revision       BIGINT,
  id             BYTEA    NOT NULL,
  kind           BYTEA    NOT NULL,
  author         BIGINT   NOT NULL,
  principal      BIGINT, -- NULL when the author acts for themself
  author_rank    BIGINT   NOT NULL,
  principal_rank BIGINT   NOT NULL,
  named          BYTEA, -- varints of the members' local numbers
  recipients     BYTEA,
  everyone       SMALLINT NOT NULL,
  live           SMALLINT NOT NULL,
  silent         SMALLINT NOT NULL,
  reply_to       BYTEA,
  peer_scope     BIGINT   NOT NULL, -- 0 for none
  peer_seq       BIGINT   NOT NULL,
  peer_revision  BIGINT   NOT NULL,
  thread         BIGINT   NOT NULL, -- the thread that hangs on the message, 0 for none
  op_actor       BIGINT, -- NULL on the channel copy of a broadcast reply and on moved rows
  op_id          BYTEA,
  op_digest      BYTEA,
  local_id       BYTEA,
  expires_at     BIGINT, -- milliseconds, NULL for never
  created_at     BIGINT   NOT NULL,
  edited_at      BIGINT   NOT NULL,
  payload        BYTEA,
  PRIMARY KEY (scope, seq)
);
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
CREATE INDEX scope_messages_expiring
  ON scope_messages ((scope >> 32), expires_at) WHERE live = 1 AND expires_at IS NOT NULL;

CREATE TABLE scope_writer_totals (
  scope              BIGINT NOT NULL,
  member             BIGINT NOT NULL,
  author_head        BIGINT NOT NULL,
  principal_head     BIGINT NOT NULL,
  actor_head         BIGINT NOT NULL,
  author_at_floor    BIGINT NOT NULL,
  principal_at_floor BIGINT NOT NULL,
  PRIMARY KEY (scope, member)
);

CREATE TABLE message_mentions (
  scope    BIGINT   NOT NULL,
  member   BIGINT   NOT NULL,
  revision BIGINT   NOT NULL,
  author   BIGINT   NOT NULL,
  neutral  SMALLINT NOT NULL,
  live     SMALLINT NOT NULL,
  everyone SMALLINT NOT NULL,
  PRIMARY KEY (scope, member, revision)
);
CREATE INDEX message_mentions_by_revision ON message_mentions (scope, revision);

CREATE TABLE message_targets (
  scope    BIGINT   NOT NULL,
  member   BIGINT   NOT NULL,
  revision BIGINT   NOT NULL,
  author   BIGINT   NOT NULL,
  live     SMALLINT NOT NULL,
  PRIMARY KEY (scope, member, revision)
);
CREATE INDEX message_targets_by_revision ON message_targets (scope, revision);

CREATE TABLE scope_activity_events (
  scope             BIGINT   NOT NULL,
  seq               BIGINT   NOT NULL,
  id                BYTEA    NOT NULL,
  kind              BYTEA    NOT NULL,
  high_signal       SMALLINT NOT NULL,
  signal_rank       BIGINT, -- NULL for a low-signal activity
  actor             BIGINT   NOT NULL,
  actor_rank        BIGINT,
  recipients        BYTEA,
  op_actor          BIGINT,
  op_id             BYTEA,
  op_digest         BYTEA,
  created_at        BIGINT   NOT NULL,
  payload           BYTEA,
  -- What an activity refers to: 'task_event' for the timeline of a task, 'message' for the one that
  -- goes with a message of a task.
  activity_ref_type BYTEA,
  activity_ref_id   BYTEA,
  -- Whom an assignment is about, NULL for nobody.
  subject           BIGINT,
  -- The revision of the message that the activity goes with, NULL for none.
  revision          BIGINT,
  PRIMARY KEY (scope, seq)
);
CREATE UNIQUE INDEX scope_activity_events_by_id ON scope_activity_events (scope, id);
CREATE UNIQUE INDEX scope_activity_events_by_op ON scope_activity_events (op_actor, op_id)
  WHERE op_actor IS NOT NULL;
CREATE INDEX scope_activity_events_by_signal ON scope_activity_events (scope, seq, signal_rank)
  WHERE signal_rank IS NOT NULL;
CREATE INDEX scope_activity_events_by_actor
  ON scope_activity_events (scope, actor, seq, actor_rank) WHERE actor_rank IS NOT NULL;

CREATE TABLE activity_targets (
  scope        BIGINT NOT NULL,
  member       BIGINT NOT NULL,
  activity_seq BIGINT NOT NULL,
  actor        BIGINT NOT NULL,
  PRIMARY KEY (scope, member, activity_seq)
);

CREATE TABLE scope_everyone (
  scope     BIGINT NOT NULL,
  revision  BIGINT NOT NULL,
  author    BIGINT NOT NULL,
  principal BIGINT NOT NULL, -- 0 when the author acts for themself
  PRIMARY KEY (scope, revision)
);
CREATE INDEX scope_everyone_by_author ON scope_everyone (scope, author, revision, principal);
CREATE INDEX scope_everyone_by_principal ON scope_everyone (scope, principal, revision)
  WHERE principal <> 0;

-- bits holds 64 words of 64 bits, little-endian; block = revision / 4096.
CREATE TABLE scope_removed_blocks (
  scope BIGINT NOT NULL,
  block BIGINT NOT NULL,
  count BIGINT NOT NULL,
  bits  BYTEA  NOT NULL,
  PRIMARY KEY (scope, block)
);

CREATE TABLE scope_everyone_blocks (
  scope BIGINT NOT NULL,
  block BIGINT NOT NULL,
  count BIGINT NOT NULL,
  bits  BYTEA  NOT NULL,
  PRIMARY KEY (scope, block)
);

CREATE TABLE scope_memberships (
  scope          BIGINT   NOT NULL,
  member         BIGINT   NOT NULL,
  joined         SMALLINT NOT NULL,
  visible        SMALLINT NOT NULL,
  eff            BIGINT   NOT NULL,
  epoch          BIGINT   NOT NULL,
  parent_epoch   BIGINT   NOT NULL,
  membership_lsn BIGINT   NOT NULL,
  PRIMARY KEY (scope, member)
);
CREATE INDEX scope_memberships_by_member ON scope_memberships (member, joined, scope);
CREATE INDEX scope_memberships_left ON scope_memberships (member, membership_lsn)
  WHERE joined = 0;

-- A member who never chose anything has no row.
CREATE TABLE scope_notification_settings (
  member           BIGINT   NOT NULL,
  scope            BIGINT   NOT NULL,
  level            SMALLINT, -- NULL inherits
  until            BIGINT   NOT NULL,
  followed         SMALLINT NOT NULL,
  notification_lsn BIGINT   NOT NULL,
  PRIMARY KEY (member, scope)
);

CREATE TABLE conversation_member_states (
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
);

CREATE TABLE member_blocks (
  member BIGINT NOT NULL,
  other  BIGINT NOT NULL,
  PRIMARY KEY (member, other)
);
CREATE INDEX member_blocks_by_other ON member_blocks (other, member);

CREATE TABLE operations (
  workspace  BIGINT NOT NULL,
  actor      BIGINT NOT NULL, -- 0 for the system
  op_id      BYTEA  NOT NULL,
  digest     BYTEA  NOT NULL,
  result     BYTEA  NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (workspace, actor, op_id)
);
CREATE INDEX operations_by_age ON operations (created_at);

-- Rows of the runtime that keeps its own facts elsewhere. The row with the empty member id is
-- the scope's frontier. Rank columns are NULL in rows of versions that had none.
CREATE TABLE member_scope_unread_runtime_snapshots (
  workspace_id                  BYTEA    NOT NULL,
  member_id                     BYTEA    NOT NULL,
  scope_id                      BYTEA    NOT NULL,
  message_unread_count          BIGINT   NOT NULL,
  activity_unread_count         BIGINT   NOT NULL,
  manual_unread                 SMALLINT NOT NULL,
  last_message_read_seq         BIGINT   NOT NULL,
  last_activity_read_seq        BIGINT   NOT NULL,
  effective_from_seq            BIGINT   NOT NULL,
  latest_message_accounted_seq  BIGINT   NOT NULL,
  latest_activity_accounted_seq BIGINT   NOT NULL,
  notification_state            BYTEA    NOT NULL,
  membership_visibility         BYTEA    NOT NULL,
  scope_roster_generation       BIGINT   NOT NULL,
  scope_message_generation      BIGINT   NOT NULL,
  scope_activity_generation     BIGINT   NOT NULL,
  membership_generation         BIGINT   NOT NULL,
  notification_generation       BIGINT   NOT NULL,
  manual_unread_generation      BIGINT   NOT NULL,
  rewind_generation             BIGINT   NOT NULL,
  task_snapshot_format_version  BIGINT,
  task_snapshot_json            BYTEA,
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
  updated_at                    BIGINT   NOT NULL,
  -- What a row of the runtime's snapshot holds beside its columns, as JSON.
  rank_detail                   BYTEA,
  PRIMARY KEY (workspace_id, member_id, scope_id)
);

CREATE INDEX scope_messages_uncounted ON scope_messages (author)
  WHERE revision IS NULL AND payload IS NOT NULL;

CREATE INDEX scope_activity_events_by_revision ON scope_activity_events (scope, revision, seq)
  WHERE revision IS NOT NULL;
CREATE INDEX scope_activity_events_of_task ON scope_activity_events (scope, seq)
  WHERE activity_ref_type = 'task_event';
CREATE INDEX scope_activity_events_with_payload ON scope_activity_events (actor)
  WHERE payload IS NOT NULL;

-- A task that was never assigned, named or given a status has no row.
CREATE TABLE tasks (
  scope    BIGINT PRIMARY KEY,
  assignee BIGINT NOT NULL, -- 0 for nobody
  status   BYTEA  NOT NULL,
  title    BYTEA  NOT NULL,
  task_lsn BIGINT NOT NULL
);

-- Who watches a task, and who follows a thread of their own accord.
CREATE INDEX scope_notification_settings_followed
  ON scope_notification_settings (scope, member) WHERE followed = 1;

-- One row for each fact that somebody has to be told of, written with the fact and never changed.
-- humans and agents are varints of the members' local numbers. event ascends within a workspace.
CREATE TABLE outbox (
  workspace  BIGINT   NOT NULL,
  event      BIGINT   NOT NULL,
  version    SMALLINT NOT NULL,
  kind       SMALLINT NOT NULL, -- 1 a message of a task, 2 an activity of a task
  scope      BIGINT   NOT NULL,
  seq        BIGINT   NOT NULL, -- of the message or of the activity
  id         BYTEA    NOT NULL,
  actor      BIGINT   NOT NULL,
  humans     BYTEA,
  agents     BYTEA,
  created_at BIGINT   NOT NULL,
  PRIMARY KEY (workspace, event)
);

-- One row for each member of a dm, and for each member whom a task has ever been delivered to or
-- who marked it unread. Where the logs stood when the row was last touched is message_seq and
-- activity_seq.
CREATE TABLE im_conversation_index (
  member       BIGINT NOT NULL,
  scope        BIGINT NOT NULL,
  kind         BYTEA  NOT NULL, -- 'task' or 'dm'
  sort_at      BIGINT NOT NULL, -- milliseconds
  message_seq  BIGINT NOT NULL,
  activity_seq BIGINT NOT NULL,
  updated_lsn  BIGINT NOT NULL,
  PRIMARY KEY (member, scope)
);
CREATE INDEX im_conversation_index_by_time
  ON im_conversation_index (member, kind, sort_at, scope);

-- Rows of outbox up to here have been looked at; those above have no state yet.
CREATE TABLE outbox_progress (
  workspace BIGINT PRIMARY KEY,
  through   BIGINT NOT NULL
);

CREATE TABLE outbox_state (
  workspace  BIGINT   NOT NULL,
  event      BIGINT   NOT NULL,
  state      SMALLINT NOT NULL, -- 1 leased, 2 deferred, 3 failed, 4 behind, 5 delivered, 6 dead
  due_at     BIGINT, -- when it may be taken again, of a leased row the end; NULL when finished
  lease      BIGINT   NOT NULL, -- the claim that has it; 0 for none
  term       BIGINT   NOT NULL, -- of the claim
  owner      BYTEA    NOT NULL, -- likewise, for people
  failures   BIGINT   NOT NULL,
  deferrals  BIGINT   NOT NULL,
  error      BYTEA    NOT NULL,
  created_at BIGINT   NOT NULL, -- of the row of outbox
  settled_at BIGINT, -- NULL while unfinished
  PRIMARY KEY (workspace, event)
);
CREATE INDEX outbox_state_due ON outbox_state (due_at, workspace, event, state, created_at)
  WHERE due_at IS NOT NULL;
CREATE INDEX outbox_state_leased ON outbox_state (workspace, event) WHERE state = 1;
CREATE INDEX outbox_state_delivered ON outbox_state (settled_at, workspace, event)
  WHERE state = 5;

-- The agents of unfinished rows that were put off, so that later rows of theirs stay behind.
CREATE TABLE outbox_waits (
  member BIGINT NOT NULL,
  event  BIGINT NOT NULL,
  PRIMARY KEY (member, event)
);

-- One row for each recipient that ever had a wake or an address.
CREATE TABLE wake_endpoints (
  recipient BIGINT   PRIMARY KEY,
  url       BYTEA, -- NULL: wakes wait to be read
  secret    BYTEA,
  disabled  SMALLINT NOT NULL, -- the endpoint said that it is gone
  last_wake BIGINT   NOT NULL, -- highest number given out
  waiting   BIGINT   NOT NULL, -- wakes
  attempts  BIGINT   NOT NULL, -- that the first of them has cost
  streak    BIGINT   NOT NULL, -- failures since the last success
  slow      SMALLINT NOT NULL,
  due_at    BIGINT, -- NULL when there is nothing to send
  lease     BIGINT   NOT NULL,
  term      BIGINT   NOT NULL,
  owner     BYTEA    NOT NULL,
  error     BYTEA    NOT NULL
);
CREATE INDEX wake_endpoints_due ON wake_endpoints (slow, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX wake_endpoints_leased ON wake_endpoints (recipient) WHERE lease <> 0;

CREATE TABLE wakes (
  recipient  BIGINT   NOT NULL,
  wake       BIGINT   NOT NULL,
  kind       SMALLINT NOT NULL, -- 1 task message, 2 task activity, 3 threshold, 4 idle
  event      BIGINT   NOT NULL, -- of outbox; the LSN for 3 and 4
  scope      BIGINT   NOT NULL, -- 0 for none
  seq        BIGINT   NOT NULL,
  id         BYTEA,
  actor      BIGINT   NOT NULL, -- for 3 and 4 the member concerned
  amount     BIGINT   NOT NULL,
  created_at BIGINT   NOT NULL,
  queued_at  BIGINT   NOT NULL,
  PRIMARY KEY (recipient, wake)
);

-- What was given up: a wake, or a row of outbox, which stays where it is (recipient 0).
CREATE TABLE dead_letters (
  letter     BIGINT   GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  workspace  BIGINT   NOT NULL,
  recipient  BIGINT   NOT NULL,
  wake       BIGINT   NOT NULL,
  kind       SMALLINT NOT NULL,
  event      BIGINT   NOT NULL,
  scope      BIGINT   NOT NULL,
  seq        BIGINT   NOT NULL,
  id         BYTEA,
  actor      BIGINT   NOT NULL,
  amount     BIGINT   NOT NULL,
  created_at BIGINT   NOT NULL,
  overflow   SMALLINT NOT NULL,
  attempts   BIGINT   NOT NULL,
  error      BYTEA    NOT NULL,
  died_at    BIGINT   NOT NULL
);
CREATE INDEX dead_letters_by_workspace ON dead_letters (workspace, letter);
CREATE INDEX dead_letters_by_recipient ON dead_letters (recipient) WHERE recipient <> 0;
CREATE INDEX dead_letters_by_age ON dead_letters (died_at);

CREATE TABLE webhooks (
  webhook    BIGINT PRIMARY KEY,
  workspace  BIGINT NOT NULL,
  id         BYTEA  NOT NULL,
  threshold  BIGINT NOT NULL, -- messages, 0 for never
  idle       BIGINT NOT NULL, -- milliseconds, 0 for never
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX webhooks_by_id ON webhooks (workspace, id);

-- Whom a webhook watches, and what it remembers of each.
CREATE TABLE webhook_states (
  webhook    BIGINT   NOT NULL,
  member     BIGINT   NOT NULL,
  seen       SMALLINT NOT NULL,
  armed      SMALLINT NOT NULL,
  idle_since BIGINT   NOT NULL, -- 0 for not idle
  idle_lsn   BIGINT   NOT NULL,
  idle_fired SMALLINT NOT NULL,
  PRIMARY KEY (webhook, member)
);

CREATE TABLE sessions (
  scope       BIGINT PRIMARY KEY,
  owner       BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL, -- milliseconds; of the last entry or change, never of a read
  replaced_by BIGINT NOT NULL -- the scope it was merged into, 0 for none
);
CREATE INDEX sessions_by_time ON sessions (owner, updated_at, scope) WHERE replaced_by = 0;
