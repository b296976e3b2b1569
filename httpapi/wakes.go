package httpapi

import (
	"net/http"
	"time"

	"github.com/tidemark-im/tidemark/facts"
	"github.com/tidemark-im/tidemark/live/strict"
	"github.com/tidemark-im/tidemark/outbox"
	"github.com/tidemark-im/tidemark/readstate"
)

// WakeEndpoint is where an agent's wakes are sent, and how that goes. The secret is never shown.
type WakeEndpoint struct {
	URL      string `json:"url,omitempty"`
	Disabled bool   `json:"disabled"`
	Waiting  int    `json:"waiting"`
	Failures int    `json:"failures"`
	Error    string `json:"error,omitempty"`
}

func newWakeEndpoint(e *outbox.EndpointState) WakeEndpoint {
	return WakeEndpoint{
		URL: e.URL, Disabled: e.Disabled, Waiting: e.Waiting, Failures: e.Streak, Error: e.Error,
	}
}

// endpointBody is an address to send to, and the secret to sign with: base64 of 24 to 64 bytes.
type endpointBody struct {
	URL    string `json:"url"`
	Secret string `json:"secret"`
}

// Wake is one event that an agent has to know.
type Wake struct {
	Position uint64      `json:"position"`
	ID       string      `json:"id"`
	Message  WakeMessage `json:"message"`
}

// WakeMessage is what is sent to receivers.
type WakeMessage outbox.Message

// Wakes are an agent's oldest wakes. Asking for those after a position acknowledges everything up
// to it.
type Wakes struct {
	Wakes []Wake `json:"wakes"`
}

type wakeParams struct {
	memberParams
	After strict.Counter `query:"after" doc:"Acknowledge everything up to this position"`
	Wait  string         `query:"wait" doc:"How long to wait for a wake, as 30s; at most a minute"`
	Limit int            `query:"limit" max:"500" doc:"At most so many. Default 100"`
}

const memberPath = "/api/v1/workspaces/{ws}/members/{m}"

func (s *Server) addWakes() {
	add(s, route{
		method: http.MethodPut, path: memberPath + "/wake", id: "putWakeEndpoint", tag: "wakes",
		role: RoleService, about: "Have an agent's wakes sent to an address, those that wait included.",
	}, func(c *call, p *memberParams, b *endpointBody) (WakeEndpoint, error) {
		box, err := c.outbox()
		if err == nil {
			err = box.PutEndpoint(c.ctx(), p.WS, p.M, outbox.Endpoint{URL: b.URL, Secret: b.Secret})
		}
		return c.wakeEndpoint(p, err)
	})
	add(s, route{
		method: http.MethodGet, path: memberPath + "/wake", id: "getWakeEndpoint", tag: "wakes",
		role: RoleService, about: "Where an agent's wakes are sent, and how that goes.",
	}, func(c *call, p *memberParams, _ *none) (WakeEndpoint, error) {
		return c.wakeEndpoint(p, nil)
	})
	add(s, route{
		method: http.MethodDelete, path: memberPath + "/wake", id: "removeWakeEndpoint", tag: "wakes",
		role: RoleService, about: "Have an agent's wakes wait to be read.",
	}, func(c *call, p *memberParams, _ *none) (WakeEndpoint, error) {
		box, err := c.outbox()
		if err == nil {
			err = box.RemoveEndpoint(c.ctx(), p.WS, p.M)
		}
		return c.wakeEndpoint(p, err)
	})
	add(s, route{
		method: http.MethodGet, path: memberPath + "/wakes", id: "listWakes", tag: "wakes",
		about: "An agent's wakes, the oldest first; waits for one where there is none.",
	}, listWakes)
}

// outbox is the server's, where it has one.
func (c *call) outbox() (*outbox.Outbox, error) {
	if c.server.outbox == nil {
		return nil, refuse(CodeUnavailable, "this server has no outbox")
	}
	return c.server.outbox, nil
}

func (c *call) wakeEndpoint(p *memberParams, err error) (WakeEndpoint, error) {
	if err != nil {
		return WakeEndpoint{}, err
	}
	box, err := c.outbox()
	if err != nil {
		return WakeEndpoint{}, err
	}
	state, err := box.Endpoint(c.ctx(), p.WS, p.M)
	return newWakeEndpoint(&state), err
}

func listWakes(c *call, p *wakeParams, _ *none) (Wakes, error) {
	if _, err := c.subject(p.M); err != nil {
		return Wakes{}, err
	}
	box, err := c.outbox()
	if err != nil {
		return Wakes{}, err
	}
	wait, err := parseWait(p.Wait)
	if err != nil {
		return Wakes{}, err
	}
	if p.Limit == 0 {
		p.Limit = DefaultPage
	}
	wait = min(wait, c.server.limits.RequestTimeout-answerTime)
	all, err := box.Wakes(c.ctx(), p.WS, p.M, facts.WakeKey(p.After), wait, p.Limit)
	out := Wakes{Wakes: make([]Wake, len(all))}
	for i := range all {
		out.Wakes[i] = Wake{
			Position: uint64(all[i].Key), ID: all[i].ID, Message: WakeMessage(all[i].Message),
		}
	}
	return out, err
}

// answerTime is what is left of a request's time to answer that there was nothing.
const answerTime = time.Second

func parseWait(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 || wait > outbox.MaxWait {
		return 0, refuse(CodeInvalidRequest, "wait is a time like 30s, at most %v", outbox.MaxWait)
	}
	return wait, nil
}

// forgetWakes drops the endpoint of a member who is about to be erased, with what waits there. It
// comes first, so that a failure can be tried again; no wake is queued for one who is erased.
func (c *call) forgetWakes(m readstate.MemberID) error {
	if c.server.outbox == nil {
		return nil
	}
	info, err := c.ws.Member(c.ctx(), m)
	if err != nil {
		return err
	}
	space := facts.WorkspaceKey(info.Key >> 32)
	return c.server.outbox.Forget(c.ctx(), space, info.Key)
}
