package facts

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/tidemark-im/tidemark/readstate"
)

// What operation ids were used for. The id of a post lives on its message and that of an activity on
// its row; every other operation leaves a receipt of its own.

// digest identifies a request's body. Who asked, and under which permissions, is no part of it.
func digest(op any) Digest {
	switch v := op.(type) {
	case Post:
		v.By, v.CreateMembers = Actor{}, false
		op = v
	case Edit:
		v.By = Actor{}
		op = v
	case Remove:
		v.By = Actor{}
		op = v
	case Rewind:
		v.By = Actor{}
		op = v
	case TrimScope:
		v.By = Actor{}
		op = v
	case Move:
		v.By = Actor{}
		op = v
	case SendInbox:
		v.By = Actor{}
		op = v
	case RecordActivity:
		v.By, v.CreateMembers = Actor{}, false
		op = v
	}
	text, err := json.Marshal(op)
	if err != nil {
		// The payload is the only part that may fail to encode, and it has been validated.
		panic(fmt.Sprintf("operation %T does not encode: %v", op, err))
	}
	h := sha256.New()
	h.Write(text)
	h.Write([]byte(reflect.TypeOf(op).String()))
	return Digest(h.Sum(nil)[:len(Digest{})])
}

// actorKey is whose operation ids an operation belongs to: the acting member's, or the
// workspace's services', which have the local number zero.
func (g *group) actorKey(
	ctx context.Context, w *workspace, by Actor,
) (readstate.MemberKey, error) {
	if by.Member == "" {
		return MemberKeyOf(w.Key, 0), nil
	}
	info, ok, err := g.findMember(ctx, w, by.Member)
	if err != nil || !ok {
		return MemberKeyOf(w.Key, 0), err
	}
	return info.Key, nil
}

// repeated answers an operation id that was used before: with the original receipt for the same
// body, else with ErrMismatch.
func (g *group) repeated(
	ctx context.Context, key OpKey, d Digest, w *workspace, sure bool,
) (any, bool, error) {
	used, err := g.receipt(ctx, key, sure)
	if err != nil || used == (usedFor{}) {
		return nil, false, err
	}
	g.careful = carefulGroups
	if used.operation != nil {
		return g.replayed(*used.operation, d)
	}
	m := used.message
	if m == nil || m.OpDigest != d { // an activity has the id, or another message
		return nil, true, fmt.Errorf("operation %q: %w", key.ID, ErrMismatch)
	}
	out := m.again(w)
	if m.Peer.Scope != 0 {
		out.Channel = &ChannelCopy{Seq: m.Peer.Seq, Revision: m.PeerRevision}
	}
	return out, true, nil
}

// replayed answers with a stored receipt.
func (g *group) replayed(op OperationRow, d Digest) (any, bool, error) {
	if op.Digest != d {
		return nil, true, fmt.Errorf("operation %q: %w", op.ID, ErrMismatch)
	}
	var r Receipt
	if err := json.Unmarshal(op.Result, &r); err != nil {
		return nil, true, broken("receipt", err)
	}
	r.Duplicate = true
	return r, true, nil
}

// keep stores the receipt of an operation whose id lives on no message.
func (g *group) keep(key OpKey, d Digest, r Receipt) error {
	text, err := json.Marshal(r)
	if err != nil {
		return broken("receipt", err)
	}
	g.operations.put(key, OperationRow{OpKey: key, Digest: d, Result: text, CreatedAt: g.clock})
	g.receiptOf(key.Actor, func(r *Receipted) { r.Operations = true })
	return nil
}

// usedFor is what an operation id was used for: one of these, or nothing.
type usedFor struct {
	message   *MessageRow
	activity  *ActivityRow
	operation *OperationRow // also of a message that has moved away since
}

// receipt finds what an operation id was used for.
func (g *group) receipt(ctx context.Context, k OpKey, sure bool) (usedFor, error) {
	op, exists, known := g.operations.get(k)
	if !known {
		if err := g.loadOps(ctx, []OpKey{k}, sure); err != nil {
			return usedFor{}, err
		}
		op, exists, _ = g.operations.get(k)
	}
	if exists {
		return usedFor{operation: &op}, nil
	}
	if a := g.activities[k]; a != nil {
		return usedFor{activity: a}, nil
	}
	if p, ok := g.messages.byOp[k]; ok {
		return usedFor{message: g.messages.rows[p]}, nil
	}
	return usedFor{}, nil
}

