package model

// Step is one kind of thing that a generated history does: an operation, or a few
// that together make a case which chance finds too rarely.
type Step uint8

// The steps. Those after the plain operations are cases of several operations.
const (
	StepPost Step = iota
	StepEdit
	StepRemove
	StepRewind
	StepTrim
	StepMove
	StepClock
	StepExpire
	StepJoin
	StepLeave
	StepVisibility
	StepRead
	StepReadHead
	StepReadAll
	StepMarkUnread
	StepLevel
	StepFollow
	StepArchive
	StepBlock
	StepActivity
	StepActivityRead
	StepTask // watch, assign, change a status, read: only planned tasks
	StepRunState
	StepMerge
	StepFork
	StepRefused       // something that must be refused or change nothing
	StepEditNames     // an edit names a member for whom the message is unread
	StepEditEveryone  // an edit to everyone for a member at level mentions
	StepRunEnds       // a session's run ends with something unread
	StepUnblock       // a block is lifted from somebody who wrote meanwhile
	StepFirstWriter   // a member is blocked before it ever wrote in the scope
	StepDMMentions    // a dm at level mentions gets a message
	StepRejoin        // leave, missed messages, join
	StepThreadEpoch   // a thread under a channel that is left and joined again
	StepManualRemoved // everything from a manual mark on is removed
	NumSteps
)

// Mix says how often generated histories take each step, relative to the sum of all
// weights, and which scopes they have. A weight of 0 leaves a step out. The weights
// of a Mix used with [DecodeOps] sum up to at most 256.
type Mix struct {
	Weights  [NumSteps]int
	Tasks    bool // whether there is a task,
	Planned  bool // which finds its recipients by itself
	Sessions bool // whether there are two sessions
}

// FullMix has every step and every kind of scope.
func FullMix() Mix {
	m := Mix{Tasks: true, Sessions: true}
	m.Weights = [NumSteps]int{
		StepPost: 46, StepEdit: 6, StepRemove: 10, StepRewind: 2, StepTrim: 3, StepMove: 6,
		StepClock: 5, StepExpire: 4, StepJoin: 7, StepLeave: 4, StepVisibility: 4,
		StepRead: 18, StepReadHead: 10, StepReadAll: 3, StepMarkUnread: 12, StepLevel: 12,
		StepFollow: 8, StepArchive: 3, StepBlock: 6, StepActivity: 7, StepActivityRead: 4,
		StepRunState: 4, StepMerge: 2, StepFork: 1, StepRefused: 8,
		StepEditNames: 8, StepEditEveryone: 10, StepRunEnds: 6, StepUnblock: 7,
		StepFirstWriter: 6, StepDMMentions: 6, StepRejoin: 5, StepThreadEpoch: 5,
		StepManualRemoved: 5,
	}
	return m
}

// FactsMix has tasks that find their recipients by themselves.
func FactsMix() Mix {
	m := FullMix()
	m.Weights[StepTask] = 16
	m.Planned = true
	return m
}

// HubMix leaves out tasks, sessions and activities.
func HubMix() Mix {
	m := FullMix().Without(StepActivity, StepActivityRead, StepRunState, StepMerge, StepFork,
		StepRunEnds)
	m.Tasks, m.Sessions = false, false
	return m
}

// Without returns the mix with some steps left out.
func (m Mix) Without(steps ...Step) Mix {
	for _, s := range steps {
		m.Weights[s] = 0
	}
	return m
}

// Generated histories have the members A to E and at most maxScopes scopes.
const (
	genMembers int     = 5
	maxScopes  ScopeID = 16
)

// setupText makes two channels (s1, s2), one with shared history (s3), a dm (s4), and
// threads under s1 and s3. Some members are not in, and most have written nowhere, so
// that first joins and first messages of a writer happen within a history.
const setupText = `
create s1 channel
create s2 channel
create s3 channel shared
create s4 dm
join s1 A
join s1 B
join s1 C
join s1 D
join s2 A
join s2 B
join s2 C
join s3 A
join s3 B
join s3 C
join s3 D
join s3 E
join s4 A
join s4 B
post s1 A
post s1 B @C
post s3 A @B
create s5 thread s1 root=1
create s6 thread s1 root=2
create s7 thread s3 root=1
`

const taskText = `
create s8 task
join s8 A
join s8 B
join s8 C
`

const plannedText = `
create s8 task planned
join s8 A
join s8 B
join s8 C
join s8 D
follow s8 A
task s8 A assignee=B
`

const sessionText = `
create s9 session A
create s10 session A
`

// Setup returns the operations that make the scopes s1 to s10 and join the members A
// to E, without the task (s8) or the sessions (s9, s10) if the mix has none.
func Setup(mix Mix) []Op {
	text := setupText
	switch {
	case mix.Tasks && mix.Planned:
		text += plannedText
	case mix.Tasks:
		text += taskText
	}
	if mix.Sessions {
		text += sessionText
	}
	ops, err := ParseOps(text)
	if err != nil {
		panic("model: setup: " + err.Error()) // our own constant
	}
	return ops
}
