package readsync_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/tidemark-im/tidemark/client/readsync"
)

func ids(ops []readsync.Operation) []string {
	var out []string
	for _, op := range ops {
		out = append(out, op.ID)
	}
	return out
}

// queue is an outbox with what the server said of the sessions.
type queue struct {
	*testing.T
	readsync.Outbox
	said map[string]state
	lost []readsync.Loss
	made int
}

func newQueue(t *testing.T) *queue {
	return &queue{T: t, said: map[string]state{
		"s": {ContentRevision: 13, ReadRevision: 10, Version: 4}, "r": {ContentRevision: 3},
	}}
}

func (q *queue) see(session string) readsync.View { return q.View(session, q.said[session]) }

func (q *queue) take(op readsync.Operation, base readsync.Version) string {
	q.Helper()
	c, id, err := q.Add(op, base)
	if err != nil {
		q.Fatal(err)
	}
	q.Apply(c)
	return id
}

func (q *queue) id() string {
	q.made++
	return string(rune('a' - 1 + q.made))
}

func (q *queue) read(session string, revision readsync.Revision) string {
	q.Helper()
	v := q.see(session)
	return q.take(readsync.NewRead(q.id(), v, revision, 0), v.Base)
}

func (q *queue) mark(session string) string {
	q.Helper()
	v := q.see(session)
	return q.take(readsync.NewUnread(q.id(), v, 0), v.Base)
}

func (q *queue) begin(id string) { q.Apply(q.Begin(id)) }

// answer settles an operation, and merges what the answer says.
func (q *queue) answer(id, session string, a readsync.Answer) {
	c := q.Settle(id, a)
	q.lost = append(q.lost, c.Lost...)
	q.Apply(c)
	if a.State != nil {
		q.said[session] = q.said[session].Merge(*a.State)
	}
}

func (q *queue) holds(want ...string) {
	q.Helper()
	if got := ids(q.Operations()); !slices.Equal(got, want) {
		q.Errorf("the outbox holds %v, want %v", got, want)
	}
}

func (q *queue) shows(session string, want state) {
	q.Helper()
	if got := q.see(session).State; got != want {
		q.Errorf("%s shows %+v, want %+v", session, got, want)
	}
}

func conflict(s state) readsync.Answer {
	return readsync.Answer{Status: 409, Code: "version_conflict", State: &s}
}

func ok(s state) readsync.Answer { return readsync.Answer{Status: 200, State: &s} }

// covers: SE-098 SE-110
func TestAnswersSettleTheirOwnOperation(t *testing.T) {
	q := newQueue(t)
	a := q.read("s", 11)
	q.begin(a)
	b := q.read("s", 12) // while the answer of a is under way
	c := q.read("r", 3)
	q.holds(a, b, c)
	q.answer(a, "s", ok(state{ContentRevision: 13, ReadRevision: 11, Version: 4}))
	q.holds(b, c)
	q.answer(a, "s", readsync.Answer{Status: 404, Code: "not_found"}) // once more, and another one
	q.holds(b, c)
	q.shows("s", state{ContentRevision: 13, ReadRevision: 12, Version: 4})
}

// covers: SE-099 SE-100 SE-101 SE-102
func TestRefusalsRollBack(t *testing.T) {
	for _, a := range []readsync.Answer{
		{Status: 400, Code: "invalid_request"}, {Status: 403, Code: "forbidden"},
		{Status: 404, Code: "not_found"}, {Status: 409, Code: readsync.CodeReplaced},
		conflict(state{ContentRevision: 14, ReadRevision: 12, ManualUnread: true, Version: 7}),
	} {
		q := newQueue(t)
		id := q.mark("s")
		q.shows("s", state{ContentRevision: 13, ReadRevision: 10, ManualUnread: true, Version: 5})
		q.begin(id)
		q.answer(id, "s", a)
		q.holds()
		want := state{ContentRevision: 13, ReadRevision: 10, Version: 4}
		if a.State != nil {
			want = *a.State
		}
		q.shows("s", want)
		if len(q.lost) != 1 || q.lost[0].Operation.ID != id || q.lost[0].Reason != readsync.Refused {
			t.Errorf("%d: lost %+v", a.Status, q.lost)
		}
	}
}

