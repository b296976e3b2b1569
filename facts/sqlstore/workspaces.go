package sqlstore

import (
	"context"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// erasureDone is what members.erased becomes when nothing is left of a member.
const erasureDone = int64(2)

// The highest numbers given out are one index seek each, so that nothing has to keep them.
const workspaceColumns = `w.workspace, w.id, w.name, w.term, w.lsn,
  (SELECT max(member) FROM members
    WHERE member > w.workspace << 32 AND member < (w.workspace + 1) << 32),
  (SELECT max(scope) FROM scopes
    WHERE scope > w.workspace << 32 AND scope < (w.workspace + 1) << 32)`

var (
	selectWorkspaces = query("load workspaces", 0,
		`SELECT `+workspaceColumns+` FROM workspaces w ORDER BY w.workspace`)
	selectWorkspaceByID = query("load workspace", 0,
		`SELECT `+workspaceColumns+` FROM workspaces w WHERE w.id = ?`)
	selectWorkspaceLSN = query("load workspace lsn", 0,
		`SELECT lsn FROM workspaces WHERE workspace = ?`)
	selectFences = query("load fences", 1,
		`SELECT w.workspace, w.term, w.lsn FROM {keys} k CROSS JOIN workspaces w
  WHERE w.workspace = k.k1 {lock w}`)
	advanceWorkspace = query("advance", 0,
		`UPDATE workspaces SET lsn = lsn + 1 WHERE workspace = ? AND term = ? AND lsn = ?`)
	raiseTerms = query("take over", 0, `UPDATE workspaces SET term = term + 1`)

	insertWorkspaces = insert("insert workspaces", insertion{
		table: "workspaces", columns: list("workspace id name term lsn"),
	})
	updateWorkspaces = update("update workspaces", change{
		table: "workspaces", columns: list("workspace id name"), keys: 1,
	})

	memberColumns = "m.member, m.id, m.agent, m.active, m.display_name, m.avatar, m.badge, " +
		"m.private, m.member_lsn, m.erased"
	selectMembersByID = query("load members by id", 2,
		`SELECT `+memberColumns+` FROM {keys} k CROSS JOIN members m
  WHERE m.workspace = k.k1 AND m.id = k.k2`)
	selectMembers = query("load members", 1,
		`SELECT `+memberColumns+` FROM {keys} k CROSS JOIN members m WHERE m.member = k.k1`)
	selectMemberPage = query("list members", 0,
		`SELECT `+memberColumns+` FROM members m WHERE m.workspace = ? AND m.id > ?
  ORDER BY m.id LIMIT ?`)
	selectMemberIDs = query("load member ids", 1,
		`SELECT m.member, m.id FROM {keys} k CROSS JOIN members m WHERE m.member = k.k1`)

	upsertMembers = insert("write members", insertion{
		table: "members",
		columns: list("member workspace id agent active display_name avatar badge private erased " +
			"member_lsn created_at"),
		keys: 1,
		update: list("id agent active display_name avatar badge private erased " +
			"member_lsn"),
	})

	finishErased = update("finish erasures", change{
		table: "members", columns: list("member erased"), keys: 1,
	})

	selectBlocked = query("load blocks", 1,
		`SELECT b.member, b.other FROM {keys} k CROSS JOIN member_blocks b WHERE b.member = k.k1
  ORDER BY b.member, b.other`)
	selectBlockedIDs = query("list blocks", 0,
		`SELECT m.id FROM member_blocks b JOIN members m ON m.member = b.other WHERE b.member = ?
  ORDER BY m.id`)
	insertBlocked = insert("write blocks", insertion{
		table: "member_blocks", columns: list("member other"), keys: 2, ignore: true,
	})
	removeBlocked = remove("remove blocks", "member_blocks", "member", "other")
)

func readWorkspace(r *record) facts.WorkspaceRow {
	return facts.WorkspaceRow{
		Key:        facts.WorkspaceKey(r.uint()),
		ID:         readstate.WorkspaceID(r.string()),
		Name:       r.string(),
		Term:       r.uint(),
		LSN:        readstate.LSN(r.uint()),
		LastMember: uint32(r.uint()),
		LastScope:  uint32(r.uint()),
	}
}

func bindNewWorkspace(args []any, w *facts.WorkspaceRow) []any {
	return append(args, number(w.Key), id(w.ID), w.Name, number(w.Term), number(w.LSN))
}

func bindWorkspace(args []any, w *facts.WorkspaceRow) []any {
	return append(args, number(w.Key), id(w.ID), w.Name)
}

func readMember(r *record) readstate.MemberInfo {
	return readstate.MemberInfo{
		Key:         readstate.MemberKey(r.uint()),
		ID:          readstate.MemberID(r.string()),
		Agent:       r.bool(),
		Active:      r.bool(),
		DisplayName: r.string(),
		Avatar:      r.string(),
		Badge:       readstate.BadgeDisplay(r.uint()),
		Private:     r.bool(),
		MemberLSN:   readstate.LSN(r.uint()),
		Erased:      r.uint() > 0,
	}
}

func bindMember(args []any, m *facts.MemberChange) []any {
	return append(args, number(m.Key), number(workspaceOf(m.Key)), id(m.ID), flag(m.Agent),
		flag(m.Active), m.DisplayName, m.Avatar, number(m.Badge), flag(m.Private), flag(m.Erased),
		number(m.MemberLSN), number(m.CreatedAt))
}

func bindErased(args []any, m *readstate.MemberKey) []any {
	return append(args, number(*m), erasureDone)
}

func bindBlocked(args []any, p *facts.BlockedPair) []any {
	return append(args, number(p.Member), number(p.Other))
}

func bindNumber[T ~uint64 | ~uint32](args []any, key T) []any { return append(args, number(key)) }

func (s *session) Workspaces(ctx context.Context) ([]facts.WorkspaceRow, error) {
	var out []facts.WorkspaceRow
	err := s.each(ctx, selectWorkspaces, 0, nil, func(r *record) error {
		out = append(out, readWorkspace(r))
		return nil
	})
	return out, err
}

func (s *session) Workspace(
	ctx context.Context, w readstate.WorkspaceID,
) (row facts.WorkspaceRow, ok bool, err error) {
	err = s.each(ctx, selectWorkspaceByID, 0, []any{id(w)}, func(r *record) error {
		row, ok = readWorkspace(r), true
		return nil
	})
	return row, ok, err
}

func (s *session) fences(
	ctx context.Context, keys []facts.WorkspaceKey,
) (map[facts.WorkspaceKey]facts.Fence, error) {
	out := make(map[facts.WorkspaceKey]facts.Fence, len(keys))
	err := eachKey(ctx, s, selectFences, keys, bindNumber, func(r *record) error {
		key := facts.WorkspaceKey(r.uint())
		out[key] = facts.Fence{Term: r.uint(), LSN: readstate.LSN(r.uint())}
		return nil
	})
	return out, err
}

func (s *session) MembersByID(
	ctx context.Context, w facts.WorkspaceKey, ids []readstate.MemberID,
) ([]readstate.MemberInfo, error) {
	var out []readstate.MemberInfo
	bind := func(args []any, m readstate.MemberID) []any { return append(args, number(w), id(m)) }
	err := eachKey(ctx, s, selectMembersByID, ids, bind, func(r *record) error {
		out = append(out, readMember(r))
		return nil
	})
	return out, err
}

func (s *session) Members(
	ctx context.Context, keys []readstate.MemberKey,
) ([]readstate.MemberInfo, error) {
	var out []readstate.MemberInfo
	err := eachKey(ctx, s, selectMembers, keys, bindNumber, func(r *record) error {
		out = append(out, readMember(r))
		return nil
	})
	return out, err
}

func (s *session) BlockedBy(
	ctx context.Context, members []readstate.MemberKey,
) ([]facts.BlockedPair, error) {
	var out []facts.BlockedPair
	err := eachKey(ctx, s, selectBlocked, members, bindNumber, func(r *record) error {
		out = append(out, facts.BlockedPair{
			Member: readstate.MemberKey(r.uint()), Other: readstate.MemberKey(r.uint()),
		})
		return nil
	})
	return out, err
}
