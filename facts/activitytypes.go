package facts

import "fmt"

// Types of the activities that a task's own facts append.
const (
	TaskAssigned      = "task_assigned"
	TaskUnassigned    = "task_unassigned"
	TaskStatusChanged = "task_status_changed"
	TaskTitleChanged  = "task_title_changed"
	// DiscussionAdded goes with every readable message of a task. The message is what counts.
	DiscussionAdded = "discussion_added"
)

// What an activity may refer to. Any other short word is allowed, too.
const (
	// RefTaskEvent marks the typed activities that are a task's timeline.
	RefTaskEvent = "task_event"
	// RefMessage marks an activity that goes with a message, whose id is the reference's.
	RefMessage = "message"
)

// highSignal lists the types of activity that somebody has to see: they make a scope unread for
// those whom they reach, outside tasks for everybody who has joined. All other types are kept and
// listed, and count for nobody.
var highSignal = map[string]bool{
	TaskAssigned:         true,
	TaskUnassigned:       true,
	TaskStatusChanged:    true,
	"task_due_changed":   true,
	"task_blocked":       true,
	"approval_requested": true,
	"approval_decided":   true,
	"review_requested":   true,
	"file_shared":        true,
	"poll_opened":        true,
	"poll_closed":        true,
	"call_missed":        true,
	"incident_opened":    true,
	"incident_resolved":  true,
}

// telemetry lists what is no activity at all: it comes by the second, says how somebody or some
// process is doing, and is worth nothing an hour later.
var telemetry = map[string]bool{
	"presence": true, "typing": true, "heartbeat": true, "agent_runtime": true,
	"daemon_telemetry": true, "session_trajectory": true, "live_trajectory": true,
	"agent_activity": true, "agent_status": true, "agent_session": true,
}

// HighSignal reports that activities of the type count as unread.
func HighSignal(activityType string) bool { return highSignal[activityType] }

// checkWord refuses what is no type: small letters, digits and underscores, a letter first.
func checkWord(what, word string) error {
	if word == "" {
		return fmt.Errorf("%w: %s is missing", ErrInvalid, what)
	}
	if len(word) > MaxTypeBytes {
		return fmt.Errorf("%w: %s is longer than %d bytes", ErrInvalid, what, MaxTypeBytes)
	}
	for i := range len(word) {
		c := word[i]
		letter := c >= 'a' && c <= 'z'
		if !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return fmt.Errorf("%w: %s %q is not made of small letters, digits and underscores",
				ErrInvalid, what, word)
		}
	}
	return nil
}

func checkActivityType(t string) error {
	if err := checkWord("type", t); err != nil {
		return err
	}
	if telemetry[t] {
		return fmt.Errorf("%w: %q is telemetry and not kept as an activity", ErrInvalid, t)
	}
	return nil
}