// What decides nothing leaves the operation as it is.
func TestOtherAnswersPostpone(t *testing.T) {
	q := newQueue(t)
	id := q.read("s", 13)
	for _, a := range []readsync.Answer{
		{}, {Unsent: true}, {Status: 500, Code: "internal"}, {Status: 503, Code: "unavailable"},
		{Status: 429, Code: "over_budget"}, {Status: 404}, {Status: 403}, {Status: 200},
		{Status: 302}, {Status: 401}, {Status: 421, Code: "not_owner"}, {Status: 401, Code: "token_expired"},
	} {
		q.begin(id)
		q.answer(id, "s", a)
		if op, ready := q.Next(func(string) bool { return false }); !ready || op.ID != id {
			t.Errorf("%+v: it is not sent again", a)
		}
	}
	q.shows("s", state{ContentRevision: 13, ReadRevision: 13, Version: 4})
}

// A read that was made on top of a mark which another device had made impossible keeps its revision
// and does not touch the other device's mark, although that has the version it was made for.
//
// covers: SE-103 SE-068 SE-070
func TestNothingIsRebased(t *testing.T) {
	theirs := state{ContentRevision: 13, ReadRevision: 10, ManualUnread: true, Version: 5}
	q := newQueue(t)
	mark, read := q.mark("s"), q.read("s", 13)
	again := q.mark("s")
	q.shows("s", state{ContentRevision: 13, ReadRevision: 13, ManualUnread: true, Version: 7})
	q.begin(mark)
	q.answer(mark, "s", conflict(theirs))
	q.holds(read)
	left := q.Operations()[0]
	if left.ExpectedVersion != 4 || left.Revision != 13 {
		t.Errorf("left is %+v", left)
	}
	if len(q.lost) != 2 || q.lost[1].Operation.ID != again || q.lost[1].Reason != readsync.Dependent {
		t.Errorf("lost %+v", q.lost)
	}
	q.shows("s", state{ContentRevision: 13, ReadRevision: 13, ManualUnread: true, Version: 5})
}

// The same history, but the mark had been sent before and its answer was lost. It is no loss; whose
// mark it is cannot be known, so that the read leaves it alone.
func TestAMarkWhoseAnswerWasLost(t *testing.T) {
	q := newQueue(t)
	mark, read := q.mark("s"), q.read("s", 13)
	q.begin(mark)
	q.Outbox = readsync.Restore(q.Operations()) // killed
	q.begin(mark)
	q.answer(mark, "s", conflict(state{ContentRevision: 13, ReadRevision: 10, ManualUnread: true, Version: 5}))
	q.holds(read)
	if op := q.Operations()[0]; op.ExpectedVersion != 4 || op.Revision != 13 || op.After != "" {
		t.Errorf("left is %+v", op)
	}
	q.shows("s", state{ContentRevision: 13, ReadRevision: 13, ManualUnread: true, Version: 5})
	if len(q.lost) != 0 {
		t.Errorf("lost %+v", q.lost)
	}
}

// A mark that begins at a message is nobody's but another device's: ours is lost, and that is told.
func TestAMarkThatBeginsElsewhereIsAnothers(t *testing.T) {
	theirs := state{ContentRevision: 13, ReadRevision: 10, ManualUnread: true, Version: 5, FromRevision: 12}
	q := newQueue(t)
	mark, read := q.mark("s"), q.read("s", 13)
	q.begin(mark)
	q.answer(mark, "s", readsync.Answer{}) // its answer was lost
	q.said["s"] = q.said["s"].Merge(theirs)
	if got := q.see("s"); !got.ManualUnread || got.ReadRevision != 13 {
		t.Errorf("before the refusal it shows %+v", got)
	}
	q.begin(mark)
	q.answer(mark, "s", conflict(theirs))
	q.holds(read)
	if len(q.lost) != 1 || q.lost[0].Operation.ID != mark || q.lost[0].Reason != readsync.Refused {
		t.Errorf("lost %+v", q.lost)
	}
	theirs.ReadRevision = 13
	q.shows("s", theirs)
}

// What others made of a session since is not what the mark was to bring about: it is told as lost.
func TestAMarkThatWasChangedSinceIsTold(t *testing.T) {
	q := newQueue(t)
	mark := q.mark("s")
	q.begin(mark)
	q.answer(mark, "s", readsync.Answer{})
	q.begin(mark)
	q.answer(mark, "s", conflict(state{ContentRevision: 13, ReadRevision: 13, Version: 6}))
	q.holds()
	if len(q.lost) != 1 || q.lost[0].Reason != readsync.Refused {
		t.Errorf("lost %+v", q.lost)
	}
	q.shows("s", state{ContentRevision: 13, ReadRevision: 13, Version: 6})
}

