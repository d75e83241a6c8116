package main

import (
	"slices"

	"github.com/bawn-dev/bawn/internal/testenv/clients"
)

// A face is a way in which somebody runs an agent.
type face struct {
	name    string
	guarded bool // by Bawn
	hooks   bool // "bawn init" was called
	words   func(y *account) []string
	free    bool // the agent itself is told to ask nothing
	stay    bool // its commands are moved into no sandbox
}

// control is the face without Bawn.
const control = "bare"

var faces = []face{
	{name: control, free: true, words: func(*account) []string { return nil }},
	{name: "run", guarded: true, words: func(y *account) []string { return []string{y.bawn, "run", "--host-port", y.port(), "--"} }},
	{name: "split", guarded: true, free: true, words: func(y *account) []string { return []string{y.bawn, "run", "--split", "--model", y.port(), "--"} }},
	{name: "init", guarded: true, hooks: true, free: true, words: func(*account) []string { return nil }},
}

// asking is a face that asks by design, and is run only where it is named: hooks
// whose commands stay where they are.
var asking = face{name: "hooks", guarded: true, hooks: true, free: true, stay: true, words: func(*account) []string { return nil }}

func faceNames() (names []string) {
	for _, f := range faces {
		names = append(names, f.name)
	}
	return names
}

func faceOf(name string) face {
	if name == asking.name {
		return asking
	}
	return faces[slices.IndexFunc(faces, func(f face) bool { return f.name == name })]
}

// clientOf is the agent of a name.
func clientOf(name string) clients.Client {
	all := clients.All()
	return all[slices.IndexFunc(all, func(c clients.Client) bool { return c.Name == name })]
}