// receiptOf stages that an actor has a receipt of a kind. Of an actor whom nobody has asked about
// all kinds are assumed.
func (g *group) receiptOf(actor readstate.MemberKey, has func(*Receipted)) {
	kinds, _, known := g.receipted.get(actor)
	if !known && !g.madeMember(actor) {
		kinds = Receipted{Operations: true, Activities: true}
	}
	kinds.Actor = actor
	has(&kinds)
	g.receipted.staged[actor] = slot[Receipted]{kinds, true}
}

// loadOps loads what operation ids were used for. Unless it has to be sure, it does not ask for
// messages: a post whose id is taken cannot be written, and then the group runs again carefully.
func (g *group) loadOps(ctx context.Context, keys []OpKey, sure bool) error {
	keys = unknown(g.operations, keys, func(k OpKey) bool { return g.madeMember(k.Actor) })
	if len(keys) == 0 {
		return nil
	}
	if sure {
		tx, err := g.open(ctx)
		if err != nil {
			return err
		}
		messages, err := tx.MessagesByOp(ctx, keys)
		if err != nil {
			return broken("load operations", err)
		}
		for _, m := range messages {
			g.messages.loaded(m)
		}
	}
	if err := g.loadReceipted(ctx, keys); err != nil {
		return err
	}
	err := g.loadReceipts(ctx, g.withReceipts(keys, func(r Receipted) bool { return r.Operations }))
	if err != nil {
		return err
	}
	err = g.loadActivities(ctx, g.withReceipts(keys, func(r Receipted) bool { return r.Activities }))
	if err != nil {
		return err
	}
	for _, k := range keys {
		g.operations.loaded(k, OperationRow{}, false)
	}
	return nil
}

func (g *group) loadReceipts(ctx context.Context, keys []OpKey) error {
	if len(keys) == 0 {
		return nil
	}
	tx, err := g.open(ctx)
	if err != nil {
		return err
	}
	receipts, err := tx.Operations(ctx, keys)
	if err != nil {
		return broken("load receipts", err)
	}
	for _, r := range receipts {
		g.operations.loaded(r.OpKey, r, true)
	}
	return nil
}

func (g *group) loadActivities(ctx context.Context, keys []OpKey) error {
	if len(keys) == 0 {
		return nil
	}
	tx, err := g.open(ctx)
	if err != nil {
		return err
	}
	rows, err := tx.ActivitiesByOp(ctx, keys)
	if err != nil {
		return broken("load activities", err)
	}
	for i := range rows {
		if g.activities[rows[i].Op] == nil {
			g.activities[rows[i].Op] = &rows[i]
		}
	}
	return nil
}

// loadReceipted loads which receipts the actors of operations have at all.
func (g *group) loadReceipted(ctx context.Context, keys []OpKey) error {
	actors := make([]readstate.MemberKey, len(keys))
	for i, k := range keys {
		actors[i] = k.Actor
	}
	actors = unknown(g.receipted, actors, g.madeMember)
	if len(actors) == 0 {
		return nil
	}
	tx, err := g.open(ctx)
	if err != nil {
		return err
	}
	have, err := tx.WithReceipts(ctx, actors)
	if err != nil {
		return broken("load receipts", err)
	}
	for _, r := range have {
		g.receipted.loaded(r.Actor, r, true)
	}
	for _, a := range actors {
		g.receipted.loaded(a, Receipted{Actor: a}, false)
	}
	return nil
}

// withReceipts leaves out the keys of actors who have no receipt of a kind: most people write, and
// never edit or delete.
func (g *group) withReceipts(keys []OpKey, kind func(Receipted) bool) []OpKey {
	var out []OpKey
	for _, k := range keys {
		if r, _, _ := g.receipted.get(k.Actor); kind(r) {
			out = append(out, k)
		}
	}
	return out
}
