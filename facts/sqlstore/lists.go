package sqlstore

import (
	"context"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

var (
	selectScopePage = query("list scopes", 0,
		`SELECT `+scopeColumns+` FROM scopes s LEFT JOIN scopes p ON p.scope = s.parent
  WHERE s.workspace = ? AND s.id > ? AND s.type <> ? ORDER BY s.id LIMIT ?`)
	selectScopePageByType = query("list scopes of a type", 0,
		`SELECT `+scopeColumns+` FROM scopes s LEFT JOIN scopes p ON p.scope = s.parent
  WHERE s.workspace = ? AND s.type = ? AND s.id > ? ORDER BY s.id LIMIT ?`)
	selectScopePageByParent = query("list scopes of a parent", 0,
		`SELECT `+scopeColumns+` FROM scopes s LEFT JOIN scopes p ON p.scope = s.parent
  WHERE s.parent = ? AND s.parent <> 0 AND s.id > ? AND (? = 0 OR s.type = ?)
  ORDER BY s.id LIMIT ?`)
	// A thread shows only where its parent's row shows and is of the epoch the thread row was
	// made in.
	selectScopePageOfMember = query("list scopes of a member", 0,
		`SELECT `+scopeColumns+` FROM scope_memberships j CROSS JOIN scopes s
  LEFT JOIN scopes p ON p.scope = s.parent
  LEFT JOIN scope_memberships pj ON pj.scope = s.parent AND pj.member = j.member
  WHERE j.member = ? AND j.joined = 1 AND j.visible = 1 AND s.scope = j.scope AND s.id > ?
    AND s.type <> ? AND (s.type <> ? OR pj.joined = 1 AND pj.visible = 1 AND pj.epoch = j.parent_epoch)
    AND (? = 0 OR s.type = ?) AND (? = 0 OR s.parent = ?)
  ORDER BY s.id LIMIT ?`)

	selectRoster = query("list roster", 0,
		`SELECT `+stateColumns+`, `+memberColumns+`
  FROM scope_memberships j CROSS JOIN conversation_member_states c
  LEFT JOIN scope_notification_settings n ON n.member = c.member AND n.scope = c.scope
  CROSS JOIN members m
  WHERE j.scope = ? AND j.member > ? AND j.joined = 1 AND c.member = j.member
    AND c.scope = j.scope AND m.member = j.member
  ORDER BY j.member LIMIT ?`)

	// The keys of the four below are the blocked members.
	selectCounted = query("list counted", 1,
		`WITH blocked AS (SELECT k.k1 FROM {keys} k WHERE k.k1 IS NOT NULL)
  SELECT `+messageColumns+` FROM scope_messages m
  WHERE m.scope = ? AND m.revision > ? AND m.live = 1 AND m.author <> ?
    AND coalesce(m.principal, 0) <> ? AND m.author NOT IN (SELECT k1 FROM blocked)
  ORDER BY m.revision LIMIT ?`)
	selectCountedDirected = query("list counted, directed", 1,
		`WITH blocked AS (SELECT k.k1 FROM {keys} k WHERE k.k1 IS NOT NULL),
  hits AS (
    SELECT t.revision FROM message_mentions t
      WHERE t.scope = ? AND t.member = ? AND t.revision > ? AND t.live = 1 AND t.neutral = 0
        AND t.everyone = 0 AND t.author NOT IN (SELECT k1 FROM blocked)
    UNION
    SELECT v.revision FROM scope_everyone v
      WHERE v.scope = ? AND v.revision > ? AND v.author <> ? AND v.principal <> ?
        AND v.author NOT IN (SELECT k1 FROM blocked)
    ORDER BY 1 LIMIT ?)
  SELECT `+messageColumns+` FROM hits h CROSS JOIN scope_messages m
  WHERE m.scope = ? AND m.revision = h.revision ORDER BY m.revision`)
	selectCountedTargets = query("list counted deliveries", 1,
		`WITH blocked AS (SELECT k.k1 FROM {keys} k WHERE k.k1 IS NOT NULL)
  SELECT `+messageColumns+` FROM message_targets t CROSS JOIN scope_messages m
  WHERE t.scope = ? AND t.member = ? AND t.revision > ? AND t.live = 1
    AND t.author NOT IN (SELECT k1 FROM blocked) AND m.scope = t.scope
    AND m.revision = t.revision
  ORDER BY t.revision LIMIT ?`)
	selectCountedMentions = query("list counted mentions", 1,
		`WITH blocked AS (SELECT k.k1 FROM {keys} k WHERE k.k1 IS NOT NULL)
  SELECT `+messageColumns+` FROM message_mentions t CROSS JOIN scope_messages m
  WHERE t.scope = ? AND t.member = ? AND t.revision > ? AND t.live = 1 AND t.neutral = 0
    AND t.everyone = 0 AND t.author NOT IN (SELECT k1 FROM blocked) AND m.scope = t.scope
    AND m.revision = t.revision
  ORDER BY t.revision LIMIT ?`)
)

func (s *session) ListMembers(
	ctx context.Context, w facts.WorkspaceKey, after readstate.MemberID, limit int,
) ([]readstate.MemberInfo, error) {
	var out []readstate.MemberInfo
	args := []any{number(w), id(after), bounded(limit)}
	err := s.each(ctx, selectMemberPage, 0, args, func(r *record) error {
		out = append(out, readMember(r))
		return nil
	})
	return out, err
}

func (s *session) ListScopes(
	ctx context.Context, q facts.ScopeQuery,
) ([]facts.ScopeRow, error) {
	limit, scopeType, parent := bounded(q.Limit), number(q.Type), number(q.Parent)
	session := number(readstate.Session)
	var st *statement
	var args []any
	switch {
	case q.Type == readstate.Session:
		return nil, nil
	case q.Member != 0:
		st = selectScopePageOfMember
		args = []any{
			number(q.Member), id(q.After), session, number(readstate.Thread), scopeType, scopeType,
			parent, parent, limit,
		}
	case q.Parent != 0:
		st = selectScopePageByParent
		args = []any{parent, id(q.After), scopeType, scopeType, limit}
	case q.Type != 0:
		st = selectScopePageByType
		args = []any{number(q.Workspace), scopeType, id(q.After), limit}
	default:
		st = selectScopePage
		args = []any{number(q.Workspace), id(q.After), session, limit}
	}
	var out []facts.ScopeRow
	err := s.each(ctx, st, 0, args, appendScope(&out))
	return out, err
}

func (s *session) ListRoster(
	ctx context.Context, scope readstate.ScopeKey, after readstate.MemberKey, limit int,
) ([]facts.RosterRow, error) {
	var out []facts.RosterRow
	args := []any{number(scope), number(after), bounded(limit)}
	err := s.each(ctx, selectRoster, 0, args, func(r *record) error {
		out = append(out, facts.RosterRow{StateRow: readState(r), Info: readMember(r)})
		return nil
	})
	return out, err
}

func (s *session) ListBlocks(
	ctx context.Context, member readstate.MemberKey,
) ([]readstate.MemberID, error) {
	var out []readstate.MemberID
	err := s.each(ctx, selectBlockedIDs, 0, []any{number(member)}, func(r *record) error {
		out = append(out, readstate.MemberID(r.string()))
		return nil
	})
	return out, err
}

func (s *session) MemberIDs(
	ctx context.Context, keys []readstate.MemberKey,
) (map[readstate.MemberKey]readstate.MemberID, error) {
	out := make(map[readstate.MemberKey]readstate.MemberID, len(keys))
	err := eachKey(ctx, s, selectMemberIDs, keys, bindNumber, func(r *record) error {
		key := readstate.MemberKey(r.uint())
		out[key] = readstate.MemberID(r.string())
		return nil
	})
	return out, err
}

// counted lists what a count consists of. In a dm every entry that counts is attention.
func (s *session) Counted(
	ctx context.Context, q facts.CountedQuery,
) ([]facts.MessageRow, error) {
	var blocked []any
	for _, x := range q.Blocked {
		if x != q.Member {
			blocked = append(blocked, number(x))
		}
	}
	size := 1 // a list without members is one NULL
	for size < len(blocked) {
		size *= 2
	}
	args := append(make([]any, 0, size+9), blocked...)
	for range size - len(blocked) {
		args = append(args, nil)
	}
	scope, member, base := number(q.Scope), number(q.Member), number(q.Base)
	neutral := member
	if !q.Type.NeutralWriters() {
		neutral = int64(-1) // nobody
	}
	limit := bounded(q.Limit)
	var st *statement
	switch {
	case q.Type.Targeted() && q.Attention:
		st, args = selectCountedMentions, append(args, scope, member, base, limit)
	case q.Type.Targeted():
		st, args = selectCountedTargets, append(args, scope, member, base, limit)
	case q.Attention && q.Type != readstate.DM:
		st = selectCountedDirected
		args = append(args, scope, member, base, scope, base, neutral, neutral, limit, scope)
	default:
		st, args = selectCounted, append(args, scope, base, neutral, neutral, limit)
	}
	var out []facts.MessageRow
	err := s.each(ctx, st, size, args, appendMessage(&out))
	return out, err
}
