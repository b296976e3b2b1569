package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// docsPage is one operation after the other, with links between them and their types. It needs
// nothing from anywhere else.
var docsPage = template.Must(template.New("docs").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Title}} API</title>
<meta name="viewport" content="width=device-width">
<style>
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h2{margin-top:2.5rem;border-bottom:1px solid}
h3{font:600 1rem ui-monospace,monospace;margin:1.5rem 0 .2rem;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%;font-size:.9rem}
td{border-top:1px solid #8884;padding:.2rem .8rem .2rem 0;vertical-align:top}
code{font-family:ui-monospace,monospace}
td:first-child{white-space:nowrap}
pre{margin:.3rem 0 0;padding:.4rem .6rem;background:#8882;overflow-x:auto;font-size:.85rem}
@media (prefers-color-scheme:dark){body{background:#111;color:#ddd}a{color:#8bf}}
</style></head><body>
<h1>{{.Title}} API <small>{{.Version}}</small></h1>
<p>{{.About}}</p>
<p>The same as a machine reads it: <a href="openapi.json">openapi.json</a>. Every path below
/api/ needs <code>Authorization: Bearer TOKEN</code>; streams also take
<code>?access_token=TOKEN</code>.</p>
<p>{{range .Groups}}<a href="#{{.Tag}}">{{.Tag}}</a> {{end}}<a href="#types">types</a>
<a href="#errors">errors</a></p>
{{range .Groups}}<h2 id="{{.Tag}}">{{.Tag}}</h2>
{{range .Operations}}<h3 id="{{.ID}}">{{.Method}} {{.Path}}</h3>
<p>{{.About}} {{.Needs}}</p>
<table>{{range .Rows}}
<tr><td>{{.What}}</td><td>{{.Type}}</td><td>{{.Doc}}</td></tr>{{end}}</table>
{{with .Example}}<pre>{{.}}</pre>{{end}}
{{end}}{{end}}
<h2 id="types">types</h2>
{{range .Types}}<h3 id="type-{{.Name}}">{{.Name}}</h3>
<p>{{.About}}</p>
<table>{{range .Rows}}
<tr><td><code>{{.What}}</code></td><td>{{.Type}}</td><td>{{.Doc}}</td></tr>{{end}}</table>
{{end}}
<h2 id="errors">errors</h2>
<table>{{range .Errors}}
<tr><td><code>{{.Code}}</code></td><td>{{.Status}}</td><td>{{.Title}}</td></tr>{{end}}</table>
</body></html>
`))

type docsGroup struct {
	Tag        string
	Operations []docsOperation
}

type docsOperation struct {
	ID, Method, Path, About, Needs string
	Rows                           []docsRow
	Example                        string // of the body
}

type docsType struct {
	Name, About string
	Rows        []docsRow
}

type docsRow struct {
	What string
	Type template.HTML
	Doc  string
}

type docsError struct {
	Code   Code
	Status int
	Title  string
}

// renderDocs makes the readable page of a document.
func renderDocs(api *huma.OpenAPI) ([]byte, error) {
	page := struct {
		Title, Version, About string
		Groups                []docsGroup
		Types                 []docsType
		Errors                []docsError
	}{Title: api.Info.Title, Version: api.Info.Version, About: api.Info.Description}
	page.Groups = docsGroups(api)
	schemas := api.Components.Schemas.Map()
	for _, name := range sortedKeys(schemas) {
		page.Types = append(page.Types, docsType{
			name, schemas[name].Description, docsFields(schemas, schemas[name]),
		})
	}
	for _, r := range table {
		page.Errors = append(page.Errors, docsError{r.code, r.status, r.title})
	}
	var out bytes.Buffer
	if err := docsPage.Execute(&out, page); err != nil {
		return nil, fmt.Errorf("render docs: %w", err)
	}
	return out.Bytes(), nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func docsGroups(api *huma.OpenAPI) []docsGroup {
	byTag := map[string][]docsOperation{}
	for _, path := range sortedKeys(api.Paths) {
		item := api.Paths[path]
		for _, op := range []*huma.Operation{
			item.Get, item.Put, item.Post, item.Patch, item.Delete,
		} {
			if op != nil {
				byTag[op.Tags[0]] = append(byTag[op.Tags[0]], docsOf(api, op))
			}
		}
	}
	var groups []docsGroup
	for _, tag := range sortedKeys(byTag) {
		groups = append(groups, docsGroup{tag, byTag[tag]})
	}
	return groups
}

func docsOf(api *huma.OpenAPI, op *huma.Operation) docsOperation {
	schemas := api.Components.Schemas.Map()
	d := docsOperation{
		ID: op.OperationID, Method: op.Method, Path: op.Path, About: op.Summary,
		Needs: strings.ReplaceAll(op.Description, "`", ""),
	}
	for _, p := range op.Parameters {
		if p.In != "path" {
			d.Rows = append(d.Rows, docsRow{p.In + " " + p.Name, typeText(p.Schema), p.Description})
		}
	}
	if op.RequestBody != nil {
		body := op.RequestBody.Content["application/json"].Schema
		d.Rows = append(d.Rows, docsRow{"body", typeText(body), refDoc(schemas, body)})
		d.Example = docsExample(schemas, body)
	}
	for _, status := range sortedKeys(op.Responses) {
		r := op.Responses[status]
		for _, kind := range sortedKeys(r.Content) {
			switch s := r.Content[kind].Schema; kind {
			case "application/problem+json":
			case "text/event-stream":
				d.Rows = append(d.Rows, docsRow{status, "text/event-stream", s.Description})
				d.Rows = append(d.Rows, docsEvents("event ", s.Items)...)
			default:
				d.Rows = append(d.Rows, docsRow{status, typeText(s), refDoc(schemas, s)})
			}
		}
		if events, ok := r.Extensions["x-server-frame"].(*huma.Schema); ok {
			sent := r.Extensions["x-client-frame"].(*huma.Schema) //nolint:forcetypeassert // beside it
			d.Rows = append(d.Rows, docsRow{status, "WebSocket", r.Description})
			d.Rows = append(d.Rows, docsEvents("received ", events)...)
			d.Rows = append(d.Rows, docsRow{"sent", typeText(sent), refDoc(schemas, sent)})
			d.Example = docsExample(schemas, sent)
		}
	}
	return d
}

// docsEvents lists the events of a stream with what they carry.
func docsEvents(what string, s *huma.Schema) []docsRow {
	rows := make([]docsRow, len(s.OneOf))
	for i, one := range s.OneOf {
		row := docsRow{fmt.Sprint(what, one.Properties["event"].Enum[0]), "no data", one.Description}
		if data := one.Properties["data"]; data != nil {
			row.Type = typeText(data)
		}
		if one.Properties["id"] != nil {
			row.Doc += " May carry an id to resume after."
		}
		rows[i] = row
	}
	return rows
}

// refDoc is the description of the type that a schema refers to.
func refDoc(schemas map[string]*huma.Schema, s *huma.Schema) string {
	if to := schemas[strings.TrimPrefix(s.Ref, schemaPrefix)]; to != nil {
		return to.Description
	}
	return s.Description
}

// docsExample is the example of a type, empty for none.
func docsExample(schemas map[string]*huma.Schema, s *huma.Schema) string {
	to := schemas[strings.TrimPrefix(s.Ref, schemaPrefix)]
	if to == nil || len(to.Examples) == 0 {
		return ""
	}
	return string(to.Examples[0].(json.RawMessage)) //nolint:forcetypeassert // describeTypes put it there
}

func docsFields(schemas map[string]*huma.Schema, s *huma.Schema) []docsRow {
	var rows []docsRow
	for _, name := range sortedKeys(s.Properties) {
		what := name
		if !slices.Contains(s.Required, name) {
			what += "?"
		}
		p := s.Properties[name]
		row := docsRow{what, typeText(p), p.Description}
		if row.Doc == "" {
			row.Doc = refDoc(schemas, p)
		}
		rows = append(rows, row)
	}
	return rows
}

// typeText renders a schema in a few words, with links to the types it names.
func typeText(s *huma.Schema) template.HTML {
	if name, ok := strings.CutPrefix(s.Ref, schemaPrefix); ok {
		name = template.HTMLEscapeString(name)
		return template.HTML(`<a href="#type-` + name + `">` + name + `</a>`)
	}
	var parts []string
	for _, one := range s.OneOf {
		parts = append(parts, string(typeText(one)))
	}
	switch {
	case len(parts) > 0:
		return template.HTML(strings.Join(parts, " or "))
	case len(s.Enum) > 0:
		for _, word := range s.Enum {
			parts = append(parts, template.HTMLEscapeString(fmt.Sprint(word)))
		}
		return template.HTML(strings.Join(parts, " | "))
	case s.Type == huma.TypeArray:
		return "list of " + typeText(s.Items)
	}
	if inner, ok := s.AdditionalProperties.(*huma.Schema); ok {
		return "by name: " + typeText(inner)
	}
	if s.Type == "" {
		return "any"
	}
	return template.HTML(template.HTMLEscapeString(s.Type))
}
