package facts

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/tidemark-im/tidemark/readstate"
)

// kindsReadable says for each kind of entry whether it is readable when the sender does not say.
var kindsReadable = map[string]bool{
	"text": true, "media": true, "error": true,
	"reasoning": false, "tool": false, "usage": false, "metadata": false, "prompt": false,
	"system": false,
}

type post struct {
	Post
	refused error
	sum     Digest
}

// prepare implements preparer.
func (o *post) prepare() {
	if o.refused = o.check(); o.refused == nil {
		o.sum = digest(o.Post)
	}
}

func (o *post) name() string { return "post" }
func (o *post) rows() int    { return 4 + 2*len(o.Mentions) }

func (o *post) gather(w *workspace, n *needs) {
	n.member(w, o.Author, o.Principal)
	n.member(w, o.Mentions...)
	n.scope(w, o.Scope)
}

func (o *post) resolve(g *group, w *workspace, n *needs) {
	scope, ok, _ := g.scopeKeys.get(scopeName{w.Key, o.Scope})
	author, known, _ := g.memberKeys.get(memberName{w.Key, o.Author})
	if known {
		n.posts = append(n.posts, OpKey{w.Key, author, o.OpID})
	}
	if !ok {
		return
	}
	row, _, _ := g.scopes.get(scope)
	n.audience(g, row)
	n.message(scope, o.MessageID)
	n.row(scope, row.Owner)
	n.row(row.Info.Parent, row.Owner)
	head := readstate.BlockOf(row.Ranks.Head)
	n.removed = append(n.removed, BlockKey{RemovedSet, scope, head}, BlockKey{EveryoneSet, scope, head})
	for i, id := range append([]readstate.MemberID{o.Author, o.Principal}, o.Mentions...) {
		if m, ok, _ := g.memberKeys.get(memberName{w.Key, id}); ok {
			n.row(scope, m)
			n.row(row.Info.Parent, m)
			n.blockers = append(n.blockers, m)
			if i > 1 {
				n.inboxes = append(n.inboxes, m)
			}
		}
	}
}

// draft is a message whose members are known and which nothing speaks against.
type draft struct {
	author, principal readstate.MemberKey
	named             []readstate.MemberKey
	readable          bool
	op                OpKey
	digest            Digest
}

func (o *post) run(ctx context.Context, g *group, w *workspace) (any, error) {
	if o.refused != nil {
		return nil, o.refused
	}
	scope, err := g.scope(ctx, w, o.Scope)
	if err != nil {
		return nil, err
	}
	author, err := g.ensureMember(ctx, w, o.Author, o.CreateMembers)
	if err != nil {
		return nil, err
	}
	// Whoever sends a post again sends its local id too: the message is looked up before its operation
	// id is, which a group that is not careful knows of loaded messages only.
	local, err := g.localMessage(ctx, scope.Info.Key, o.LocalID)
	if err != nil {
		return nil, err
	}
	d := draft{author: author.Key, op: OpKey{w.Key, author.Key, o.OpID}, digest: o.sum}
	if r, found, err := g.repeated(ctx, d.op, d.digest, w, g.careful > 0); found || err != nil {
		return r, err
	}
	if local != nil && scope.Info.Type == readstate.Session {
		return local.again(w), nil // whatever this one says
	}
	if err := o.resolveDraft(ctx, g, w, scope, &d); err != nil {
		return nil, err
	}
	if err := o.unused(ctx, g, scope, local); err != nil {
		return nil, err
	}
	g.touch(w)
	return o.append(ctx, g, w, scope, d)
}

// check refuses what no state could accept.
func (o *post) check() error {
	if err := CheckID("opId", o.OpID); err != nil {
		return err
	}
	for what, id := range map[string]string{
		"messageId": o.MessageID, "localId": o.LocalID, "replyTo": o.ReplyTo,
	} {
		if id == "" {
			continue
		}
		if err := CheckID(what, id); err != nil {
			return err
		}
	}
	if o.Kind == "" {
		o.Kind = "text"
	}
	if len(o.Payload) == 0 {
		o.Payload = nil // empty is none; the digest could not encode it
	}
	if _, ok := kindsReadable[o.Kind]; !ok {
		return fmt.Errorf("%w: unknown kind %q", ErrInvalid, o.Kind)
	}
	if len(o.Mentions) > MaxMentions {
		return fmt.Errorf("%w: a message names at most %d members", ErrInvalid, MaxMentions)
	}
	if err := checkPayload(o.Payload); err != nil {
		return err
	}
	if o.ExpiresAt < 0 {
		return fmt.Errorf("%w: expiresAt before 1970", ErrInvalid)
	}
	return nil
}

