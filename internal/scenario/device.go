package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// fenceScope starts the name of a scope that is joined and left to learn that everything sent
// earlier has arrived. Each is new, so that the server has to read it like any other scope that is
// new to the member, and behind those that came before it.
const fenceScope = "scenario-fence"

// device is one sign-in of a member. With a stream it keeps a view.
type device struct {
	name, member string
	token        string
	stream       *stream // nil while not connected
	view         *view
	hello        *hello
	position     string  // where a resume goes on
	history      []event // facts in the order they came, for replay
	heard        map[string]int
	newest       map[string]*delta

	pages     map[string]bool // scopes listed by the snapshot under way
	pagesFrom uint64          // position of its first page
}

func (w *world) newDevice(name, actor string) (*device, error) {
	d := &device{name: name, member: w.member(actor), view: newView()}
	d.startCounting()
	w.devices[name] = d
	var err error
	d.token, err = w.token(name)
	return d, err
}

func (d *device) startCounting() { d.heard, d.newest = map[string]int{}, map[string]*delta{} }

// connect opens a stream and waits for the hello, and for the snapshot unless it resumed.
func (d *device) connect(ctx context.Context, w *world, after string) error {
	s, err := w.openStream(ctx, d.token, after)
	if err != nil {
		return err
	}
	d.stream, d.hello = s, nil
	complete := false
	return d.await(ctx, "hello and a complete snapshot", func(e event) bool {
		complete = complete || e.snapshot != nil && e.snapshot.Complete
		return d.hello != nil && (d.hello.Resumed || complete)
	})
}

func (d *device) drop() {
	if d.stream != nil {
		d.stream.close()
		d.stream = nil
	}
}

