-- Payloads of an author are found scope by scope; only entries without a revision need an index
-- of their own. members.erased is 1 while an erasure goes on and 2 when nothing is left of the
-- member: one that was finished before is looked through once more.

-- +goose Up

DROP INDEX scope_messages_with_payload;
CREATE INDEX scope_messages_uncounted ON scope_messages (author)
  WHERE revision IS NULL AND payload IS NOT NULL;

-- What a row of the runtime's snapshot holds beside its columns, as JSON.
ALTER TABLE member_scope_unread_runtime_snapshots ADD COLUMN rank_detail TEXT;
