package factstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/internal/model"
	"github.com/tidemark-im/tidemark/readstate"
)

// Doer runs the operations of one workspace: a lane bound to it, or an engine's handle.
type Doer interface {
	PutMember(context.Context, facts.PutMember) (facts.Setting, error)
	SetBlock(context.Context, facts.SetBlock) (facts.Setting, error)
	PutScope(context.Context, facts.PutScope) (facts.Setting, error)
	PutMembership(context.Context, facts.PutMembership) (facts.Setting, error)
	Leave(context.Context, facts.Leave) (facts.Setting, error)
	SetFollow(context.Context, facts.SetFollow) (facts.Setting, error)
	Post(context.Context, facts.Post) (facts.Receipt, error)
	Edit(context.Context, facts.Edit) (facts.Receipt, error)
	Remove(context.Context, facts.Remove) (facts.Receipt, error)
	Rewind(context.Context, facts.Rewind) (facts.Receipt, error)
	Trim(context.Context, facts.TrimScope) (facts.Receipt, error)
	Move(context.Context, facts.Move) (facts.Receipt, error)
	RecordActivity(context.Context, facts.RecordActivity) (facts.ActivityReceipt, error)
	PutTask(context.Context, facts.PutTask) (facts.TaskReceipt, error)
	PutSession(context.Context, facts.PutSession) (facts.SessionReceipt, error)
	ForkSession(context.Context, facts.ForkSession) (facts.SessionReceipt, error)
	MergeSession(context.Context, facts.MergeSession) (facts.SessionReceipt, error)
	Read(context.Context, facts.MarkRead) error
	Unread(context.Context, facts.MarkUnread) error
	Expire(context.Context) error
	// Newest returns the newest live messages of a scope, at most limit.
	Newest(ctx context.Context, s readstate.ScopeID, limit int) ([]facts.Message, error)
}

// Driver runs the oracle's operations on real ones, beside the oracle. Clock is the time that
// the store's owner must be given.
type Driver struct {
	World *model.World
	do    Doer
	ids   map[place]string
	// unnamed are entries of sessions that came as tombstones: nobody lists them.
	unnamed map[place]bool
	next    int
}

type place struct {
	scope model.ScopeID
	seq   model.Seq
}

