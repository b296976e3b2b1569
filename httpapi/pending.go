package httpapi

import (
	"net/http"
	"reflect"
)

// addPending registers routes whose parts are not built yet. They have their access rules and
// answer not_found, so that clients can tell them from a mistyped path by the document.
func (s *Server) addPending() {
	absent := func(*call) error { return refuse(CodeNotFound, "not available in this release") }
	for _, p := range []struct {
		route
		params []param
	}{
		{route{
			method: http.MethodPost, path: scopesPath + "/{s}/activities", id: "postActivity",
			tag: "activities", role: RoleService, about: "Record an activity. Not available yet.",
		}, paramsOf(reflect.TypeFor[scopeParams]())},
		{route{
			method: http.MethodPut, path: "/api/v1/workspaces/{ws}/tasks/{s}", id: "putTask",
			tag: "tasks", role: RoleService, about: "Change a task. Not available yet.",
		}, paramsOf(reflect.TypeFor[scopeParams]())},
	} {
		p.pending = true
		s.document.describe(p.route, p.params, reflect.TypeFor[none](), reflect.TypeFor[none]())
		s.router.add(endpoint{p.route, absent})
	}
}
