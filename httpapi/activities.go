package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tidemark-im/tidemark"
	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/live/strict"
	"github.com/tidemark-im/tidemark/readstate"
)

// Recorded answers a new activity.
type Recorded struct {
	ActivityID  string `json:"activityId"`
	ActivitySeq uint64 `json:"activitySeq"`
	HighSignal  bool   `json:"highSignal"`
	LSN         uint64 `json:"lsn"`
	Duplicate   bool   `json:"duplicate"`
}

func (r Recorded) status() int {
	if r.Duplicate {
		return http.StatusOK
	}
	return http.StatusCreated
}

// activityBody is an activity to record.
type activityBody struct {
	OpID    string          `json:"opId"`
	Actor   string          `json:"actor"`
	Type    string          `json:"type"`
	RefType string          `json:"refType,omitempty"`
	Ref     string          `json:"ref,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Activity is one as readers see it. Its seq is among the activities of the scope, which are
// counted apart from the messages. Recipients are the humans whom one of a task was delivered to,
// at most twenty of them; Delivered is how many there were.
type Activity struct {
	ID          string          `json:"id"`
	ActivitySeq uint64          `json:"activitySeq"`
	Type        string          `json:"type"`
	HighSignal  bool            `json:"highSignal"`
	Actor       string          `json:"actor"`
	Subject     string          `json:"subject,omitempty"`
	Recipients  []string        `json:"recipients,omitempty"`
	Delivered   int             `json:"delivered,omitempty"`
	RefType     string          `json:"refType,omitempty"`
	Ref         string          `json:"ref,omitempty"`
	CreatedAt   time.Time       `json:"createdAt"`
	Payload     json.RawMessage `json:"payload,omitempty"`
}

// ActivityList is a page of activities, ascending by seq. LatestActivitySeq is what a reader of
// everything has read.
type ActivityList struct {
	Activities        []Activity `json:"activities"`
	HasMore           bool       `json:"hasMore"`
	LatestActivitySeq uint64     `json:"latestActivitySeq"`
}

type activityListParams struct {
	scopeMemberParams
	Before strict.Counter `query:"before" doc:"Activities with a lower seq, the newest of them"`
	After  strict.Counter `query:"after" doc:"Activities with a higher seq, the oldest of them"`
	Limit  int            `query:"limit" max:"500" doc:"At most so many. Default 100"`
	Kind   string         `query:"kind" enum:"timeline" doc:"Only what changed a task"`
}

func (s *Server) addActivities() {
	const path = scopesPath + "/{s}/activities"
	add(s, route{
		method: http.MethodPost, path: path, id: "postActivity", tag: "activities",
		role: RoleService, statuses: []int{http.StatusCreated, http.StatusOK},
		about: "Record a durable activity that is no message. Who has to know is planned here.",
	}, postActivity)
	add(s, route{
		method: http.MethodGet, path: path, id: "listActivities", tag: "activities",
		about: "A page of activities: the newest, or those beside a seq.",
	}, listActivities)
}

func postActivity(c *call, p *postParams, b *activityBody) (Recorded, error) {
	create, err := c.mayCreate(p.Create)
	if err != nil {
		return Recorded{}, err
	}
	if err := facts.CheckID("actor", b.Actor); err != nil {
		return Recorded{}, err
	}
	op := facts.RecordActivity{
		Scope: p.S, OpID: b.OpID, Actor: readstate.MemberID(b.Actor), Type: b.Type,
		RefType: b.RefType, RefID: b.Ref, Payload: b.Payload, CreateMembers: create,
		By: facts.Actor{Trusted: true},
	}
	r, err := c.ws.RecordActivity(c.ctx(), op)
	return Recorded{
		ActivityID: r.ActivityID, ActivitySeq: uint64(r.Seq), HighSignal: r.HighSignal,
		LSN: uint64(r.LSN), Duplicate: r.Duplicate,
	}, err
}

func listActivities(c *call, p *activityListParams, _ *none) (ActivityList, error) {
	if p.Before > 0 && p.After > 0 {
		return ActivityList{}, refuse(CodeInvalidRequest, "either before or after, not both")
	}
	if _, err := c.seen(p.S, p.Member); err != nil {
		return ActivityList{}, err
	}
	f := tidemark.ActivityFilter{
		Scope: p.S, After: readstate.Seq(p.After), Before: readstate.Seq(p.Before),
		Limit: p.Limit, Timeline: p.Kind == "timeline",
	}
	if f.Limit == 0 {
		f.Limit = DefaultPage
	}
	page, err := c.ws.Activities(c.ctx(), f)
	out := ActivityList{
		Activities: make([]Activity, len(page.Activities)), HasMore: page.HasMore,
		LatestActivitySeq: uint64(page.Latest),
	}
	for i := range page.Activities {
		out.Activities[i] = newActivity(&page.Activities[i])
	}
	return out, err
}

func newActivity(a *facts.Activity) Activity {
	out := Activity{
		ID: a.ID, ActivitySeq: uint64(a.Seq), Type: a.Type, HighSignal: a.HighSignal,
		Actor: string(a.Actor), Subject: string(a.Subject), RefType: a.RefType, Ref: a.RefID,
		CreatedAt: time.UnixMilli(a.CreatedAt).UTC(), Payload: a.Payload,
		Delivered: a.Delivered,
	}
	for _, id := range a.Recipients {
		out.Recipients = append(out.Recipients, string(id))
	}
	return out
}
