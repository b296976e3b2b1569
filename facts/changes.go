package facts

import "github.com/tidemark-im/tidemark/readstate"

// Changes is what a group writes. A slice holds final rows, each key once.
type Changes struct {
	NewWorkspaces []WorkspaceRow
	Workspaces    []WorkspaceRow // id, name: upserted by key; term and LSN untouched
	Members       []MemberChange
	Scopes        []ScopeRow // upsert
	States        []StateRow // upsert of all three tables; settings only where not default
	Writers       []WriterRow
	NewMessages   []MessageRow
	// Messages updates id, live, named, everyone, edited_at, peer, thread, expiry and payload by place.
	Messages          []MessageRow
	Mentions          []MentionRow  // upsert
	Unmentions        []MentionRow  // delete by key and revision
	Targets           []TargetRow   // upsert
	NewEveryone       []EveryoneRow // upsert
	GoneEveryone      []EveryoneRow // delete by scope and revision
	Blocks            []BlockRow    // upsert; a zero count deletes
	Operations        []OperationRow
	Block             []BlockedPair
	Unblock           []BlockedPair
	Erased            []readstate.MemberKey // nothing is left of these
	Trimmed           []Trim
	GoneStates        []RowKey // delete from all three tables, and the conversations with them
	Tasks             []TaskRow
	Sessions          []SessionRow  // upsert
	Renamed           []ScopeName   // scopes with another id from now on
	Activities        []ActivityRow // insert
	ActivityTargets   []ActivityTargetRow
	ClearedActivities []ActivityPlace   // without a payload from now on
	Conversations     []ConversationRow // upsert
	Outbox            []OutboxRow       // insert
	Inboxes           []InboxRow        // upsert; acknowledged and floor stay as they are
	InboxItems        []InboxItem       // insert
	InboxTexts        []InboxText       // insert
	// InboxFlags sets live and nothing else; the projection of those senders is brought to what is
	// live now, and texts of what is not are cleared.
	InboxFlags           []InboxItem
	GoneInboxItems       []InboxItem           // delete by member and position, with texts
	GoneInboxes          []readstate.MemberKey // delete all other rows of these inboxes
	ForgetReceiptsBefore int64                 // milliseconds; zero for none
}

// ScopeName is the id of a scope.
type ScopeName struct {
	Scope readstate.ScopeKey
	ID    readstate.ScopeID
}

// MemberChange upserts a member. Workspace is derived from the key.
type MemberChange struct {
	readstate.MemberInfo
	CreatedAt int64
}

// Trim deletes the entries of a scope at or below Seq and everything that hangs on revisions at
// or below Revision: mentions, deliveries, everyone rows, blocks that lie wholly below it.
type Trim struct {
	Scope    readstate.ScopeKey
	Seq      readstate.Seq
	Revision readstate.Revision
}

func (c *Changes) empty() bool {
	return len(c.NewWorkspaces)+len(c.Workspaces)+len(c.Members)+len(c.Scopes)+len(c.States)+
		len(c.Writers)+len(c.NewMessages)+len(c.Messages)+len(c.Mentions)+len(c.Unmentions)+
		len(c.Targets)+len(c.NewEveryone)+len(c.GoneEveryone)+len(c.Blocks)+len(c.Operations)+
		len(c.Block)+len(c.Unblock)+len(c.Trimmed)+len(c.Erased)+len(c.GoneStates)+
		len(c.Sessions)+len(c.Renamed)+len(c.Tasks)+len(c.Activities)+len(c.ActivityTargets)+
		len(c.ClearedActivities)+len(c.Conversations)+len(c.Outbox)+len(c.Inboxes)+
		len(c.InboxItems)+len(c.InboxTexts)+
		len(c.InboxFlags)+len(c.GoneInboxItems)+len(c.GoneInboxes) == 0 &&
		c.ForgetReceiptsBefore == 0
}

// reset empties c and keeps the memory of the kinds that most groups write.
func (c *Changes) reset() {
	*c = Changes{
		Scopes: emptied(c.Scopes), States: emptied(c.States), Writers: emptied(c.Writers),
		NewMessages: emptied(c.NewMessages), Mentions: emptied(c.Mentions),
		Blocks: emptied(c.Blocks), Operations: emptied(c.Operations),
	}
}

func emptied[T any](rows []T) []T {
	clear(rows)
	return rows[:0]
}
