package sqlstore

import (
	"context"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

const scopeColumns = `s.scope, s.id, s.type, s.name, s.parent, p.id, s.root_message, s.history,
  s.archived, s.tags, s.active, s.thinking, s.pending_input, s.pending_permission,
  s.latest_seq, s.head_revision, s.floor_revision,
  s.latest_activity_seq, s.signal_head, s.last_lsn, s.latest_id, s.latest_at,
  s.last_activity_at, s.replies, s.floor_seq, s.roster_generation, s.owner, s.created_at`

var (
	selectScopesByID = query("load scopes by id", 2,
		`SELECT `+scopeColumns+` FROM {keys} k CROSS JOIN scopes s
  LEFT JOIN scopes p ON p.scope = s.parent
  WHERE s.workspace = k.k1 AND s.id = k.k2`)
	selectScopes = query("load scopes", 1,
		`SELECT `+scopeColumns+` FROM {keys} k CROSS JOIN scopes s
  LEFT JOIN scopes p ON p.scope = s.parent
  WHERE s.scope = k.k1`)

	upsertScopes = insert("write scopes", insertion{
		table: "scopes",
		columns: list("scope workspace id type name parent root_message history archived tags " +
			"active thinking pending_input pending_permission owner latest_seq head_revision " +
			"floor_revision floor_seq " +
			"latest_activity_seq signal_head roster_generation last_lsn latest_id latest_at " +
			"last_activity_at replies created_at"),
		keys: 1,
		// What is fixed at creation is not named here, so that no index is touched.
		update: list("name history archived tags active thinking pending_input " +
			"pending_permission owner latest_seq head_revision " +
			"floor_revision floor_seq latest_activity_seq signal_head roster_generation " +
			"last_lsn latest_id latest_at last_activity_at replies"),
	})

	renameScopes = update("rename scopes", change{
		table: "scopes", columns: list("scope id"), keys: 1,
	})

	selectWriters = query("load writers", 2,
		`SELECT w.scope, w.member, w.author_head, w.principal_head, w.actor_head,
    w.author_at_floor, w.principal_at_floor
  FROM {keys} k CROSS JOIN scope_writer_totals w WHERE w.scope = k.k1 AND w.member = k.k2`)
	upsertWriters = insert("write writers", insertion{
		table: "scope_writer_totals",
		columns: list("scope member author_head principal_head actor_head author_at_floor " +
			"principal_at_floor"),
		keys: 2,
		update: list("author_head principal_head actor_head author_at_floor " +
			"principal_at_floor"),
	})
)

func readScope(r *record) (facts.ScopeRow, error) {
	var s facts.ScopeRow
	var err error
	i, k := &s.Info, &s.Ranks
	i.Key = readstate.ScopeKey(r.uint())
	i.ID = readstate.ScopeID(r.string())
	i.Type = readstate.ScopeType(r.uint())
	i.Name = r.string()
	i.Parent = readstate.ScopeKey(r.uint())
	i.ParentID = readstate.ScopeID(r.string())
	i.RootMessage = r.string()
	i.History = readstate.History(r.uint())
	i.Archived = r.bool()
	if i.Tags, err = unpackTags(r.string()); err != nil {
		return s, err
	}
	i.Active, i.Thinking = r.bool(), r.bool()
	i.PendingInput, i.PendingPermission = r.bool(), r.bool()
	k.LatestSeq = readstate.Seq(r.uint())
	k.Head, k.Floor = readstate.Revision(r.uint()), readstate.Revision(r.uint())
	k.LatestActivity = readstate.Seq(r.uint())
	k.SignalHead = r.uint()
	k.LastLSN = readstate.LSN(r.uint())
	k.Latest = readstate.Latest{ID: r.string(), At: r.int()}
	k.LastActivityAt = r.int()
	k.Replies = r.uint()
	s.FloorSeq = readstate.Seq(r.uint())
	s.RosterGeneration = r.uint()
	s.Owner = readstate.MemberKey(r.uint())
	s.CreatedAt = r.int()
	return s, nil
}

func bindScope(args []any, s *facts.ScopeRow) []any {
	i, k := &s.Info, &s.Ranks
	return append(args, number(i.Key), number(workspaceOf(i.Key)), id(i.ID), number(i.Type), i.Name,
		number(i.Parent), optional(i.RootMessage), number(i.History), flag(i.Archived),
		packTags(i.Tags), flag(i.Active), flag(i.Thinking), flag(i.PendingInput),
		flag(i.PendingPermission), number(s.Owner), number(k.LatestSeq), number(k.Head),
		number(k.Floor), number(s.FloorSeq), number(k.LatestActivity),
		number(k.SignalHead), number(s.RosterGeneration), number(k.LastLSN),
		optional(k.Latest.ID), number(k.Latest.At), number(k.LastActivityAt), number(k.Replies),
		number(s.CreatedAt))
}

func bindWriter(args []any, w *facts.WriterRow) []any {
	return append(args, number(w.Scope), number(w.Member), number(w.Writer.AuthorHead),
		number(w.Writer.PrincipalHead), number(w.Writer.ActorHead), number(w.Writer.AuthorAtFloor),
		number(w.Writer.PrincipalAtFloor))
}

func readWriter(r *record) readstate.Writer {
	return readstate.Writer{
		AuthorHead: r.uint(), PrincipalHead: r.uint(), ActorHead: r.uint(),
		AuthorAtFloor: r.uint(), PrincipalAtFloor: r.uint(),
	}
}

func (s *session) ScopesByID(
	ctx context.Context, w facts.WorkspaceKey, ids []readstate.ScopeID,
) ([]facts.ScopeRow, error) {
	bind := func(args []any, v readstate.ScopeID) []any { return append(args, number(w), id(v)) }
	var out []facts.ScopeRow
	err := eachKey(ctx, s, selectScopesByID, ids, bind, appendScope(&out))
	return out, err
}

func (s *session) Scopes(
	ctx context.Context, keys []readstate.ScopeKey,
) ([]facts.ScopeRow, error) {
	var out []facts.ScopeRow
	err := eachKey(ctx, s, selectScopes, keys, bindNumber, appendScope(&out))
	return out, err
}

func appendScope(out *[]facts.ScopeRow) func(r *record) error {
	return func(r *record) error {
		row, err := readScope(r)
		*out = append(*out, row)
		return err
	}
}

func (s *session) Writers(ctx context.Context, keys []facts.RowKey) ([]facts.WriterRow, error) {
	var out []facts.WriterRow
	err := eachKey(ctx, s, selectWriters, keys, bindRowKey, func(r *record) error {
		out = append(out, facts.WriterRow{RowKey: readRowKey(r), Writer: readWriter(r)})
		return nil
	})
	return out, err
}

func bindRowKey(args []any, k facts.RowKey) []any {
	return append(args, number(k.Scope), number(k.Member))
}

func readRowKey(r *record) facts.RowKey {
	return facts.RowKey{
		Scope: readstate.ScopeKey(r.uint()), Member: readstate.MemberKey(r.uint()),
	}
}
