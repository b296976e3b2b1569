package sqlstore

// mysqlTexts are the statements that MySQL and its kin need in other words. What they have in common:
//
//   - A seek names its bounds as constants: ?2 stands for the second parameter wherever it is
//     needed. A bound that is a column of another relation makes no range.
//   - Where others have a partial index, a column of the row says what is in it.
//   - A table that rows are deleted from may not be read in a subquery of the same statement.
//   - A shift is an unsigned number, and a sum a decimal.
var mysqlTexts = map[string]string{
	"load workspaces": `SELECT ` + mysqlWorkspaceColumns + ` FROM workspaces w ORDER BY w.workspace`,
	"load workspace":  `SELECT ` + mysqlWorkspaceColumns + ` FROM workspaces w WHERE w.id = ?`,

	"load expired messages": `SELECT ` + messageColumns + `
  FROM scope_messages m FORCE INDEX (scope_messages_expiring)
  WHERE m.expiring = ? AND m.expires_at <= ? AND m.live = 1
  ORDER BY m.expires_at, m.scope, m.seq LIMIT ?`,
	"list expiring": `SELECT w.id FROM workspaces w WHERE (
    SELECT m.expires_at FROM scope_messages m FORCE INDEX (scope_messages_expiring)
    WHERE m.expiring = w.workspace AND m.expires_at > 0
    ORDER BY m.expires_at LIMIT 1) <= ?
  ORDER BY w.id`,
	"load payloads of an author": `SELECT ` + messageColumns + ` FROM scopes s
  STRAIGHT_JOIN scope_writer_totals w ON w.scope = s.scope AND w.member = ?1
  STRAIGHT_JOIN scope_messages m FORCE INDEX (scope_messages_by_author)
    ON m.scope = s.scope AND m.author = ?1 AND m.revision > 0
  WHERE s.scope >= ?4 AND s.scope < ?5 AND (s.scope <> ?2 OR m.revision > ?3)
    AND m.payload IS NOT NULL
  ORDER BY s.scope, m.revision LIMIT ?6`,
	"load uncounted payloads of an author": `SELECT ` + messageColumns + `
  FROM scope_messages m FORCE INDEX (scope_messages_uncounted)
  WHERE m.author = ? AND m.revision IS NULL AND m.paid = 1 ORDER BY m.scope, m.seq LIMIT ?`,
	"load activity payloads of an actor": `SELECT a.scope, a.seq
  FROM scope_activity_events a FORCE INDEX (scope_activity_events_with_payload)
  WHERE a.actor = ? AND a.paid = 1 ORDER BY a.scope, a.seq LIMIT ?`,

	"trim messages": mysqlTrim("scope_messages m", "m.seq <= k.k2"),
	"trim mentions": mysqlTrim("message_mentions m {index message_mentions_by_revision}",
		"m.revision <= k.k2"),
	"trim targets": mysqlTrim("message_targets m {index message_targets_by_revision}",
		"m.revision <= k.k2"),
	"trim everyone":              mysqlTrim("scope_everyone m", "m.revision <= k.k2"),
	"trim scope_removed_blocks":  mysqlTrim("scope_removed_blocks m", "m.block < k.k2"),
	"trim scope_everyone_blocks": mysqlTrim("scope_everyone_blocks m", "m.block < k.k2"),

	"seek ranks": `SELECT
  coalesce(
    (SELECT m.author_rank FROM scope_messages m {index scope_messages_by_author}
      WHERE m.scope = ?1 AND m.author = ?2 AND m.revision <= ?3
      ORDER BY m.revision DESC LIMIT 1),
    (SELECT w.author_at_floor FROM scope_writer_totals w WHERE w.scope = ?1 AND w.member = ?2)),
  coalesce(
    (SELECT m.principal_rank FROM scope_messages m {index scope_messages_by_principal}
      WHERE m.scope = ?1 AND m.principal = ?2 AND m.revision <= ?3
      ORDER BY m.revision DESC LIMIT 1),
    (SELECT w.principal_at_floor FROM scope_writer_totals w WHERE w.scope = ?1 AND w.member = ?2))`,
	"count crossed": `SELECT
  (SELECT s.type FROM scopes s WHERE s.scope = ?1),
  (SELECT count(*) FROM scope_messages m {index scope_messages_removed_by_author}
    WHERE m.scope = ?1 AND m.author = ?2 AND m.revision > ?3 AND m.revision <= ?4 AND m.live = 0),
  (SELECT count(*) FROM scope_messages m {index scope_messages_removed_by_principal}
    WHERE m.scope = ?1 AND m.principal = ?2 AND m.revision > ?3 AND m.revision <= ?4
    AND m.live = 0),
  (SELECT count(*) FROM scope_everyone v {index scope_everyone_by_author}
    WHERE v.scope = ?1 AND v.author = ?2 AND v.revision > ?3 AND v.revision <= ?4),
  (SELECT count(*) FROM scope_everyone v {index scope_everyone_by_principal}
    WHERE v.scope = ?1 AND v.principal = ?2 AND v.revision > ?3 AND v.revision <= ?4
    AND v.principal <> 0),
  (SELECT count(*) FROM message_mentions t WHERE t.scope = ?1 AND t.member = ?2
    AND t.revision > ?3 AND t.revision <= ?4 AND t.live = 1 AND t.neutral = 0 AND t.everyone = 0),
  (SELECT count(*) FROM message_targets t WHERE t.scope = ?1 AND t.member = ?2
    AND t.revision > ?3 AND t.revision <= ?4 AND t.live = 1)`,
	"seek activity ranks": `SELECT
  (SELECT a.signal_rank FROM scope_activity_events a {index scope_activity_events_by_signal}
    WHERE a.scope = ?1 AND a.signal_seq <= ?4 ORDER BY a.signal_seq DESC LIMIT 1),
  (SELECT a.actor_rank FROM scope_activity_events a {index scope_activity_events_by_actor}
    WHERE a.scope = ?1 AND a.actor = ?2 AND a.actor_seq <= ?4
    ORDER BY a.actor_seq DESC LIMIT 1),
  (SELECT count(*) FROM activity_targets t WHERE t.scope = ?1 AND t.member = ?2
    AND t.activity_seq > ?3 AND t.activity_seq <= ?4)`,
	"seek pair ranks": `SELECT k.k1, k.k2,
  (SELECT m.author_rank FROM scope_messages m {index scope_messages_by_author}
    WHERE m.scope = k.k1 AND m.author = k.k2 AND m.revision <= k.k3
    ORDER BY m.revision DESC LIMIT 1),
  (SELECT a.actor_rank FROM scope_activity_events a {index scope_activity_events_by_actor}
    WHERE a.scope = k.k1 AND a.actor = k.k2 AND a.actor_seq <= k.k4
    ORDER BY a.actor_seq DESC LIMIT 1)
  FROM {keys} k WHERE k.k1 IS NOT NULL`,
	// A search in halves would make no range at each step. What is passed by here are the entries
	// without a revision right below the place.
	"search revision": `SELECT m.revision FROM scope_messages m {index PRIMARY}
  WHERE m.scope = ? AND m.seq <= ? AND m.revision IS NOT NULL ORDER BY m.seq DESC LIMIT 1`,

	"list sessions": `SELECT ` + sessionColumns + `, ` + scopeColumns + `
  FROM sessions x {index sessions_by_time} CROSS JOIN scopes s
  LEFT JOIN scopes p ON p.scope = s.parent
  WHERE x.owner = ?1 AND x.replaced_by = 0 AND x.updated_at <= ?2
    AND (x.updated_at < ?2 OR x.scope < ?3) AND s.scope = x.scope
  ORDER BY x.updated_at DESC, x.scope DESC LIMIT ?4`,
	"list conversations": `SELECT ` + conversationColumns + `, ` + scopeColumns + `
  FROM im_conversation_index c {index im_conversation_index_by_time}
  CROSS JOIN scope_memberships j CROSS JOIN scopes s
  LEFT JOIN scopes p ON p.scope = s.parent
  WHERE c.member = ?1 AND c.kind = ?2 AND c.sort_at <= ?3 AND (c.sort_at < ?3 OR c.scope < ?4)
    AND j.scope = c.scope AND j.member = c.member AND j.joined = 1 AND j.visible = 1
    AND s.scope = c.scope
  ORDER BY c.sort_at DESC, c.scope DESC LIMIT ?5`,

	"outbox: free rows": `UPDATE {keys} k CROSS JOIN outbox_waits w ON w.member = k.k1
    AND w.event <= coalesce((SELECT x.event FROM outbox_waits x
      WHERE x.member = k.k1 ORDER BY x.event LIMIT 1 OFFSET 63), 9223372036854775807)
  CROSS JOIN outbox_state s ON s.workspace = w.member DIV 4294967296 AND s.event = w.event
  SET s.due_at = 1 WHERE s.state = 4 AND s.due_at > 1`,
	"outbox: find holders": `WITH agents AS (SELECT k.k1 AS member FROM {keys} k WHERE k.k1 IS NOT NULL)
  SELECT a.member, (SELECT w.event FROM outbox_waits w
    WHERE w.member = a.member AND NOT EXISTS (SELECT 1 FROM outbox_state s
      WHERE s.workspace = a.member DIV 4294967296 AND s.event = w.event AND s.lease = ?)
    ORDER BY w.event LIMIT 1)
  FROM agents a`,
	"wakes: survey queues": `SELECT CAST(coalesce(sum(waiting), 0) AS SIGNED), ` + surveyedQueues,
}

const mysqlWorkspaceColumns = `w.workspace, w.id, w.name, w.term, w.lsn,
  (SELECT m.member FROM members m FORCE INDEX (members_by_number)
    WHERE m.workspace = w.workspace ORDER BY m.member DESC LIMIT 1),
  (SELECT s.scope FROM scopes s FORCE INDEX (scopes_by_number)
    WHERE s.workspace = w.workspace ORDER BY s.scope DESC LIMIT 1)`

// mysqlTrim deletes the rows of each scope that are within a bound.
func mysqlTrim(table, bound string) string {
	return `DELETE m FROM {keys} k CROSS JOIN ` + table + ` ON m.scope = k.k1 AND ` + bound
}
