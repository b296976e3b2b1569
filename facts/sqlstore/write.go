package sqlstore

import (
	"context"
	"slices"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Trims find the rows below the floor through the index and delete them by key.
var (
	trimMessages = query("trim messages", 2, `DELETE FROM scope_messages WHERE (scope, seq) IN (
  SELECT m.scope, m.seq FROM {keys} k CROSS JOIN scope_messages m
  WHERE m.scope = k.k1 AND m.seq <= k.k2)`)
	trimMentions = query("trim mentions", 2,
		`DELETE FROM message_mentions WHERE (scope, member, revision) IN (
  SELECT m.scope, m.member, m.revision FROM {keys} k CROSS JOIN message_mentions m
  WHERE m.scope = k.k1 AND m.revision <= k.k2)`)
	trimTargets = query("trim targets", 2,
		`DELETE FROM message_targets WHERE (scope, member, revision) IN (
  SELECT m.scope, m.member, m.revision FROM {keys} k CROSS JOIN message_targets m
  WHERE m.scope = k.k1 AND m.revision <= k.k2)`)
	trimEveryone = query("trim everyone", 2,
		`DELETE FROM scope_everyone WHERE (scope, revision) IN (
  SELECT m.scope, m.revision FROM {keys} k CROSS JOIN scope_everyone m
  WHERE m.scope = k.k1 AND m.revision <= k.k2)`)
)

// write carries out the changes of a group. What is deleted goes before what is written, but
// for trims, which also take what the same group wrote below the floor.
func (s *session) Write(ctx context.Context, c *facts.Changes) error {
	steps := [...]func(context.Context, *facts.Changes) error{
		s.writePrincipals, s.writeScopes, s.writeStates, s.writeMessages, s.writeMarks, s.writeTasks,
		s.writeSessions, s.writeInboxes, s.trim,
	}
	for _, step := range steps {
		if err := step(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) writePrincipals(ctx context.Context, c *facts.Changes) error {
	if err := execRows(ctx, s, insertWorkspaces, c.NewWorkspaces, bindNewWorkspace); err != nil {
		return err
	}
	if err := execRows(ctx, s, updateWorkspaces, c.Workspaces, bindWorkspace); err != nil {
		return err
	}
	if err := execRows(ctx, s, upsertMembers, c.Members, bindMember); err != nil {
		return err
	}
	if err := execRows(ctx, s, finishErased, c.Erased, bindErased); err != nil {
		return err
	}
	if err := execRows(ctx, s, removeBlocked, c.Unblock, bindBlocked); err != nil {
		return err
	}
	return execRows(ctx, s, insertBlocked, c.Block, bindBlocked)
}

func (s *session) writeScopes(ctx context.Context, c *facts.Changes) error {
	if err := execRows(ctx, s, upsertScopes, c.Scopes, bindScope); err != nil {
		return err
	}
	if err := execRows(ctx, s, upsertWriters, c.Writers, bindWriter); err != nil {
		return err
	}
	return s.writeBlocks(ctx, c.Blocks)
}

func (s *session) writeStates(ctx context.Context, c *facts.Changes) error {
	if err := s.removeRows(ctx, c.GoneStates); err != nil {
		return err
	}
	var joined, chosen []facts.StateRow
	var plain []facts.RowKey
	read := writing(c.States, facts.ReadPart)
	for i := range c.States {
		row := &c.States[i]
		if row.Writes(facts.MembershipPart) {
			joined = append(joined, *row)
		}
		switch {
		case !row.Writes(facts.SettingsPart):
		case hasSettings(row):
			chosen = append(chosen, *row)
		default:
			plain = append(plain, row.RowKey)
		}
	}
	if err := execRows(ctx, s, upsertStates, read, bindState); err != nil {
		return err
	}
	if err := execRows(ctx, s, upsertMemberships, joined, bindMembership); err != nil {
		return err
	}
	if err := execRows(ctx, s, removeSettings, plain, bindRow); err != nil {
		return err
	}
	return execRows(ctx, s, upsertSettings, chosen, bindSettings)
}

// writing returns the rows that write a part, which mostly are all of them.
func writing(rows []facts.StateRow, part facts.StateParts) []facts.StateRow {
	not := func(r facts.StateRow) bool { return !r.Writes(part) }
	if !slices.ContainsFunc(rows, not) {
		return rows
	}
	return slices.DeleteFunc(slices.Clone(rows), not)
}

func bindRow(args []any, k *facts.RowKey) []any { return bindRowKey(args, *k) }

func (s *session) removeRows(ctx context.Context, gone []facts.RowKey) error {
	for _, st := range [...]*statement{
		removeStates, removeMemberships, removeSettings, removeConversations,
	} {
		if err := execRows(ctx, s, st, gone, bindRow); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) writeMessages(ctx context.Context, c *facts.Changes) error {
	if err := execRows(ctx, s, insertMessages, c.NewMessages, bindMessage); err != nil {
		return err
	}
	if err := execRows(ctx, s, updateMessages, c.Messages, bindMessageChange); err != nil {
		return err
	}
	if err := execRows(ctx, s, insertOperations, c.Operations, bindOperation); err != nil {
		return err
	}
	if c.ForgetReceiptsBefore == 0 {
		return nil
	}
	_, err := s.exec(ctx, forgetOperations, 0, c.ForgetReceiptsBefore)
	return err
}

func (s *session) writeMarks(ctx context.Context, c *facts.Changes) error {
	if err := execRows(ctx, s, removeMentions, c.Unmentions, bindMentionKey); err != nil {
		return err
	}
	if err := execRows(ctx, s, upsertMentions, c.Mentions, bindMention); err != nil {
		return err
	}
	if err := execRows(ctx, s, upsertTargets, c.Targets, bindTarget); err != nil {
		return err
	}
	if err := execRows(ctx, s, removeEveryone, c.GoneEveryone, bindEveryoneKey); err != nil {
		return err
	}
	return execRows(ctx, s, upsertEveryone, c.NewEveryone, bindEveryone)
}

// trim deletes what lies at or below new floors.
func (s *session) trim(ctx context.Context, c *facts.Changes) error {
	none := func(*record) error { return nil }
	bySeq := func(args []any, t facts.Trim) []any {
		return append(args, number(t.Scope), number(t.Seq))
	}
	byRevision := func(args []any, t facts.Trim) []any {
		return append(args, number(t.Scope), number(t.Revision))
	}
	// A block goes when its last revision is at or below the floor.
	byBlock := func(args []any, t facts.Trim) []any {
		return append(args, number(t.Scope), number(readstate.BlockOf(t.Revision+1)))
	}
	steps := [...]struct {
		st   *statement
		bind func(args []any, t facts.Trim) []any
	}{
		{trimMessages, bySeq},
		{trimMentions, byRevision},
		{trimTargets, byRevision},
		{trimEveryone, byRevision},
		{blockTables[facts.RemovedSet].trim, byBlock},
		{blockTables[facts.EveryoneSet].trim, byBlock},
	}
	for _, step := range steps {
		if err := eachKey(ctx, s, step.st, c.Trimmed, step.bind, none); err != nil {
			return err
		}
	}
	return nil
}
