package main

import (
	"slices"

	"github.com/bawn-dev/bawn/internal/testenv/clients"
)

// A frontend is a way in which somebody runs an agent.
type frontend struct {
	name    string
	guarded bool // by Bawn
	hooks   bool // "bawn init" was called
	words   func(y *account) []string
	free    bool // the agent itself is told to ask nothing
	stay    bool // its commands are moved into no sandbox
}

// control is the frontend without Bawn.
const control = "bare"

var frontends = []frontend{
	{name: control, free: true, words: func(*account) []string { return nil }},
	{name: "run", guarded: true, words: func(y *account) []string { return []string{y.bawn, "run", "--host-port", y.port(), "--"} }},
	{name: "split", guarded: true, free: true, words: func(y *account) []string { return []string{y.bawn, "run", "--split", "--model", y.port(), "--"} }},
	{name: "init", guarded: true, hooks: true, free: true, words: func(*account) []string { return nil }},
}

// asking is a frontend that asks by design, and is run only where it is named: hooks
// whose commands stay where they are.
var asking = frontend{name: "hooks", guarded: true, hooks: true, free: true, stay: true, words: func(*account) []string { return nil }}

func frontendNames() (names []string) {
	for _, f := range frontends {
		names = append(names, f.name)
	}
	return names
}

func frontendOf(name string) frontend {
	if name == asking.name {
		return asking
	}
	return frontends[slices.IndexFunc(frontends, func(f frontend) bool { return f.name == name })]
}

// clientOf is the agent of a name.
func clientOf(name string) clients.Client {
	all := clients.All()
	return all[slices.IndexFunc(all, func(c clients.Client) bool { return c.Name == name })]
}
