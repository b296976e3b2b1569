package httpapi

import (
	"net/http"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/readstate"
)

// Task is what is known of a task beside its messages. What was never set is left out.
type Task struct {
	Scope    string `json:"scope"`
	Assignee string `json:"assignee,omitempty"`
	Status   string `json:"status,omitempty"`
	Title    string `json:"title,omitempty"`
}

func newTask(t *facts.Task) Task {
	return Task{
		Scope: string(t.Scope), Assignee: string(t.Assignee), Status: t.Status, Title: t.Title,
	}
}

// TaskChanged answers a change of a task with what it is now, and the types of the activities that
// say what changed, in the order in which they were recorded.
type TaskChanged struct {
	Status  string   `json:"status" enum:"applied,unchanged"`
	Task    Task     `json:"task"`
	Changed []string `json:"changed"`
	LSN     uint64   `json:"lsn"`
}

// taskBody names what shall change; an empty assignee is nobody.
type taskBody struct {
	Assignee *string `json:"assignee,omitempty"`
	Status   *string `json:"status,omitempty"`
	Title    *string `json:"title,omitempty"`
}

const taskPath = "/api/v1/workspaces/{ws}/tasks/{s}"

func (s *Server) addTasks() {
	add(s, route{
		method: http.MethodPut, path: taskPath, id: "putTask", tag: "tasks", role: RoleService,
		about: "Change the facts of a task for a member. Every change is a typed activity.",
	}, putTask)
	add(s, route{
		method: http.MethodGet, path: taskPath, id: "getTask", tag: "tasks",
		about: "The facts of a task.",
	}, func(c *call, p *scopeMemberParams, _ *none) (Task, error) {
		if _, err := c.seen(p.S, p.Member); err != nil {
			return Task{}, err
		}
		task, err := c.ws.Task(c.ctx(), p.S)
		return newTask(&task), err
	})
}

func putTask(c *call, p *scopeMemberParams, b *taskBody) (TaskChanged, error) {
	actor, err := c.subject(p.Member)
	if err != nil {
		return TaskChanged{}, err
	}
	op := facts.PutTask{
		Scope: p.S, Actor: actor, Status: b.Status, Title: b.Title,
		By: facts.Actor{Trusted: c.trusted()},
	}
	if b.Assignee != nil {
		id := readstate.MemberID(*b.Assignee)
		if err := checkIDs("assignee", id); err != nil {
			return TaskChanged{}, err
		}
		op.Assignee = &id
	}
	r, err := c.ws.PutTask(c.ctx(), op)
	out := TaskChanged{
		Status: "unchanged", Task: newTask(&r.Task), Changed: r.Changed, LSN: uint64(r.LSN),
	}
	if len(r.Changed) > 0 {
		out.Status = "applied"
	} else {
		out.Changed = []string{}
	}
	return out, err
}