// NewDriver starts with an empty world and makes the members A to E.
func NewDriver(ctx context.Context, do Doer) (*Driver, error) {
	d := &Driver{World: model.New(), do: do, ids: map[place]string{}, unnamed: map[place]bool{}}
	for m := model.MemberID(1); m <= 5; m++ {
		if _, err := do.PutMember(ctx, facts.PutMember{ID: Member(m)}); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Member and Scope name the oracle's members and scopes on the real side.
func Member(m model.MemberID) readstate.MemberID { return readstate.MemberID(m.String()) }

// Scope names a scope of the oracle on the real side.
func (d *Driver) Scope(s model.ScopeID) readstate.ScopeID {
	if info, ok := d.World.Scope(s); ok && info.Kind == model.Session {
		return facts.SessionScope(Member(info.Owner), s.String())
	}
	return readstate.ScopeID(s.String())
}

// Time is the oracle's clock as a time.
func Time(s model.Seconds) time.Time { return time.Unix(1_700_000_000+int64(s), 0).UTC() }

// Clock returns the time of the world.
func (d *Driver) Clock() time.Time { return Time(d.World.Clock()) }

func millis(s model.Seconds) int64 {
	if s == 0 {
		return 0
	}
	return Time(s).UnixMilli()
}

// Apply runs one operation on both sides. The error says how they differ: one refuses what the
// other accepts, or they disagree about what an accepted one did.
func (d *Driver) Apply(ctx context.Context, op model.Op) error {
	if d.outside(op) {
		return nil
	}
	want, refused := d.World.Apply(op)
	if t, ok := d.do.(interface{ Tick() }); ok {
		t.Tick()
	}
	if op.Kind == model.OpReadAll {
		return d.readAll(ctx, op, want)
	}
	err := d.run(ctx, op, want, refused == nil)
	if kind(err) != kind(refused) {
		return fmt.Errorf("%s: got error %v, want %v", op, err, refused) //nolint:errorlint // each may be nil
	}
	return nil
}

// outside reports operations that the two sides spell differently: hiding or showing a scope
// that the member has left, which is a join on the real side, and changing an entry whose id is
// not known.
func (d *Driver) outside(op model.Op) bool {
	if op.Kind == model.OpEdit || op.Kind == model.OpRemove {
		return d.unnamed[place{op.Scope, op.Seq}]
	}
	if op.Kind != model.OpShow && op.Kind != model.OpHide {
		return false
	}
	row, ok := d.World.Row(op.Member, op.Scope)
	info, _ := d.World.Scope(op.Scope)
	return !ok || !row.Joined || info.Kind == model.Thread
}

// kind reduces an error to the class that both sides share.
func kind(err error) string {
	classes := []struct {
		name  string
		cause []error
	}{
		{"invalid", []error{model.ErrInvalid, facts.ErrInvalid}},
		{"not found", []error{model.ErrNotFound, facts.ErrNotFound}},
		{"future", []error{model.ErrFuture, facts.ErrFuture}},
		{"forbidden", []error{model.ErrForbidden, facts.ErrForbidden}},
		{"conflict", []error{model.ErrConflict, facts.ErrConflict}},
		{"replaced", []error{model.ErrReplaced, facts.ErrReplaced}},
		{"mismatch", []error{model.ErrMismatch, facts.ErrMismatch}},
	}
	for _, c := range classes {
		for _, cause := range c.cause {
			if errors.Is(err, cause) {
				return c.name
			}
		}
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func (d *Driver) opID() string {
	d.next++
	return fmt.Sprintf("op-%d", d.next)
}

func (d *Driver) run(ctx context.Context, op model.Op, want model.Outcome, accepted bool) error {
	var err error
	switch op.Kind {
	case model.OpCreate:
		return d.create(ctx, op)
	case model.OpPost:
		return d.post(ctx, op, want, accepted)
	case model.OpEdit:
		names := members(op.Mentions)
		_, err = d.do.Edit(ctx, facts.Edit{
			Scope: d.Scope(op.Scope), Message: d.id(op.Scope, op.Seq), OpID: d.opID(),
			Mentions: &names, Everyone: &op.Everyone,
		})
	case model.OpRemove:
		_, err = d.do.Remove(ctx, facts.Remove{
			Scope: d.Scope(op.Scope), Message: d.id(op.Scope, op.Seq), OpID: d.opID(),
		})
	case model.OpRewind:
		_, err = d.do.Rewind(ctx, facts.Rewind{
			Scope: d.Scope(op.Scope), OpID: d.opID(), Through: readstate.Seq(op.Seq),
		})
	case model.OpTrim:
		_, err = d.do.Trim(ctx, facts.TrimScope{
			Scope: d.Scope(op.Scope), OpID: d.opID(), Through: readstate.Seq(op.Seq),
		})
	case model.OpMove:
		return d.move(ctx, op, want, accepted)
	case model.OpExpire:
		return d.do.Expire(ctx)
	case model.OpAdvanceClock:
	case model.OpBlock, model.OpUnblock:
		_, err = d.do.SetBlock(ctx, facts.SetBlock{
			Member: Member(op.Member), Other: Member(op.Other), Blocked: op.Kind == model.OpBlock,
		})
	case model.OpRead:
		return d.read(ctx, op)
	case model.OpMarkUnread:
		return d.markUnread(ctx, op)
	case model.OpActivity:
		return d.activity(ctx, op, want, accepted)
	case model.OpActivityRead:
		seq := readstate.Seq(op.Activity)
		return d.do.Read(ctx, facts.MarkRead{
			Scope: d.Scope(op.Scope), Member: Member(op.Member), ActivitySeq: &seq, Trusted: op.Service,
		})
	case model.OpTask:
		return d.task(ctx, op, want, accepted)
	case model.OpRunState, model.OpMerge, model.OpFork:
		return d.session(ctx, op, accepted)
	default:
		return d.membership(ctx, op)
	}
	return err
}

// id names an entry; one that never was gets a name that nothing has.
func (d *Driver) id(s model.ScopeID, seq model.Seq) string {
	if id, ok := d.ids[place{s, seq}]; ok {
		return id
	}
	return fmt.Sprintf("nothing-%s-%d", s, seq)
}

func members(ms []model.MemberID) []readstate.MemberID {
	out := make([]readstate.MemberID, len(ms))
	for i, m := range ms {
		out[i] = Member(m)
	}
	return out
}

func (d *Driver) create(ctx context.Context, op model.Op) error {
	if op.Type == model.Session {
		_, err := d.do.PutSession(ctx, facts.PutSession{
			Owner: Member(op.Member), ID: op.Scope.String(), Create: true,
		})
		return err
	}
	types := map[model.ScopeKind]readstate.ScopeType{
		model.Channel: readstate.Channel, model.DM: readstate.DM, model.Thread: readstate.Thread,
		model.Task: readstate.Task,
	}
	history := readstate.HistoryJoined
	if op.Shared {
		history = readstate.HistoryShared
	}
	put := facts.PutScope{ID: d.Scope(op.Scope), Type: types[op.Type], History: &history}
	if op.Type == model.Thread {
		put.Parent = d.Scope(op.To)
		if op.Seq > 0 {
			put.RootMessage = d.id(op.To, op.Seq)
		}
	}
	_, err := d.do.PutScope(ctx, put)
	return err
}

func (d *Driver) post(ctx context.Context, op model.Op, want model.Outcome, accepted bool) error {
	id := d.opID()
	post := facts.Post{
		Scope: d.Scope(op.Scope), OpID: id, MessageID: "m-" + id, Author: Member(op.Member),
		Mentions: members(op.Mentions), Everyone: op.Everyone, Broadcast: op.Broadcast,
		Baseline: op.Baseline, ExpiresAt: millis(op.Expires), By: facts.Actor{Trusted: true},
	}
	if op.Other != 0 {
		post.Principal = Member(op.Other)
	}
	if info, ok := d.World.Scope(op.Scope); ok && info.Kind == model.Session {
		post.Payload = json.RawMessage(`"an answer"`)
	}
	if op.Unreadable {
		readable := false
		post.Readable = &readable
	}
	if op.Revision > 0 {
		saw := readstate.Revision(op.Revision)
		post.AdvanceCursor = &saw
	}
	r, err := d.do.Post(ctx, post)
	if err != nil || !accepted {
		return err
	}
	d.ids[place{op.Scope, want.Seq}] = r.MessageID
	if r.Seq != readstate.Seq(want.Seq) || r.Revision != readstate.Revision(want.Revision) {
		return fmt.Errorf("post is at %d/%d, want %d/%d", r.Seq, r.Revision, want.Seq, want.Revision)
	}
	if want.CopySeq == 0 {
		return nil
	}
	info, _ := d.World.Scope(op.Scope)
	d.ids[place{info.Parent, want.CopySeq}] = r.MessageID
	if r.Channel == nil || r.Channel.Seq != readstate.Seq(want.CopySeq) ||
		r.Channel.Revision != readstate.Revision(want.CopyRevision) {
		return fmt.Errorf("copy is at %+v, want %d/%d", r.Channel, want.CopySeq, want.CopyRevision)
	}
	return nil
}

func (d *Driver) move(ctx context.Context, op model.Op, want model.Outcome, accepted bool) error {
	mv := facts.Move{Scope: d.Scope(op.Scope), OpID: d.opID(), To: d.Scope(op.To), Counted: op.Count}
	for _, seq := range op.Seqs {
		mv.Messages = append(mv.Messages, d.id(op.Scope, seq))
	}
	_, err := d.do.Move(ctx, mv)
	if err != nil || !accepted {
		return err
	}
	first := want.Seq - model.Seq(len(op.Seqs)) + 1
	for i := range op.Seqs {
		d.ids[place{op.To, first + model.Seq(i)}] = mv.Messages[i]
	}
	return nil
}

func (d *Driver) read(ctx context.Context, op model.Op) error {
	if !op.Service && op.Version == model.NoVersion {
		return facts.ErrInvalid // the wire refuses it: a member names a version
	}
	revision := readstate.Revision(op.Revision)
	return d.do.Read(ctx, facts.MarkRead{
		Scope: d.Scope(op.Scope), Member: Member(op.Member), Revision: &revision,
		Version: version(op.Version), Trusted: op.Service,
	})
}

func (d *Driver) readAll(ctx context.Context, op model.Op, want model.Outcome) error {
	for i, item := range want.Items {
		err := d.read(ctx, model.Op{
			Kind: model.OpRead, Scope: op.Items[i].Scope, Member: op.Member,
			Revision: op.Items[i].Revision, Version: op.Items[i].Version, Service: op.Service,
		})
		if kind(err) != kind(item.Err) {
			return fmt.Errorf("%s: item %d: got error %v, want %v", op, i, err, item.Err) //nolint:errorlint // each may be nil
		}
	}
	return nil
}

func (d *Driver) markUnread(ctx context.Context, op model.Op) error {
	if !op.Service && op.Version == model.NoVersion {
		return facts.ErrInvalid // the wire refuses it
	}
	return d.do.Unread(ctx, facts.MarkUnread{
		Scope: d.Scope(op.Scope), Member: Member(op.Member), From: readstate.Revision(op.From),
		Version: version(op.Version), Trusted: op.Service,
	})
}

func version(v model.Version) *uint64 {
	if v == model.NoVersion {
		return nil
	}
	n := uint64(v)
	return &n
}

func (d *Driver) membership(ctx context.Context, op model.Op) error {
	put := facts.PutMembership{Scope: d.Scope(op.Scope), Member: Member(op.Member)}
	yes, no := true, false
	switch op.Kind {
	case model.OpJoin:
		if op.From > 0 {
			from := readstate.Revision(op.From)
			put.Effective = &from
		}
		if op.Revision > 0 {
			read := readstate.Revision(op.Revision)
			put.Read = &read
		}
	case model.OpLeave:
		_, err := d.do.Leave(ctx, facts.Leave{Scope: put.Scope, Member: put.Member})
		return err
	case model.OpShow:
		put.Visible = &yes
	case model.OpHide:
		put.Visible = &no
	case model.OpSetLevel:
		level := readstate.Level(op.Level) // same order on both sides
		put.Level, put.Until = &level, millis(op.Until)
		put.MustBeJoined, put.Trusted = true, op.Service
	case model.OpFollow, model.OpUnfollow:
		_, err := d.do.SetFollow(ctx, facts.SetFollow{
			Scope: put.Scope, Member: put.Member, Following: op.Kind == model.OpFollow,
			Trusted: true, // whether a member sees the parent is the wire's to check
		})
		return err
	case model.OpArchive, model.OpUnarchive:
		return d.archive(ctx, op)
	default:
		return fmt.Errorf("driver does not know %s", op)
	}
	_, err := d.do.PutMembership(ctx, put)
	return err
}

func (d *Driver) archive(ctx context.Context, op model.Op) error {
	info, ok := d.World.Scope(op.Scope)
	if !ok {
		return facts.ErrNotFound
	}
	types := map[model.ScopeKind]readstate.ScopeType{
		model.Channel: readstate.Channel, model.DM: readstate.DM, model.Thread: readstate.Thread,
	}
	archived := op.Kind == model.OpArchive
	if info.Kind == model.Session {
		_, err := d.do.PutSession(ctx, facts.PutSession{
			Owner: Member(info.Owner), ID: op.Scope.String(), Archived: &archived,
		})
		return err
	}
	_, err := d.do.PutScope(ctx, facts.PutScope{
		ID: d.Scope(op.Scope), Type: types[info.Kind], Archived: &archived,
	})
	return err
}
