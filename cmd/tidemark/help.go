package main

import (
	"strings"

	"github.com/alecthomas/kong"
)

// helpTexts are what is too long to stand beside a flag.
var helpTexts = kong.Vars{
	"about_admin_listen": "Where metrics and profiles are, for operators only; \"off\" for none.",
	"about_cors_origin":  "Origins whose pages may ask; \"*\" for any.",
	"about_counts": "Also write every count as a line member,scope,unread,attention; compressed if " +
		"the name ends in .gz.",
	"about_facts_of_replay": "Where the facts are kept. Without it they are in a temporary database " +
		"that is removed at the end.",
	"about_jwks": "Key set of RS256, ES256 and EdDSA tokens: a file, or an https address.",
	"about_jwt_secret_file": "File with the secret of HS256 tokens, or two for rotation, one a line; the " +
		"first one signs. Or put it into $TIDEMARK_JWT_SECRET.",
	"about_max_entries": "Rows of members who are not connected that a workspace keeps in memory.",
	"about_output": "Where to write instead of the standard output; compressed if the name ends in " +
		".gz.",
	"about_ws": "Workspace; \"*\" is all of them, for an admin.",
}

// helpLine is a flag's help with its default and the variable that sets it.
func helpLine(v *kong.Value) string {
	var facts []string
	if v.HasDefault {
		facts = append(facts, "default "+v.Default)
	}
	for _, env := range v.Tag.Envs {
		facts = append(facts, "$"+env)
	}
	if len(facts) == 0 {
		return v.Help
	}
	return strings.TrimSuffix(v.Help, ".") + " (" + strings.Join(facts, ", ") + ")."
}