// A mark that surely never left does not count as sent.
func TestUnsentMarksAreNotAttempts(t *testing.T) {
	for _, a := range []readsync.Answer{
		{Unsent: true}, {Status: 401, Code: "token_expired"}, {Status: 429, Code: "over_budget"},
	} {
		q := newQueue(t)
		mark := q.mark("s")
		q.begin(mark)
		q.answer(mark, "s", a)
		q.begin(mark)
		q.answer(mark, "s", conflict(state{ContentRevision: 13, ManualUnread: true, Version: 5}))
		if len(q.lost) != 1 {
			t.Errorf("%+v: somebody else's mark is taken for this one", a)
		}
	}
}

// A read that came out otherwise than it was shown does not lend its version to what builds on it.
func TestAcceptedAndYetNotAsMeant(t *testing.T) {
	q := newQueue(t)
	q.said["s"] = state{ContentRevision: 13, ReadRevision: 10, ManualUnread: true, Version: 4}
	read := q.read("s", 13)
	mark := q.mark("s")
	q.begin(read)
	// Meanwhile another device took the mark away and set it again.
	q.answer(read, "s", ok(state{ContentRevision: 13, ReadRevision: 13, ManualUnread: true, Version: 6}))
	q.holds()
	if len(q.lost) != 1 || q.lost[0].Operation.ID != mark {
		t.Errorf("lost %+v", q.lost)
	}
}

// The event of an operation may come before its answer; what builds on it is shown all the same.
func TestEventsThatOvertakeAnswers(t *testing.T) {
	q := newQueue(t)
	mark := q.mark("s")
	q.read("s", 13)
	q.begin(mark)
	q.said["s"] = q.said["s"].Merge(state{ContentRevision: 13, ReadRevision: 10, ManualUnread: true, Version: 5})
	q.shows("s", state{ContentRevision: 13, ReadRevision: 13, Version: 6})
}

func TestReadsThatWaitAreFolded(t *testing.T) {
	q := newQueue(t)
	first := q.read("s", 11)
	if second := q.read("s", 13); second != first {
		t.Errorf("two reads wait")
	}
	q.holds(first)
	if op := q.Operations()[0]; op.Revision != 13 || op.ExpectedVersion != 4 {
		t.Errorf("the read is %+v", op)
	}
}

func TestWhatWasSeenLongAgo(t *testing.T) {
	q := newQueue(t)
	mark := q.mark("s")
	seen := q.see("s")
	q.begin(mark)
	q.answer(mark, "s", ok(state{ContentRevision: 13, ReadRevision: 10, ManualUnread: true, Version: 5}))
	q.take(readsync.NewRead("later", seen, 13, 0), seen.Base)
	if op := q.Operations()[0]; op.ExpectedVersion != 5 || op.After != "" {
		t.Errorf("the mark came about, and the read is %+v", op)
	}
	q = newQueue(t)
	mark = q.mark("s")
	seen = q.see("s")
	q.begin(mark)
	q.answer(mark, "s", conflict(state{ContentRevision: 13, ManualUnread: true, Version: 5}))
	if _, _, err := q.Add(readsync.NewUnread("x", seen, 0), seen.Base); !errors.Is(err, readsync.ErrStale) {
		t.Errorf("got %v", err)
	}
	q.take(readsync.NewRead("later", seen, 13, 0), seen.Base)
	if op := q.Operations()[0]; op.ExpectedVersion >= 4 || op.Revision != 13 {
		t.Errorf("the read is %+v", op)
	}
}

// What was seen on top of a read promises nothing once the mark under that read is lost: the version that
// it was to bring about is another device's mark.
//
// covers: SE-068 SE-070 SE-103
func TestWhatWasSeenOnAReadThatWasRebased(t *testing.T) {
	for _, settled := range []bool{false, true} {
		q := newQueue(t)
		mark := q.mark("s")
		read := q.read("s", 13)
		seen := q.see("s")
		theirs := state{ContentRevision: 13, ReadRevision: 10, ManualUnread: true, Version: 6}
		q.begin(mark)
		q.answer(mark, "s", conflict(theirs))
		if settled {
			q.begin(read)
			q.answer(read, "s", ok(theirs.Merge(state{ReadRevision: 13})))
		}
		if _, _, err := q.Add(readsync.NewUnread("x", seen, 0), seen.Base); !errors.Is(err, readsync.ErrStale) {
			t.Errorf("settled: %t: a mark: %v", settled, err)
		}
		q.take(readsync.NewRead("later", seen, 13, 0), seen.Base)
		for _, op := range q.Operations() {
			if op.ExpectedVersion >= 5 || op.Flips {
				t.Errorf("settled: %t: the read is %+v", settled, op)
			}
		}
	}
}

