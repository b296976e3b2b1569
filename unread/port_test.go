package unread

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidemark-im/tidemark/readstate"
)

// readPort is the port through which dots and counts are read.
type readPort interface {
	Counts(
		ctx context.Context, id readstate.WorkspaceID, member readstate.MemberID, dst []Count,
	) ([]Count, readstate.LSN, error)
	HasUnread(readstate.WorkspaceID, readstate.MemberID) (bool, State)
	Row(context.Context, readstate.WorkspaceID, readstate.MemberID, readstate.ScopeID) (Row, error)
	Rows(context.Context, readstate.WorkspaceID, readstate.MemberID, string, int) (RowPage, error)
	Summary(context.Context, readstate.WorkspaceID, readstate.MemberID) (Summary, error)
	Totals(
		context.Context, readstate.WorkspaceID, readstate.MemberID, Group,
	) (map[string]readstate.Badge, error)
	Lines(
		context.Context, readstate.WorkspaceID, readstate.MemberID, string, int, func(*LinePage),
	) (State, error)
	Recent(context.Context, readstate.WorkspaceID, readstate.MemberID, RecentQuery) (Recent, error)
}

var _ readPort = (*Runtime)(nil)

// What a runtime offers besides reading: following changes, explaining, being fed, and its life.
var otherPorts = []string{
	"Applied", "Apply", "Changed", "Close", "Drop", "Explain", "Forget", "Hinted", "Open", "Stats", "Unheld",
	"Visible", "Watch",
}

// The read port is all there is to read dots and counts by, and nothing of a store goes through
// it: it takes names, and gives values of the runtime or the algebra.
//
// covers: RT-030
func TestTheReadPortIsNarrow(t *testing.T) {
	port, whole := reflect.TypeFor[readPort](), reflect.TypeFor[*Runtime]()
	names := slices.Clone(otherPorts)
	for m := range port.Methods() {
		names = append(names, m.Name)
		for i := range m.Type.NumIn() {
			allowed(t, m.Name, m.Type.In(i))
		}
		for i := range m.Type.NumOut() {
			allowed(t, m.Name, m.Type.Out(i))
		}
	}
	slices.Sort(names)
	var offered []string
	for m := range whole.Methods() {
		offered = append(offered, m.Name)
	}
	if !slices.Equal(offered, names) {
		t.Errorf("the runtime offers\n%v\nits ports are\n%v", offered, names)
	}
	// Read through the port, values are those of the runtime.
	d := newDesk(t, Config{}, append(room, "post s1 A @B")...)
	d.load("B")
	var r readPort = d.r
	dot, state := r.HasUnread(testSpace, "B")
	row, err := r.Row(cold(), testSpace, "B", "s1")
	if !dot || state != Ready || err != nil || row.Values.Unread != 1 || row.Values.Attention != 1 {
		t.Errorf("dot %t, %s; row %+v, %v", dot, state, row.Values, err)
	}
}

// allowed fails for a type that belongs to anything below the runtime but the algebra.
func allowed(t *testing.T, method string, typ reflect.Type) {
	t.Helper()
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice:
		allowed(t, method, typ.Elem())
		return
	case reflect.Map:
		allowed(t, method, typ.Key())
		allowed(t, method, typ.Elem())
		return
	}
	pkg := typ.PkgPath()
	if pkg == "" || pkg == "context" || strings.HasSuffix(pkg, "/unread") || strings.HasSuffix(pkg, "/readstate") {
		return
	}
	t.Errorf("%s: %s belongs to %s", method, typ, pkg)
}
