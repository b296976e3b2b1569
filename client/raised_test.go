package client_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
)

// A read is raised by a later one of its session while it waits. Raised between the choice of what to
// send and the sending, it is sent as it stands then: the answer to less would take all of it away.
//
// covers: SE-095
func TestAReadIsRaisedBeforeItIsSent(t *testing.T) {
	w := newWorld(t)
	w.session("s", 1)
	var d *device
	var armed atomic.Bool
	raised := make(chan error, 1)
	d = w.open(func(o *deviceOptions) {
		o.options.OnStep(func(step string) {
			if step == "chosen" && armed.CompareAndSwap(true, false) {
				_, err := d.MarkRead(d.see("s"))
				if err == nil && len(d.Operations()) != 1 {
					err = fmt.Errorf("the outbox has %+v", d.Operations())
				}
				raised <- err
			}
		})
	}).ready(1)
	w.guard(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPut {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(rw, r)
	})
	if _, err := d.MarkRead(d.see("s")); err != nil {
		t.Fatal(err)
	}
	w.await("the refusal", func() bool { return d.Status().Waiting != nil })
	w.answers("s", 3)
	w.await("the messages", func() bool { return d.see("s").ContentRevision == 4 })
	w.guard(nil)
	armed.Store(true)
	d.Foreground()
	if err := <-raised; err != nil {
		t.Fatal(err)
	}
	d.drained()
	if got := w.said("s"); got != "4 4 false 0" {
		t.Errorf("the server has %s", got)
	}
}
