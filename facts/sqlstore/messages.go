package sqlstore

import (
	"context"
	"slices"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

const messageColumns = `m.scope, m.seq, m.revision, m.id, m.kind, m.author, m.principal,
  m.author_rank, m.principal_rank, m.named, m.recipients, m.everyone, m.live, m.silent,
  m.reply_to, m.peer_scope, m.peer_seq, m.peer_revision, m.thread, m.op_actor, m.op_id, m.op_digest,
  m.local_id, m.expires_at, m.created_at, m.edited_at, m.payload`

var (
	selectMessagesByID = query("load messages by id", 2,
		`SELECT `+messageColumns+` FROM {keys} k CROSS JOIN scope_messages m
  WHERE m.scope = k.k1 AND m.id = k.k2`)
	selectMessagesByOp = query("load messages by operation", 2,
		`SELECT `+messageColumns+` FROM {keys} k CROSS JOIN scope_messages m
  WHERE m.op_actor = k.k1 AND m.op_id = k.k2`)
	selectMessagesByLocalID = query("load messages by local id", 2,
		`SELECT `+messageColumns+` FROM {keys} k CROSS JOIN scope_messages m
  WHERE m.scope = k.k1 AND m.local_id = k.k2`)
	selectMessagesAt = query("load messages by place", 2,
		`SELECT `+messageColumns+` FROM {keys} k CROSS JOIN scope_messages m
  WHERE m.scope = k.k1 AND m.seq = k.k2`)
	selectMessagesUp = query("load messages between, ascending", 0,
		`SELECT `+messageColumns+` FROM scope_messages m
  WHERE m.scope = ? AND m.seq > ? AND m.seq <= ? ORDER BY m.seq LIMIT ?`)
	selectMessagesDown = query("load messages between, descending", 0,
		`SELECT `+messageColumns+` FROM scope_messages m
  WHERE m.scope = ? AND m.seq > ? AND m.seq <= ? ORDER BY m.seq DESC LIMIT ?`)
	selectExpired = query("load expired messages", 0,
		`SELECT `+messageColumns+` FROM scope_messages m {index scope_messages_expiring}
  WHERE m.scope >> 32 = ? AND m.expires_at <= ? AND m.live = 1
  ORDER BY m.expires_at, m.scope, m.seq LIMIT ?`)
	// The sum takes the column's affinity away, which would keep the index out.
	selectExpiring = query("list expiring", 0, `SELECT w.id FROM workspaces w WHERE (
    SELECT m.expires_at FROM scope_messages m {index scope_messages_expiring}
    WHERE m.scope >> 32 = w.workspace + 0 AND m.live = 1 AND m.expires_at > 0
    ORDER BY m.expires_at LIMIT 1) <= ?
  ORDER BY w.id`)
	// Who wrote in a scope has a row of totals there, so that the other scopes are passed by.
	selectPayloads = query("load payloads of an author", 0,
		`SELECT `+messageColumns+` FROM scopes s
  CROSS JOIN scope_writer_totals w ON w.scope = s.scope AND w.member = ?
  CROSS JOIN scope_messages m {index scope_messages_by_author}
    ON m.scope = s.scope AND m.author = w.member AND m.revision > CASE s.scope WHEN ? THEN ? ELSE 0 END
  WHERE s.scope >= ? AND s.scope < ? AND m.payload IS NOT NULL
  ORDER BY s.scope, m.revision LIMIT ?`)
	selectUncountedPayloads = query("load uncounted payloads of an author", 0,
		`SELECT `+messageColumns+` FROM scope_messages m {index scope_messages_uncounted}
  WHERE m.author = ? AND m.revision IS NULL AND m.payload IS NOT NULL
  ORDER BY m.scope, m.seq LIMIT ?`)
	selectHalfErased = query("list half erased", 0, `SELECT w.id, m.member
  FROM members m {index members_erased} CROSS JOIN workspaces w
  WHERE m.erased = 1 AND w.workspace = m.workspace ORDER BY m.member`)
	selectLiveAfter = query("list messages after", 0,
		`SELECT `+messageColumns+` FROM scope_messages m {index scope_messages_live}
  WHERE m.scope = ? AND m.seq > ? AND m.live = 1 ORDER BY m.seq LIMIT ?`)
	selectLiveBefore = query("list messages before", 0,
		`SELECT `+messageColumns+` FROM scope_messages m {index scope_messages_live}
  WHERE m.scope = ? AND m.seq < ? AND m.live = 1 ORDER BY m.seq DESC LIMIT ?`)
	selectLatest = query("newest message", 0,
		`SELECT m.id, m.created_at FROM scope_messages m {index scope_messages_live}
  WHERE m.scope = ? AND m.live = 1 ORDER BY m.seq DESC LIMIT 1`)

	insertMessages = insert("insert messages", insertion{
		table: "scope_messages",
		columns: list("scope seq revision id kind author principal author_rank principal_rank " +
			"named recipients everyone live silent reply_to peer_scope peer_seq peer_revision thread " +
			"op_actor op_id op_digest local_id expires_at created_at edited_at payload"),
	})
	updateMessages = update("update messages", change{
		table: "scope_messages",
		columns: list("scope seq id live named everyone edited_at peer_scope peer_seq " +
			"peer_revision thread expires_at payload"),
		keys: 2,
	})

	upsertMentions = insert("write mentions", insertion{
		table:   "message_mentions",
		columns: list("scope member revision author neutral live everyone"),
		keys:    3,
		update:  list("author neutral live everyone"),
	})
	removeMentions = remove("remove mentions", "message_mentions", "scope", "member", "revision")
	upsertTargets  = insert("write targets", insertion{
		table:   "message_targets",
		columns: list("scope member revision author live"),
		keys:    3,
		update:  list("author live"),
	})
	upsertEveryone = insert("write everyone", insertion{
		table:   "scope_everyone",
		columns: list("scope revision author principal"),
		keys:    2,
		update:  list("author principal"),
	})
	removeEveryone = remove("remove everyone", "scope_everyone", "scope", "revision")

	selectOperations = query("load operations", 3,
		`SELECT o.workspace, o.actor, o.op_id, o.digest, o.result, o.created_at
  FROM {keys} k CROSS JOIN operations o
  WHERE o.workspace = k.k1 AND o.actor = k.k2 AND o.op_id = k.k3`)
	selectReceipted = query("load actors with receipts", 2, `SELECT k.k2,
  EXISTS (SELECT 1 FROM operations o WHERE o.workspace = k.k1 AND o.actor = k.k2),
  EXISTS (SELECT 1 FROM scope_activity_events a WHERE a.op_actor = k.k2)
  FROM {keys} k WHERE k.k2 IS NOT NULL`)
	insertOperations = insert("insert operations", insertion{
		table:   "operations",
		columns: list("workspace actor op_id digest result created_at"),
	})
	forgetOperations = query("forget operations", 0,
		`DELETE FROM operations WHERE created_at < ?`)
)

func readMessage(r *record) (facts.MessageRow, error) {
	var m facts.MessageRow
	var err error
	m.Scope, m.Seq = readstate.ScopeKey(r.uint()), readstate.Seq(r.uint())
	m.Revision = readstate.Revision(r.uint())
	m.ID, m.Kind = r.string(), r.string()
	m.Author, m.Principal = readstate.MemberKey(r.uint()), readstate.MemberKey(r.uint())
	m.AuthorRank, m.PrincipalRank = r.uint(), r.uint()
	if m.Named, err = unpackMembers(m.Scope, r.bytes()); err != nil {
		return m, err
	}
	if m.Recipients, err = unpackMembers(m.Scope, r.bytes()); err != nil {
		return m, err
	}
	m.Everyone, m.Live, m.Silent = r.bool(), r.bool(), r.bool()
	m.ReplyTo = r.string()
	m.Peer = facts.Place{Scope: readstate.ScopeKey(r.uint()), Seq: readstate.Seq(r.uint())}
	m.PeerRevision = readstate.Revision(r.uint())
	m.Thread = readstate.ScopeKey(r.uint())
	if r.null() {
		r.skip(3)
	} else {
		m.Op = facts.OpKey{
			Workspace: workspaceOf(m.Scope), Actor: readstate.MemberKey(r.uint()), ID: r.string(),
		}
		if m.OpDigest, err = digest(r.bytes()); err != nil {
			return m, err
		}
	}
	m.LocalID = r.string()
	m.ExpiresAt, m.CreatedAt, m.EditedAt = r.int(), r.int(), r.int()
	m.Payload = r.bytes()
	return m, nil
}

func appendMessage(out *[]facts.MessageRow) func(r *record) error {
	return func(r *record) error {
		row, err := readMessage(r)
		*out = append(*out, row)
		return err
	}
}

func bindMessage(args []any, m *facts.MessageRow) []any {
	args = append(args, number(m.Scope), number(m.Seq), positive(m.Revision), id(m.ID), m.Kind,
		number(m.Author), positive(m.Principal), number(m.AuthorRank), number(m.PrincipalRank),
		packMembers(m.Scope, m.Named), packMembers(m.Scope, m.Recipients), flag(m.Everyone),
		flag(m.Live), flag(m.Silent), optional(m.ReplyTo), number(m.Peer.Scope),
		number(m.Peer.Seq), number(m.PeerRevision), number(m.Thread))
	if m.Op.Actor == 0 {
		args = append(args, nil, nil, nil)
	} else {
		args = append(args, number(m.Op.Actor), id(m.Op.ID), m.OpDigest[:])
	}
	return append(args, optional(m.LocalID), positive(m.ExpiresAt), number(m.CreatedAt),
		number(m.EditedAt), blob(m.Payload))
}

func bindMessageChange(args []any, m *facts.MessageRow) []any {
	return append(args, number(m.Scope), number(m.Seq), id(m.ID), flag(m.Live),
		packMembers(m.Scope, m.Named), flag(m.Everyone), number(m.EditedAt),
		number(m.Peer.Scope), number(m.Peer.Seq), number(m.PeerRevision), number(m.Thread),
		positive(m.ExpiresAt), blob(m.Payload))
}

func bindMention(args []any, m *facts.MentionRow) []any {
	return append(args, number(m.Scope), number(m.Member), number(m.Revision), number(m.Author),
		flag(m.Neutral), flag(m.Live), flag(m.Everyone))
}

func bindMentionKey(args []any, m *facts.MentionRow) []any {
	return append(args, number(m.Scope), number(m.Member), number(m.Revision))
}

func bindTarget(args []any, t *facts.TargetRow) []any {
	return append(args, number(t.Scope), number(t.Member), number(t.Revision), number(t.Author),
		flag(t.Live))
}

func bindEveryone(args []any, e *facts.EveryoneRow) []any {
	return append(args, number(e.Scope), number(e.Revision), number(e.Author), number(e.Principal))
}

func bindEveryoneKey(args []any, e *facts.EveryoneRow) []any {
	return append(args, number(e.Scope), number(e.Revision))
}

func bindOperation(args []any, o *facts.OperationRow) []any {
	result := o.Result
	if result == nil {
		result = []byte{}
	}
	return append(args, number(o.Workspace), number(o.Actor), id(o.ID), o.Digest[:], result,
		number(o.CreatedAt))
}

// MessagesByID implements facts.Tx.
func (s *session) MessagesByID(
	ctx context.Context, scope readstate.ScopeKey, ids []string,
) ([]facts.MessageRow, error) {
	return s.messagesByName(ctx, selectMessagesByID, scope, ids)
}

// MessagesByLocalID implements facts.Tx.
func (s *session) MessagesByLocalID(
	ctx context.Context, scope readstate.ScopeKey, ids []string,
) ([]facts.MessageRow, error) {
	return s.messagesByName(ctx, selectMessagesByLocalID, scope, ids)
}

// messagesByName finds messages of a scope by an id that is unique in it.
func (s *session) messagesByName(
	ctx context.Context, st *statement, scope readstate.ScopeKey, ids []string,
) ([]facts.MessageRow, error) {
	bind := func(args []any, v string) []any { return append(args, number(scope), id(v)) }
	var out []facts.MessageRow
	err := eachKey(ctx, s, st, ids, bind, appendMessage(&out))
	return out, err
}

func (s *session) MessagesByOp(
	ctx context.Context, keys []facts.OpKey,
) ([]facts.MessageRow, error) {
	bind := func(args []any, k facts.OpKey) []any { return append(args, number(k.Actor), id(k.ID)) }
	var out []facts.MessageRow
	err := eachKey(ctx, s, selectMessagesByOp, keys, bind, appendMessage(&out))
	return out, err
}

func (s *session) MessagesAt(
	ctx context.Context, places []facts.Place,
) ([]facts.MessageRow, error) {
	bind := func(args []any, p facts.Place) []any {
		return append(args, number(p.Scope), number(p.Seq))
	}
	var out []facts.MessageRow
	err := eachKey(ctx, s, selectMessagesAt, places, bind, appendMessage(&out))
	return out, err
}

func (s *session) MessagesBetween(
	ctx context.Context, scope readstate.ScopeKey, low, high readstate.Seq, descending bool,
	limit int,
) ([]facts.MessageRow, error) {
	st := selectMessagesUp
	if descending {
		st = selectMessagesDown
	}
	var out []facts.MessageRow
	args := []any{number(scope), number(low), number(high), bounded(limit)}
	err := s.each(ctx, st, 0, args, appendMessage(&out))
	return out, err
}

func (s *session) Expired(
	ctx context.Context, w facts.WorkspaceKey, now int64, limit int,
) ([]facts.MessageRow, error) {
	var out []facts.MessageRow
	args := []any{number(w), now, bounded(limit)}
	err := s.each(ctx, selectExpired, 0, args, appendMessage(&out))
	return out, err
}

// Expiring implements facts.View.
func (s *session) Expiring(ctx context.Context, now int64) ([]readstate.WorkspaceID, error) {
	var out []readstate.WorkspaceID
	err := s.each(ctx, selectExpiring, 0, []any{now}, func(r *record) error {
		out = append(out, readstate.WorkspaceID(r.string()))
		return nil
	})
	return out, err
}

// HalfErased implements facts.View.
func (s *session) HalfErased(ctx context.Context) ([]facts.ErasedMember, error) {
	var out []facts.ErasedMember
	err := s.each(ctx, selectHalfErased, 0, nil, func(r *record) error {
		out = append(out, facts.ErasedMember{
			Workspace: readstate.WorkspaceID(r.string()), Key: readstate.MemberKey(r.uint()),
		})
		return nil
	})
	return out, err
}

// AuthoredPayloads implements facts.Tx.
func (s *session) AuthoredPayloads(
	ctx context.Context, author readstate.MemberKey, after facts.Mark, limit int,
) ([]facts.MessageRow, error) {
	var out []facts.MessageRow
	from := max(after.Scope, readstate.ScopeKey(workspaceOf(author))<<32)
	end := readstate.ScopeKey(workspaceOf(author)+1) << 32
	args := []any{
		number(author), number(after.Scope), number(after.Revision), number(from), number(end),
		bounded(limit),
	}
	err := s.each(ctx, selectPayloads, 0, args, appendMessage(&out))
	if err != nil || len(out) == limit {
		return out, err
	}
	args = []any{number(author), bounded(limit - len(out))}
	err = s.each(ctx, selectUncountedPayloads, 0, args, appendMessage(&out))
	return out, err
}

// Messages implements facts.View. It answers ascending, also where the newest are chosen.
func (s *session) Messages(
	ctx context.Context, q facts.MessageQuery,
) ([]facts.MessageRow, error) {
	var out []facts.MessageRow
	if q.After > 0 {
		args := []any{number(q.Scope), number(q.After), bounded(q.Limit)}
		err := s.each(ctx, selectLiveAfter, 0, args, appendMessage(&out))
		return out, err
	}
	before := q.Before
	if before == 0 {
		before = readstate.MaxCounter + 1
	}
	args := []any{number(q.Scope), number(before), bounded(q.Limit)}
	err := s.each(ctx, selectLiveBefore, 0, args, appendMessage(&out))
	slices.Reverse(out)
	return out, err
}

func (s *session) Newest(
	ctx context.Context, scope readstate.ScopeKey,
) (latest readstate.Latest, err error) {
	err = s.each(ctx, selectLatest, 0, []any{number(scope)}, func(r *record) error {
		latest = readstate.Latest{ID: r.string(), At: r.int()}
		return nil
	})
	return latest, err
}

func (s *session) Operations(
	ctx context.Context, keys []facts.OpKey,
) ([]facts.OperationRow, error) {
	bind := func(args []any, k facts.OpKey) []any {
		return append(args, number(k.Workspace), number(k.Actor), id(k.ID))
	}
	var out []facts.OperationRow
	err := eachKey(ctx, s, selectOperations, keys, bind, func(r *record) (err error) {
		o := facts.OperationRow{OpKey: facts.OpKey{
			Workspace: facts.WorkspaceKey(r.uint()), Actor: readstate.MemberKey(r.uint()),
			ID: r.string(),
		}}
		if o.Digest, err = digest(r.bytes()); err != nil {
			return err
		}
		o.Result, o.CreatedAt = r.bytes(), r.int()
		out = append(out, o)
		return nil
	})
	return out, err
}

func (s *session) WithReceipts(
	ctx context.Context, actors []readstate.MemberKey,
) ([]facts.Receipted, error) {
	bind := func(args []any, k readstate.MemberKey) []any {
		return append(args, number(k>>32), number(k))
	}
	var out []facts.Receipted
	err := eachKey(ctx, s, selectReceipted, actors, bind, func(r *record) error {
		row := facts.Receipted{
			Actor: readstate.MemberKey(r.uint()), Operations: r.bool(), Activities: r.bool(),
		}
		if row.Operations || row.Activities {
			out = append(out, row)
		}
		return nil
	})
	return out, err
}
