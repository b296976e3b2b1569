package sqlstore

import (
	"context"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

const (
	stateColumns = `c.scope, c.member, j.joined, j.visible, j.eff, j.epoch, j.parent_epoch,
  j.membership_lsn, n.level, n.until, n.followed, n.notification_lsn, c.read_revision,
  c.manual_unread, c.manual_unread_from, c.manual_unread_version, c.e, c.author_at_e,
  c.principal_at_e, c.own_removed_above_e, c.own_everyone_above_e, c.direct_above_e,
  c.targets_above_e, c.activity_read_seq, c.signal_at, c.actor_at, c.activity_targets_above,
  c.state_lsn`
	stateWidth = 28

	// The three tables of a row, joined to c.
	stateParts = `CROSS JOIN scope_memberships j
  LEFT JOIN scope_notification_settings n ON n.member = c.member AND n.scope = c.scope`
)

var (
	selectStates = query("load states", 2,
		`SELECT `+stateColumns+`
  FROM {keys} k CROSS JOIN conversation_member_states c `+stateParts+`
  WHERE c.member = k.k2 AND c.scope = k.k1 AND j.scope = c.scope AND j.member = c.member`)
	selectStatesOf = query("load states of member", 0,
		`SELECT `+stateColumns+`
  FROM conversation_member_states c `+stateParts+`
  WHERE c.member = ? AND c.scope > ? AND j.scope = c.scope AND j.member = c.member
  ORDER BY c.scope LIMIT ?`)

	upsertMemberships = insert("write memberships", insertion{
		table:   "scope_memberships",
		columns: list("scope member joined visible eff epoch parent_epoch membership_lsn"),
		keys:    2,
		update:  list("joined visible eff epoch parent_epoch membership_lsn"),
	})
	upsertSettings = insert("write settings", insertion{
		table:   "scope_notification_settings",
		columns: list("member scope level until followed notification_lsn"),
		keys:    2,
		update:  list("level until followed notification_lsn"),
	})
	upsertStates = insert("write states", insertion{
		table: "conversation_member_states",
		columns: list("member scope read_revision manual_unread manual_unread_from " +
			"manual_unread_version e author_at_e principal_at_e own_removed_above_e " +
			"own_everyone_above_e direct_above_e targets_above_e activity_read_seq signal_at " +
			"actor_at activity_targets_above state_lsn"),
		keys: 2,
		update: list("read_revision manual_unread manual_unread_from " +
			"manual_unread_version e author_at_e principal_at_e own_removed_above_e " +
			"own_everyone_above_e direct_above_e targets_above_e activity_read_seq signal_at " +
			"actor_at activity_targets_above state_lsn"),
	})
	removeMemberships = remove("remove memberships", "scope_memberships", "scope", "member")
	removeSettings    = remove("remove settings", "scope_notification_settings", "scope", "member")
	removeStates      = remove("remove states", "conversation_member_states", "scope", "member")
)

func readState(r *record) facts.StateRow {
	s := facts.StateRow{RowKey: readRowKey(r)}
	row := &s.Row
	row.Joined, row.Visible = r.bool(), r.bool()
	row.Effective = readstate.Revision(r.uint())
	row.Epoch, row.ParentEpoch = r.uint(), r.uint()
	s.MembershipLSN = readstate.LSN(r.uint())
	row.Level, row.Until = readstate.Level(r.uint()), r.int()
	row.Follow = readstate.Follow(r.uint())
	s.NotificationLSN = readstate.LSN(r.uint())
	row.Read = readstate.Revision(r.uint())
	row.Manual = readstate.Manual{
		Set: r.bool(), From: readstate.Revision(r.uint()), Version: r.uint(),
	}
	row.Point = readstate.Point{
		E: readstate.Revision(r.uint()), AuthorRank: r.uint(), PrincipalRank: r.uint(),
		OwnRemoved: r.uint(), OwnEveryone: r.uint(), Direct: r.uint(), Targets: r.uint(),
	}
	row.Activity = readstate.ActivityPoint{
		Read: readstate.Seq(r.uint()), SignalAt: r.uint(), ActorAt: r.uint(), Targets: r.uint(),
	}
	s.StateLSN = readstate.LSN(r.uint())
	return s
}

func bindMembership(args []any, s *facts.StateRow) []any {
	row := &s.Row
	return append(args, number(s.Scope), number(s.Member), flag(row.Joined), flag(row.Visible),
		number(row.Effective), number(row.Epoch), number(row.ParentEpoch), number(s.MembershipLSN))
}

// hasSettings reports a row that belongs in scope_notification_settings: one that was ever
// changed keeps its generation.
func hasSettings(s *facts.StateRow) bool {
	return s.Row.Notification != (readstate.Notification{}) ||
		s.Row.Follow != readstate.FollowAutomatic || s.NotificationLSN != 0
}

func bindSettings(args []any, s *facts.StateRow) []any {
	return append(args, number(s.Member), number(s.Scope), positive(s.Row.Level),
		number(s.Row.Until), number(s.Row.Follow), number(s.NotificationLSN))
}

func bindState(args []any, s *facts.StateRow) []any {
	row := &s.Row
	p, a := &row.Point, &row.Activity
	return append(args, number(s.Member), number(s.Scope), number(row.Read), flag(row.Manual.Set),
		number(row.Manual.From), number(row.Manual.Version), number(p.E), number(p.AuthorRank),
		number(p.PrincipalRank), number(p.OwnRemoved), number(p.OwnEveryone), number(p.Direct),
		number(p.Targets), number(a.Read), number(a.SignalAt), number(a.ActorAt),
		number(a.Targets), number(s.StateLSN))
}

func (s *session) States(ctx context.Context, keys []facts.RowKey) ([]facts.StateRow, error) {
	var out []facts.StateRow
	err := eachKey(ctx, s, selectStates, keys, bindRowKey, func(r *record) error {
		out = append(out, readState(r))
		return nil
	})
	return out, err
}

func (s *session) StatesOf(
	ctx context.Context, member readstate.MemberKey, after readstate.ScopeKey, limit int,
) ([]facts.StateRow, error) {
	var out []facts.StateRow
	args := []any{number(member), number(after), bounded(limit)}
	err := s.each(ctx, selectStatesOf, 0, args, func(r *record) error {
		out = append(out, readState(r))
		return nil
	})
	return out, err
}
