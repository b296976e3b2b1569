package demo

import "github.com/tidemark-im/tidemark/readstate"

// Workspace is where the demo takes place.
const Workspace readstate.WorkspaceID = "demo"

// Who the links are for. The others write by themselves.
const (
	Ada readstate.MemberID = "ada"
	Ben readstate.MemberID = "ben"
)

// Otto is an agent: he is woken and never counted. See Agent.
const Otto readstate.MemberID = "otto"

type person struct {
	id    readstate.MemberID
	name  string
	agent bool
}

var people = []person{
	{id: Ada, name: "Ada Lindqvist"},
	{id: Ben, name: "Ben Okafor"},
	{id: "chen", name: "Chen Wei"},
	{id: "dora", name: "Dora Marques"},
	{id: "emil", name: "Emil Novak"},
	{id: Otto, name: "Otto (agent)", agent: true},
}

// others are those who write by themselves.
var others = []readstate.MemberID{"chen", "dora", "emil", "otto"}

type scope struct {
	id      readstate.ScopeID
	kind    readstate.ScopeType
	name    string
	members []readstate.MemberID // of a channel or dm
	parent  readstate.ScopeID    // of a thread
	root    string               // message that a thread hangs on
	// watchers of a task are told of everything in it
	watchers []readstate.MemberID
}

func everybody() []readstate.MemberID {
	out := make([]readstate.MemberID, len(people))
	for i, p := range people {
		out[i] = p.id
	}
	return out
}

var scopes = []scope{
	{id: "general", kind: readstate.Channel, name: "General", members: everybody()},
	{id: "design", kind: readstate.Channel, name: "Design", members: everybody()},
	{id: "releases", kind: readstate.Channel, name: "Releases", members: everybody()},
	{id: "random", kind: readstate.Channel, name: "Random", members: everybody()},
	{
		id: "ada-ben", kind: readstate.DM, name: "Ada and Ben",
		members: []readstate.MemberID{Ada, Ben},
	},
	{
		id: "ada-dora", kind: readstate.DM, name: "Ada and Dora",
		members: []readstate.MemberID{Ada, "dora"},
	},
	{
		id: "badge-colour", kind: readstate.Thread, name: "What colour is a badge?",
		parent: "design", root: "design-2",
	},
	{
		id: "release-14", kind: readstate.Thread, name: "Release 1.4",
		parent: "releases", root: "releases-1",
	},
	{
		id: task, kind: readstate.Task, name: "A dot stays after an archive",
		members: everybody(), watchers: []readstate.MemberID{Ben, Otto},
	},
}

// task is given to Ada; Ben and Otto watch it, and the others are told of it only where they are
// named.
const task readstate.ScopeID = "archive-dot"

// line is something that was said before the demo began. Named is who is mentioned; the word
// everyone is everyone.
type line struct {
	scope  readstate.ScopeID
	author readstate.MemberID
	text   string
	named  []readstate.MemberID
	all    bool
}

// past is in the order in which it was said. Messages are numbered within their scope, as in
// general-1.
var past = []line{
	{scope: "general", author: "chen", text: "Good morning! The coffee machine is repaired."},
	{scope: "general", author: Ada, text: "You are my hero."},
	{scope: "design", author: "emil", text: "New sketches of the sidebar are in the folder."},
	{
		scope: "design", author: "dora", named: []readstate.MemberID{Ada},
		text: "@ada what colour should a badge have when somebody names you?",
	},
	{
		scope: "releases", author: "otto", named: []readstate.MemberID{Ada, Ben},
		text: "@ada @ben release 1.4 is open. I keep the list in the thread.",
	},
	{scope: "random", author: "emil", text: "There is cake in the kitchen."},
	{scope: "badge-colour", author: Ada, text: "Not red. Red is for things that are broken."},
	{scope: "badge-colour", author: "dora", text: "Orange then, and a quiet one for the rest."},
	{scope: "release-14", author: "chen", text: "Migrations: done."},
	{scope: "release-14", author: Ben, text: "Release notes: half done."},
	{scope: "ada-ben", author: Ben, text: "Lunch at one?"},
	{scope: "ada-ben", author: Ada, text: "At one, yes."},
	{scope: "ada-dora", author: "dora", text: "I sent you the numbers of last week."},
	{scope: task, author: "chen", text: "After I archive a channel its dot stays until I reload."},
	// From here on Ada has been away.
	{scope: "general", author: "dora", text: "The guests from the university arrive at three."},
	{scope: "general", author: Ben, text: "I booked the big room."},
	{
		scope: "general", author: "emil", all: true,
		text: "@everyone please try the new build before Friday.",
	},
	{
		scope: "badge-colour", author: "chen", named: []readstate.MemberID{Ada},
		text: "@ada does a mention by everyone count as naming you?",
	},
	{scope: "release-14", author: "otto", text: "Two of five points are left."},
	{scope: "ada-ben", author: Ben, text: "Bring the red notebook, please."},
	{scope: "random", author: "chen", text: "The cake is a lie."},
	{scope: task, author: Ben, text: "I can see it, too. Only in the second window."},
	{
		scope: task, author: "emil", named: []readstate.MemberID{"dora", Otto},
		text: "@dora does the sketch say what should happen? @otto please look at the log.",
	},
}

// awayFrom is the place in past from which on Ada has read nothing.
const awayFrom = 14
