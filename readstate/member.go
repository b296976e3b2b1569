package readstate

import "fmt"

// Ground is where a scope stands when a member joins it.
type Ground struct {
	Head           Revision
	Floor          Revision
	SignalHead     uint64
	LatestActivity Seq
	History        History
	Writer         Writer // of the joining member
	ParentEpoch    uint64 // threads: the parent row's present epoch
}

// JoinCommand makes a member part of a scope. Effective and Read are for services that carry a
// history over; nil leaves the rule of the scope in force.
type JoinCommand struct {
	Effective *Revision // first revision that may count, 1 .. head+1
	Read      *Revision // cursor to start from, at most head
}

// JoinResult tells what a join did.
type JoinResult struct {
	Outcome  Outcome
	NewEpoch bool
	// To is where Point belongs now: equal to Point.E unless the caller has a move to make.
	To Revision
}

// Join makes the row joined. Joining anew puts the effective point on the head and starts the
// activity cursor at the latest activity; a member who is already joined, or who returns under
// HistoryShared, keeps everything. What the command names explicitly wins over both: an effective
// revision other than the one in force lowers the cursor below it, a read revision raises it.
func (r *Row) Join(exists bool, g Ground, c JoinCommand) (JoinResult, error) {
	if c.Effective != nil && (*c.Effective < 1 || *c.Effective > g.Head+1) {
		return JoinResult{}, fmt.Errorf("%w: effective from %d, head is %d",
			ErrFuture, *c.Effective, g.Head)
	}
	if c.Read != nil && *c.Read > g.Head {
		return JoinResult{}, fmt.Errorf("%w: read %d, head is %d", ErrFuture, *c.Read, g.Head)
	}
	var res JoinResult
	stale := exists && r.ParentEpoch != g.ParentEpoch
	keeps := exists && !stale && (r.Joined || g.History == HistoryShared)
	before := *r
	if keeps {
		r.Joined = true
	} else {
		r.startEpoch(exists, g)
		res.NewEpoch = true
	}
	if c.Effective != nil && (!keeps || !before.Joined || *c.Effective != before.Effective) {
		r.Effective = *c.Effective
		r.Read = min(r.Read, r.Effective-1)
	}
	if c.Read != nil {
		r.Read = max(r.Read, *c.Read)
	}
	res.To = r.EffectivePoint(g.Floor)
	if *r != before || !exists {
		res.Outcome = Applied
	}
	return res, nil
}

// startEpoch begins a membership that owes nothing to an earlier one.
func (r *Row) startEpoch(exists bool, g Ground) {
	r.Joined = true
	if !exists {
		r.Visible = true
	}
	r.Epoch++
	r.ParentEpoch = g.ParentEpoch
	r.Effective = g.Head + 1
	r.Manual.change(false, 0)
	r.Point.MoveToHead(g.Head, g.Writer)
	r.Activity = ActivityPoint{
		Read: g.LatestActivity, SignalAt: g.SignalHead, ActorAt: g.Writer.ActorHead,
	}
}

// Leave ends the membership. Everything else stays and goes on being maintained.
func (r *Row) Leave() Outcome {
	if !r.Joined {
		return Unchanged
	}
	r.Joined = false
	return Applied
}

// FollowsByItself reports that a message may make the member follow a thread: they have no row
// of the parent's present epoch, and did not stop following.
func (r *Row) FollowsByItself(exists bool, parentEpoch uint64) bool {
	if !exists {
		return true
	}
	if r.Follow == FollowStopped {
		return false
	}
	return !r.Joined || r.ParentEpoch != parentEpoch
}

// FollowBefore makes the row of a member who follows a thread from revision first on, before
// the message of that revision is posted: the row owes nothing to what lies below.
func (r *Row) FollowBefore(exists bool, g Ground) {
	r.startEpoch(exists, g)
}

// Watch is the member's own choice to be told of everything in a task, or not to be. It says
// nothing about the level: who is assigned or named is told all the same, and counts it.
func (r *Row) Watch(watching bool) Outcome {
	before := r.Follow
	r.Follow = FollowStopped
	if watching {
		r.Follow = FollowExplicit
	}
	if r.Follow == before {
		return Unchanged
	}
	return Applied
}

// SetFollow is the member's own choice for a thread. The row must be joined by the caller first. Following
// brings the level all, stopping brings mentions, both without end; a level set later replaces
// either.
func (r *Row) SetFollow(following bool) Outcome {
	before := *r
	r.Follow, r.Notification = FollowStopped, Notification{Level: LevelMentions}
	if following {
		r.Follow, r.Notification = FollowExplicit, Notification{Level: LevelAll}
	}
	if *r == before {
		return Unchanged
	}
	return Applied
}