func TestOperationsAreGivenUpInTime(t *testing.T) {
	q := newQueue(t)
	old := q.read("r", 3)
	v := q.see("s")
	q.take(readsync.NewRead("young", v, 13, 1), v.Base)
	if c := q.Expire(readsync.GiveUpAfter - 1); !c.Empty() {
		t.Errorf("too early: %+v", c)
	}
	c := q.Expire(readsync.GiveUpAfter)
	q.Apply(c)
	q.holds("young")
	if len(c.Lost) != 1 || c.Lost[0].Operation.ID != old || c.Lost[0].Reason != readsync.TooOld {
		t.Errorf("lost %+v", c.Lost)
	}
	const horizon = 30 * 24 * 3600 * 1000
	if readsync.GiveUpAfter >= horizon {
		t.Error("the server has forgotten by then")
	}
}

// A clock that ran ahead makes operations from the future: their age counts from when it is right.
func TestOperationsOfAClockThatWasSetBack(t *testing.T) {
	const year, now = 365 * 24 * 3600 * 1000, 1000
	q := newQueue(t)
	v := q.see("s")
	q.take(readsync.NewRead("ahead", v, 13, now+year), v.Base)
	v = q.see("t")
	q.take(readsync.NewRead("usual", v, 13, now+1), v.Base) // clocks differ by a little all the time
	q.Apply(q.Expire(now))
	q.holds("ahead", "usual")
	if ops := q.Operations(); ops[0].CreatedAt != now || ops[1].CreatedAt != now+1 {
		t.Errorf("the operations are %+v", ops)
	}
	if c := q.Expire(now); !c.Empty() {
		t.Errorf("a second look changes %+v", c)
	}
	c := q.Expire(now + readsync.GiveUpAfter)
	if len(c.Lost) != 1 || c.Lost[0].Operation.ID != "ahead" || c.Lost[0].Reason != readsync.TooOld {
		t.Errorf("lost %+v", c.Lost)
	}
}

// A machine without a battery begins in 1970: what was made before its clock was set is not old.
func TestOperationsOfAClockThatWasNotSet(t *testing.T) {
	const set = 1_800_000_000_000
	q := newQueue(t)
	v := q.see("s")
	q.take(readsync.NewRead("unset", v, 13, 5000), v.Base)
	q.Apply(q.Expire(set))
	q.holds("unset")
	if c := q.Expire(set + readsync.GiveUpAfter - 1); !c.Empty() {
		t.Errorf("too early: %+v", c)
	}
	if c := q.Expire(set + readsync.GiveUpAfter); len(c.Lost) != 1 {
		t.Errorf("lost %+v", c.Lost)
	}
}

func TestOutboxesAreBounded(t *testing.T) {
	ops := make([]readsync.Operation, readsync.MaxOperations)
	for i := range ops {
		ops[i] = readsync.Operation{ID: string(rune(i + 256)), Session: string(rune(i + 256)), Kind: readsync.Read}
	}
	o := readsync.Restore(ops)
	if _, _, err := o.Add(readsync.NewRead("x", readsync.View{Session: "x"}, 1, 0), 0); !errors.Is(err, readsync.ErrFull) {
		t.Errorf("got %v", err)
	}
}

// covers: SE-125
func TestNothingIsSentForASessionThatIsGone(t *testing.T) {
	q := newQueue(t)
	mark, read, other := q.mark("s"), q.read("s", 13), q.read("r", 3)
	c := q.Supersede("s")
	q.Apply(c)
	q.holds(other)
	if got := []string{c.Lost[0].Operation.ID, c.Lost[1].Operation.ID}; !slices.Contains(got, mark) || !slices.Contains(got, read) {
		t.Errorf("lost %+v", c.Lost)
	}
}

// The mark of another device may come with the version that a waiting operation builds on. It is not
// shown as taken away.
func TestSomebodyElsesMarkIsShown(t *testing.T) {
	q := newQueue(t)
	q.mark("s")
	q.read("s", 13)
	q.said["s"] = q.said["s"].Merge(state{ContentRevision: 13, ReadRevision: 10, ManualUnread: true, Version: 5})
	q.shows("s", state{ContentRevision: 13, ReadRevision: 13, ManualUnread: true, Version: 5})
}

// A mark that begins at a message stays when only what lies before it is read.
func TestMarksThatBeginSomewhere(t *testing.T) {
	q := newQueue(t)
	marked := state{ContentRevision: 13, ReadRevision: 10, ManualUnread: true, Version: 4, FromRevision: 12}
	q.said["s"] = marked
	q.read("s", 11)
	marked.ReadRevision = 11
	q.shows("s", marked)
	q.read("s", 13)
	q.shows("s", state{ContentRevision: 13, ReadRevision: 13, Version: 5})
}
