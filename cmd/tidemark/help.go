package main

import (
	"strings"

	"github.com/alecthomas/kong"
)

// helpTexts are what is too long to stand beside a flag.
var helpTexts = kong.Vars{
	"about_against": "Another system to measure against, postgres or redis, and where it is; may be " +
		"given for each.",
	"about_bench_json":     "Where to write the report as JSON; \"-\" is the standard output.",
	"about_bench_markdown": "Where to write it for readers; the standard output without --json.",
	"about_scale": "How much to take on: quick takes seconds, full needs hours and 16 GiB of memory " +
		"and is what the bounds speak of.",
	"about_chat_link": "A sign-in link, as demo prints them, in place of --url and --token. Quote it: it " +
		"has an & in it.",
	"about_chat_store": "File with the marks that the server does not have yet. Without it they are among " +
		"the person's settings, in tidemark/chat.db; one program at a time uses a file.",
	"about_chat_token_file": "File with the token; it is read again for each request, so that another token " +
		"can be put there at any time.",
	"about_admin_listen": "Where metrics and profiles are, for operators only; \"off\" for none.",
	"about_advertise": "Where other processes reach this node, as http://HOST:PORT, with --profile workspace; " +
		"without it the address of --listen, unless that is every address of the machine.",
	"about_lease": "How long a node owns workspaces without renewing its lease, the same for all nodes; one " +
		"that dies is replaced within twice as long.",
	"about_node": "Name of this node, its own among all that share the store and the same after a " +
		"restart; needed with --profile workspace.",
	"about_profile": "Which workspaces this process owns: all has the store to itself; workspace " +
		"shares it with other nodes; central owns nothing and sends requests on to owners.",
	"about_workspaces": "The only workspaces that this node may own, with --profile workspace; without it " +
		"any.",
	"about_cors_origin": "Origins whose pages may ask; \"*\" for any.",
	"about_counts": "Also write every count as a line member,scope,unread,attention; compressed if " +
		"the name ends in .gz.",
	"about_facts": "Where the facts are kept: a file, or a database as postgres://USER:PASSWORD@HOST/DATABASE " +
		"or mysql://…, which is for TiDB and MariaDB, too.",
	"about_facts_file":     "File with what --facts would say, for a name with a password in it.",
	"about_substrate_file": "File with what --substrate would say, for an address with a password in it.",
	"about_facts_of_replay": "Where the facts are kept. Without it they are in a temporary database " +
		"that is removed at the end.",
	"about_jwks": "Key set of RS256, ES256 and EdDSA tokens: a file, or an https address.",
	"about_jwt_secret_file": "File with the secret of HS256 tokens, or two for rotation, one a line; the " +
		"first one signs. Or put it into $TIDEMARK_JWT_SECRET.",
	"about_agent_key_file": "File with your secret key, 64 hexadecimal digits.",
	"about_agent_origin": "Origin of a page that may use the agent, as http://localhost:5173; may be given " +
		"for each.",
	"about_output": "Where to write instead of the standard output; compressed if the name ends in " +
		".gz.",
	"about_relay_channel": "A channel of all members, with its type stream, forum or dm; may be given for " +
		"each.",
	"about_relay_community": "Community that the relay cuts snapshots of read state for; a new one without it.",
	"about_relay_fault": "Something to go wrong from the start, as lose-receipts; may be given for each. " +
		"Others are switched while it runs.",
	"about_relay_key_file": "File with the relay's own secret key; a new one without it.",
	"about_relay_member":   "Public key of somebody who may use the relay; may be given for each.",
	"about_demo_story": "inbox: play the story of the newly-unread badge, and end. cluster: three nodes that " +
		"one can kill, on a PostgreSQL of its own. relay: a Nostr relay with two people and their agents.",
	"about_substrate": "Redis or Valkey for prepared summaries of inboxes, and for red dots that " +
		"processes show of each other's workspaces.",
	"about_wake_allow": "Networks that agents and webhooks may be in although they are not public, as " +
		"10.0.0.0/8; \"private\" is all private and local ones.",
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