// await applies events until one makes done true.
func (d *device) await(ctx context.Context, what string, done func(event) bool) error {
	if d.stream == nil {
		return fmt.Errorf("%s is not connected: resume or reconnect it first", d.name)
	}
	for {
		select {
		case e, open := <-d.stream.events:
			if !open {
				return fmt.Errorf("%s waits for %s: %w", d.name, what, d.stream.err)
			}
			if err := d.take(e); err != nil {
				return err
			}
			if done(e) {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("%s waits for %s, which does not come: %w", d.name, what, ctx.Err())
		}
	}
}

// take applies one event to the view and checks what every event promises.
func (d *device) take(e event) error {
	switch {
	case e.hello != nil:
		d.hello = e.hello
		return nil
	case e.delta != nil:
		return d.takeDelta(e)
	}
	if d.pages == nil {
		d.pages, d.pagesFrom = map[string]bool{}, e.snapshot.LSN
	}
	for name := range e.snapshot.Scopes {
		d.pages[name] = true
	}
	d.view.apply(e)
	d.history = append(d.history, e)
	if e.snapshot.Complete {
		d.view.forget(d.pages, d.pagesFrom)
		d.position = strconv.FormatUint(d.pagesFrom, 10)
		d.keepPosition(e)
		d.pages = nil
	}
	return nil
}

// keepPosition remembers where a resume goes on: the last id that came. There is none until the
// last delta of a resumed round.
func (d *device) keepPosition(e event) {
	if e.id != "" {
		d.position = e.id
	}
}

func (d *device) takeDelta(e event) error {
	name := e.delta.Scope
	if last := d.newest[name]; last != nil && e.delta.LSN < last.LSN {
		return fmt.Errorf("%s: a delta of %s at %d came after one at %d",
			d.name, name, e.delta.LSN, last.LSN)
	}
	d.keepPosition(e)
	d.heard[name]++
	d.newest[name] = e.delta
	d.view.apply(e)
	if !strings.HasPrefix(name, fenceScope) {
		d.history = append(d.history, e)
	}
	return nil
}

// settle returns when everything that was sent to the device before has arrived, and checks
// that the device then shows what the list shows.
func (w *world) settle(ctx context.Context, d *device) error {
	if d.stream == nil {
		return fmt.Errorf("%s is not connected: resume or reconnect it first", d.name)
	}
	w.fences++
	fence := fmt.Sprint(fenceScope, "-", w.fences)
	if err := w.backendDoesQuietly(ctx, http.MethodPut, object{"type": "channel"},
		"scopes", fence); err != nil {
		return err
	}
	path := []string{"scopes", fence, "members", d.member}
	for _, method := range []string{http.MethodPut, http.MethodDelete} {
		body := object{}
		if method == http.MethodDelete {
			body = nil
		}
		if err := w.backendDoesQuietly(ctx, method, body, path...); err != nil {
			return err
		}
		removed := method == http.MethodDelete
		err := d.await(ctx, "the delta of "+method+" "+fence, func(e event) bool {
			return e.delta != nil && e.delta.Scope == fence && e.delta.Removed == removed
		})
		if err != nil {
			return err
		}
	}
	return w.checkSettled(ctx, d)
}

// checkSettled compares a device at rest with the list.
func (w *world) checkSettled(ctx context.Context, d *device) error {
	listed, err := w.list(ctx, d.name)
	if err != nil {
		return err
	}
	rows := d.view.listed()
	if diff := difference(rows, listed.Scopes); diff != "" {
		return fmt.Errorf("%s and the list disagree about %s", d.name, diff)
	}
	if d.view.badge != listed.Badge || d.view.hasUnread != listed.HasUnread {
		return fmt.Errorf("%s and the list disagree about the badge: %+v and %+v",
			d.name, d.view.badge, listed.Badge)
	}
	return nil
}

// backendDoesQuietly performs a change that no statement asked for, so repeat ignores it.
func (w *world) backendDoesQuietly(ctx context.Context, method string, body object,
	path ...string) error {
	c, err := w.asBackend(method, body, path...)
	if err != nil {
		return err
	}
	return w.must(ctx, c, nil)
}

func (w *world) playDevice(_ context.Context, s *Statement) error {
	_, err := w.newDevice(s.one("new-device"), s.one("member"))
	return err
}

func (w *world) playStream(ctx context.Context, s *Statement) error {
	d, err := w.newDevice(s.one("new-device"), s.one("actor"))
	if err != nil {
		return err
	}
	return d.connect(ctx, w, "")
}

func (w *world) playWatch(ctx context.Context, s *Statement) error {
	d := w.devices[s.one("device")]
	if err := w.settle(ctx, d); err != nil {
		return err
	}
	d.startCounting()
	return nil
}

func (w *world) playDrop(_ context.Context, s *Statement) error {
	w.devices[s.one("device")].drop()
	return nil
}

func (w *world) playResume(ctx context.Context, s *Statement) error {
	d := w.devices[s.one("device")]
	after := d.position
	if at, ok := s.field("at"); ok {
		after = at
	}
	if after == "" {
		return fmt.Errorf("%s has no position to resume at", d.name)
	}
	return w.connectAgain(ctx, d, after)
}

func (w *world) playReconnect(ctx context.Context, s *Statement) error {
	return w.connectAgain(ctx, w.devices[s.one("device")], "")
}

func (w *world) connectAgain(ctx context.Context, d *device, after string) error {
	d.drop()
	d.startCounting()
	d.pages = nil
	return d.connect(ctx, w, after)
}

// playRefresh merges a fetched list into the view by position, as a device does that asks and
// listens at once.
func (w *world) playRefresh(ctx context.Context, s *Statement) error {
	d := w.devices[s.one("device")]
	listed, err := w.list(ctx, d.name)
	if err != nil {
		return err
	}
	d.view.applyPage(listed)
	return nil
}

// playReplay applies the facts that came once more in another order; the view must not move.
func (w *world) playReplay(ctx context.Context, s *Statement) error {
	d := w.devices[s.one("device")]
	if err := w.settle(ctx, d); err != nil {
		return err
	}
	if len(d.history) == 0 {
		return errors.New("nothing came that could be replayed")
	}
	again := slices.Clone(d.history)
	if s.one("how") == "backwards" {
		slices.Reverse(again)
		d.view = newView()
	}
	for _, e := range again {
		d.view.apply(e)
	}
	return w.checkReplayed(ctx, d)
}

// checkReplayed compares rows only: the newest badge came with the fence, which is not replayed.
func (w *world) checkReplayed(ctx context.Context, d *device) error {
	listed, err := w.list(ctx, d.name)
	if err != nil {
		return err
	}
	rows := d.view.listed()
	for name := range rows {
		if strings.HasPrefix(name, fenceScope) {
			delete(rows, name)
		}
	}
	if diff := difference(rows, listed.Scopes); diff != "" {
		return fmt.Errorf("%s differs from the list after the replay about %s", d.name, diff)
	}
	return nil
}