func checkPayload(p []byte) error {
	if len(p) > MaxPayloadBytes {
		return fmt.Errorf("%w: payload is larger than %d bytes", ErrInvalid, MaxPayloadBytes)
	}
	if len(p) > 0 && (!utf8.Valid(p) || !json.Valid(p)) {
		return fmt.Errorf("%w: payload is not JSON in UTF-8", ErrInvalid)
	}
	return nil
}

// resolveDraft finds everyone the message is about, and checks it against the scope.
func (o *post) resolveDraft(
	ctx context.Context, g *group, w *workspace, s ScopeRow, d *draft,
) error {
	if !o.By.Trusted && o.By.Member != "" {
		ok, err := g.sees(ctx, s, d.author)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("scope %q: %w", o.Scope, ErrNotFound)
		}
	}
	if o.Broadcast && s.Info.Type != readstate.Thread {
		return fmt.Errorf("%w: only a thread's reply is broadcast", ErrInvalid)
	}
	if o.Everyone && s.Info.Type.Targeted() {
		return fmt.Errorf("%w: everyone is not mentioned in a %s", ErrInvalid, s.Info.Type)
	}
	if o.AdvanceCursor != nil && *o.AdvanceCursor > s.Ranks.Head {
		return fmt.Errorf("%w: observed revision %d is above %d",
			ErrFuture, *o.AdvanceCursor, s.Ranks.Head)
	}
	d.readable = kindsReadable[o.Kind]
	set(&d.readable, o.Readable)
	if s.Info.Type == readstate.Session {
		d.readable = rendered(o.Kind, o.Payload) && (o.Readable == nil || *o.Readable)
	}
	if o.Baseline {
		d.readable = false
	}
	if o.Principal != "" && o.Principal != o.Author {
		p, err := g.ensureMember(ctx, w, o.Principal, o.CreateMembers)
		if err != nil {
			return err
		}
		d.principal = p.Key
	}
	var err error
	d.named, err = g.named(ctx, w, o.Mentions, o.CreateMembers)
	return err
}

// named resolves mentions, each once, in the order given.
func (g *group) named(
	ctx context.Context, w *workspace, ids []readstate.MemberID, create bool,
) ([]readstate.MemberKey, error) {
	var out []readstate.MemberKey
	seen := make(map[readstate.MemberKey]struct{}, len(ids))
	for _, id := range ids {
		m, err := g.ensureMember(ctx, w, id, create)
		if err != nil {
			return nil, err
		}
		if _, ok := seen[m.Key]; !ok {
			seen[m.Key] = struct{}{}
			out = append(out, m.Key)
		}
	}
	return out, nil
}

// unused refuses a message id or local id that another message has.
func (o *post) unused(
	ctx context.Context, g *group, s ScopeRow, local *MessageRow,
) error {
	logs := []readstate.ScopeKey{s.Info.Key}
	if o.Broadcast {
		logs = append(logs, s.Info.Parent) // the channel's entry has the same id
	}
	for _, scope := range logs {
		if o.MessageID == "" {
			break
		}
		m, err := g.message(ctx, scope, o.MessageID)
		if err != nil {
			return err
		}
		if m != nil {
			return fmt.Errorf("message %q exists: %w", o.MessageID, ErrMismatch)
		}
	}
	if local != nil {
		return fmt.Errorf("local id %q is taken: %w", o.LocalID, ErrMismatch)
	}
	return nil
}

