-- Tasks, activities, and what they have to cause. Nothing here is written for a message of a
-- channel.

-- +goose Up

-- What an activity refers to: 'task_event' for the timeline of a task, 'message' for the one that
-- goes with a message of a task.
ALTER TABLE scope_activity_events ADD COLUMN activity_ref_type TEXT;
ALTER TABLE scope_activity_events ADD COLUMN activity_ref_id BLOB;
-- Whom an assignment is about, NULL for nobody.
ALTER TABLE scope_activity_events ADD COLUMN subject INTEGER;
-- The revision of the message that the activity goes with, NULL for none.
ALTER TABLE scope_activity_events ADD COLUMN revision INTEGER;
CREATE INDEX scope_activity_events_by_revision ON scope_activity_events (scope, revision, seq)
  WHERE revision IS NOT NULL;
CREATE INDEX scope_activity_events_of_task ON scope_activity_events (scope, seq)
  WHERE activity_ref_type = 'task_event';
CREATE INDEX scope_activity_events_with_payload ON scope_activity_events (actor)
  WHERE payload IS NOT NULL;

-- A task that was never assigned, named or given a status has no row.
CREATE TABLE tasks (
  scope    INTEGER PRIMARY KEY,
  assignee INTEGER NOT NULL, -- 0 for nobody
  status   TEXT    NOT NULL,
  title    TEXT    NOT NULL,
  task_lsn INTEGER NOT NULL
);

-- Who watches a task, and who follows a thread of their own accord.
CREATE INDEX scope_notification_settings_followed
  ON scope_notification_settings (scope, member) WHERE followed = 1;

-- One row for each fact that somebody has to be told of, written with the fact and never changed.
-- humans and agents are varints of the members' local numbers. event ascends within a workspace.
CREATE TABLE outbox (
  workspace  INTEGER NOT NULL,
  event      INTEGER NOT NULL,
  version    INTEGER NOT NULL,
  kind       INTEGER NOT NULL, -- 1 a message of a task, 2 an activity of a task
  scope      INTEGER NOT NULL,
  seq        INTEGER NOT NULL, -- of the message or of the activity
  id         BLOB    NOT NULL,
  actor      INTEGER NOT NULL,
  humans     BLOB,
  agents     BLOB,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (workspace, event)
) WITHOUT ROWID;

-- One row for each member of a dm, and for each member whom a task has ever been delivered to or
-- who marked it unread. Where the logs stood when the row was last touched is message_seq and
-- activity_seq.
CREATE TABLE im_conversation_index (
  member       INTEGER NOT NULL,
  scope        INTEGER NOT NULL,
  kind         TEXT    NOT NULL, -- 'task' or 'dm'
  sort_at      INTEGER NOT NULL, -- milliseconds
  message_seq  INTEGER NOT NULL,
  activity_seq INTEGER NOT NULL,
  updated_lsn  INTEGER NOT NULL,
  PRIMARY KEY (member, scope)
) WITHOUT ROWID;
CREATE INDEX im_conversation_index_by_time
  ON im_conversation_index (member, kind, sort_at, scope);

-- +goose Down

DROP TABLE im_conversation_index;
DROP TABLE outbox;
DROP INDEX scope_notification_settings_followed;
DROP TABLE tasks;
DROP INDEX scope_activity_events_with_payload;
DROP INDEX scope_activity_events_of_task;
DROP INDEX scope_activity_events_by_revision;
ALTER TABLE scope_activity_events DROP COLUMN revision;
ALTER TABLE scope_activity_events DROP COLUMN subject;
ALTER TABLE scope_activity_events DROP COLUMN activity_ref_id;
ALTER TABLE scope_activity_events DROP COLUMN activity_ref_type;