// localMessage finds an entry by the id that its sender's device gave it; nil for none.
func (g *group) localMessage(
	ctx context.Context, s readstate.ScopeKey, id string,
) (*MessageRow, error) {
	if id == "" {
		return nil, nil
	}
	if p, ok := g.messages.byLocal[messageName{s, id}]; ok {
		return g.messages.rows[p], nil
	}
	tx, err := g.open(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := tx.MessagesByLocalID(ctx, s, []string{id})
	if err != nil {
		return nil, broken("load messages", err)
	}
	for _, r := range rows {
		return g.messages.loaded(r), nil
	}
	return nil, nil
}

// again is the receipt of an entry that was sent before.
func (m *MessageRow) again(w *workspace) Receipt {
	return Receipt{
		MessageID: m.ID, Seq: m.Seq, Revision: m.Revision, LSN: w.LSN, Duplicate: true,
	}
}

// append stages the message. The order is that of the events: follows, then the sender's own
// read, then the entry itself, then its copy in the channel.
func (o *post) append(
	ctx context.Context, g *group, w *workspace, s ScopeRow, d draft,
) (any, error) {
	if s.Info.Type == readstate.Thread && d.readable {
		if err := o.follow(ctx, g, w, &s, d); err != nil {
			return nil, err
		}
	}
	advanced, err := o.advance(ctx, g, w, s, d.author)
	if err != nil {
		return nil, err
	}
	id := o.MessageID
	if id == "" {
		id = g.newID()
	}
	row := MessageRow{
		ID: id, Kind: o.Kind, Author: d.author, Principal: d.principal, Named: d.named,
		Everyone: o.Everyone, Live: true, Silent: o.Silent, ReplyTo: o.ReplyTo,
		Op: d.op, OpDigest: d.digest, LocalID: o.LocalID, ExpiresAt: o.ExpiresAt,
		CreatedAt: g.clock, Payload: o.Payload,
	}
	entry, err := g.appendEntry(ctx, w, s, row, d.readable)
	if err != nil {
		return nil, err
	}
	out := Receipt{MessageID: id, Seq: entry.Seq, Revision: entry.Revision, LSN: w.LSN}
	if !o.Broadcast {
		if !advanced {
			return out, nil
		}
		return out, g.settle(ctx, w, s.Info.Key)
	}
	channel, err := g.scopeByKey(ctx, s.Info.Parent)
	if err != nil {
		return nil, err
	}
	row.Op, row.OpDigest, row.LocalID = OpKey{}, Digest{}, ""
	row.Peer, row.PeerRevision = entry.Place, entry.Revision
	twin, err := g.appendEntry(ctx, w, channel, row, d.readable)
	if err != nil {
		return nil, err
	}
	entry.Peer, entry.PeerRevision = twin.Place, twin.Revision
	g.messages.change(entry)
	out.Channel = &ChannelCopy{Seq: twin.Seq, Revision: twin.Revision}
	return out, nil
}

// follow makes those follow the thread whom a reply concerns: who wrote the root, as long as it
// is kept, who writes now, and whom it names.
func (o *post) follow(ctx context.Context, g *group, w *workspace, s *ScopeRow, d draft) error {
	var who []readstate.MemberKey
	root, err := g.rootAuthor(ctx, *s)
	if err != nil {
		return err
	}
	who = append(append(append(who, root), d.author), d.named...)
	return g.autoFollow(ctx, w, s, who)
}

// rootAuthor returns who wrote a thread's root, or zero when they follow already or the root has
// been trimmed or moved away. The root itself is looked up only where it matters.
func (g *group) rootAuthor(ctx context.Context, s ScopeRow) (readstate.MemberKey, error) {
	if s.Owner == 0 {
		return 0, nil
	}
	_, up, _, err := g.parent(ctx, s, s.Owner)
	if err != nil {
		return 0, err
	}
	row, exists, err := g.state(ctx, RowKey{s.Info.Key, s.Owner})
	if err != nil || !row.Row.FollowsByItself(exists, up.Row.Epoch) {
		return 0, err
	}
	m, err := g.message(ctx, s.Info.Parent, s.Info.RootMessage)
	if err != nil || m == nil || m.Thread != s.Info.Key { // one that has come back is no root
		return 0, err
	}
	return s.Owner, nil
}

// advance is "send and read what I saw". It does nothing for a sender without a row here, which it
// says, and never clears a manual mark.
func (o *post) advance(
	ctx context.Context, g *group, w *workspace, s ScopeRow, author readstate.MemberKey,
) (bool, error) {
	if o.AdvanceCursor == nil {
		return false, nil
	}
	row, exists, err := g.state(ctx, RowKey{s.Info.Key, author})
	if err != nil {
		return false, err
	}
	ok, err := g.inReach(ctx, s, row, exists)
	if err != nil || !ok {
		return false, err
	}
	r := reading{scope: s, row: row}
	r.outcome, err = r.row.Row.MarkRead(s.Ranks.Head, readstate.ReadCommand{Revision: *o.AdvanceCursor})
	if err != nil {
		return false, err
	}
	if s.Info.Type == readstate.Task {
		seq, err := g.pairedActivity(ctx, s, *o.AdvanceCursor)
		if err != nil {
			return false, err
		}
		if err := g.readActivity(ctx, &r, seq); err != nil {
			return false, err
		}
	}
	return true, g.carryOut(ctx, w, &r)
}
