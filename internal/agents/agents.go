// Package agents holds what is known of the coding agents that people run: one
// data file for each, with the version that it was verified with.
//
// A data file describes an agent: where it keeps its state, which files it obeys
// and must not change, and which variables carry its keys. It also names its hosts,
// what its hooks can do, and what stays uncovered. Other packages use it to start a
// session, write an agent's settings or speak its protocol. This package does not
// touch the machine.
package agents

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// An Agent is one data file. It is shared: nobody changes it.
type Agent struct {
	Name  string `toml:"name" json:"name"`   // as in "bawn hook NAME"
	Title string `toml:"title" json:"title"` // for humans
	// Programs are the names under which it is started, without directories: its own
	// first, then those of what starts it for an editor.
	Programs []string `toml:"programs" json:"programs"`
	Package  string   `toml:"package" json:"package,omitempty"` // of npm
	Version  string   `toml:"version" json:"version,omitempty"` // that all this was verified with
	// Verified says that this version was run; what is said of the others is
	// from their documentation.
	Verified bool `toml:"verified" json:"verified"`

	Files       Files       `toml:"files" json:"files"`
	Apart       Apart       `toml:"apart" json:"apart,omitzero"`
	Environment Environment `toml:"environment" json:"environment"`
	// Models are the hosts of its own models and logins, in the form of
	// isolation.hosts; empty where it talks to whatever its user names.
	Models []string `toml:"models" json:"models,omitempty"`
	// OwnReads says that the agent reads files by itself. Such an agent does not
	// create a file when the editor answers that the file does not exist, as the
	// Agent Client Protocol does.
	OwnReads bool `toml:"own_reads" json:"own_reads,omitempty"`
	// Closed are hosts that it calls unasked and does without, in the same form: a
	// session refuses them without a question.
	Closed []string `toml:"closed" json:"closed,omitempty"`
	Hooks  Hooks    `toml:"hooks" json:"hooks"`
	// Moves are the ways in which what it executes can be moved into Bawn's hands,
	// the strongest first: a variable's name, or "rewrite" (by the hook)
	// or "extension".
	Moves   []string `toml:"moves" json:"moves,omitempty"`
	Sandbox Sandbox  `toml:"sandbox" json:"sandbox"`
	Prompts Prompts  `toml:"prompts" json:"prompts"`
	Login   string   `toml:"login" json:"login,omitempty"` // where its login is kept, in words
	// Uncovered says, in words, what stays uncovered in a session.
	Uncovered []string `toml:"uncovered" json:"uncovered,omitempty"`
}

// Files are places. Each begins with "~/", with "$NAME/" where NAME is one of
// Environment.Homes, or else lies in the project. Expand resolves them.
type Files struct {
	State []string `toml:"state" json:"state,omitempty"` // directories that it writes
	Cache []string `toml:"cache" json:"cache,omitempty"` // directories that it can do without
	// Private are directories, each directly in one of State, that the agent writes and
	// executes or obeys while it runs. A session has empty ones of its own, which are
	// removed at its end.
	Private []string `toml:"private" json:"private,omitempty"`
	// Read are files and directories, beside State, that it reads and does not write
	// in a session.
	Read []string `toml:"read" json:"read,omitempty"`
	// Make are directories without which it does not start.
	Make []string `toml:"make" json:"make,omitempty"`
	// Empty are files without which it does not start, where their directory is there
	// and they may be empty.
	Empty []string `toml:"empty" json:"empty,omitempty"`
	// Guard are files and directories that it obeys or executes: settings, hooks,
	// servers, extensions. They are read-only in a session, be they there or not; of a
	// last name with "*" those that are there. They come from internal/protect.
	Guard []string `toml:"-" json:"guard,omitempty"`
	// Tries are what it tries to write, to no harm where that is refused: what begins
	// so, too, after a dot.
	Tries []string `toml:"tries" json:"tries,omitempty"`
	// ProjectGuard are what Guard is, in a project and at any depth. They come from
	// internal/protect.
	ProjectGuard []string `toml:"-" json:"project_guard,omitempty"`
	// Skills are directories of skills, Definitions directories of agent
	// definition files and commands, Instructions the files that it reads as
	// instructions: the human's and the project's.
	Skills       []string `toml:"skills" json:"skills,omitempty"`
	Definitions  []string `toml:"definitions" json:"definitions,omitempty"`
	Instructions []string `toml:"instructions" json:"instructions,omitempty"`
}

// Apart says how an agent separates what it writes in sessions from what it
// obeys outside of them, where both are one file. Outside, where Variable is not
// set, it reads From. In a session Variable is set to the directory that counts
// without it, and the agent reads and writes File in there: a copy of From that
// nothing outside reads. Where the human has set Variable, File is only read.
type Apart struct {
	Variable string `toml:"variable" json:"variable"` // one of Environment.Homes
	File     string `toml:"file" json:"file"`         // in the directory that Variable names
	From     string `toml:"from" json:"from"`         // a place, "~/…"
}

// Environment are variables.
type Environment struct {
	// Homes are variables that say where the agent's files are, with the
	// directory that counts where they are not set.
	Homes map[string]string `toml:"homes" json:"homes,omitempty"`
	Keys  []string          `toml:"keys" json:"keys,omitempty"` // carry its credentials
	Pass  []string          `toml:"pass" json:"pass,omitempty"` // other variables of its own; a trailing * is a prefix
	Set   []string          `toml:"set" json:"set,omitempty"`   // NAME=value
	CA    []string          `toml:"ca" json:"ca,omitempty"`     // through which it takes further certificate authorities
}

// Hooks say what of the agent can be observed and vetoed.
type Hooks struct {
	// Kind is how hooks are written: "claude" (settings.json in the form of Claude
	// Code), "codex", "gemini", "copilot", "cline", "cursor", "crush"; "plugin" and
	// "extension" for code that the agent loads; "" for none.
	Kind    string `toml:"kind" json:"kind,omitempty"`
	User    string `toml:"user" json:"user,omitempty"`       // the file or directory of the human
	Project string `toml:"project" json:"project,omitempty"` // of a project
	Managed string `toml:"managed" json:"managed,omitempty"` // of who manages the machine
	// Seconds is how long the agent waits for a hook at most, where it can be told
	// to wait longer; Default how long it waits otherwise. Past it the command runs.
	Seconds int      `toml:"seconds" json:"seconds,omitempty"`
	Default int      `toml:"default_seconds" json:"default_seconds,omitempty"`
	Events  []string `toml:"events" json:"events,omitempty"`
	Veto    bool     `toml:"veto" json:"veto"`       // a hook can refuse
	Rewrite bool     `toml:"rewrite" json:"rewrite"` // a hook can exchange the command
	Ask     bool     `toml:"ask" json:"ask"`         // a hook can have the agent ask its human
	// FailsOpen says that a hook which is late, dead or broken lets the command run.
	FailsOpen bool `toml:"fails_open" json:"fails_open"`
}

// Timeout is how long the agent can be told to wait for a hook.
func (h Hooks) Timeout() time.Duration { return time.Duration(h.Seconds) * time.Second }

// Sandbox says what becomes of the agent's own sandbox in a session.
type Sandbox struct {
	Has  bool   `toml:"has" json:"has"`
	Note string `toml:"note" json:"note,omitempty"` // in words
	Switch
}

// Prompts say how the agent is kept from asking about each thing that it does: where
// the sandbox holds that, Bawn asks about what leaves it, and nobody asks twice.
type Prompts struct{ Switch }

// Said reports whether an argument of the human's is one with which nothing is switched.
func (s Switch) Said(arg string) bool {
	name, _, _ := strings.Cut(arg, "=")
	return slices.Contains(s.Unless, name)
}

// A Switch is put behind the name of the agent's own program, unless an argument of
// the human's is, or begins with, one of Unless.
type Switch struct {
	Off    []string `toml:"off" json:"off,omitempty"`
	Unless []string `toml:"unless" json:"unless,omitempty"`
}

//go:embed data/*.toml
var data embed.FS

// known names every agent with its programs, so that a program can be looked up
// without parsing anything. A test compares it with the data.
var known = []struct{ name, programs string }{
	{"claude", "claude claude-agent-acp claude-code-acp"},
	{"codex", "codex codex-acp"},
	{"opencode", "opencode"},
	{"gemini", "gemini"},
	{"qwen", "qwen"},
	{"copilot", "copilot"},
	{"cline", "cline"},
	{"pi", "pi"},
	{"amp", "amp"},
	{"crush", "crush"},
	{"cursor", "cursor-agent"},
}

// Names lists the agents.
func Names() []string {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = k.name
	}
	return names
}

// ByName returns the agent of that name.
func ByName(name string) (*Agent, bool) {
	if !slices.Contains(Names(), name) {
		return nil, false
	}
	return load(name), true
}

// ByProgram returns the agent whose program has that name, without a directory.
// What is started under the name may still be something else.
func ByProgram(base string) (*Agent, bool) {
	for _, k := range known {
		if slices.Contains(strings.Fields(k.programs), base) {
			return load(k.name), true
		}
	}
	return nil, false
}

// All returns every agent, in the order of Names.
func All() []*Agent {
	var all []*Agent
	for _, k := range known {
		all = append(all, load(k.name))
	}
	return all
}

var (
	mu     sync.Mutex
	loaded = map[string]*Agent{}
)

// load parses a data file when it is first asked for.
func load(name string) *Agent {
	mu.Lock()
	defer mu.Unlock()
	if a := loaded[name]; a != nil {
		return a
	}
	text, err := data.ReadFile("data/" + name + ".toml")
	var a *Agent
	if err == nil {
		a, err = Parse(name, text)
	}
	if err != nil {
		panic(fmt.Sprintf("BUG(bawn): data of agent %q: %v", name, err))
	}
	loaded[name] = a
	return a
}

// Can lists, in words, what a hook can do beside watching.
func (h Hooks) Can() []string {
	var can []string
	for _, w := range []struct {
		word string
		can  bool
	}{{"veto", h.Veto}, {"rewrite", h.Rewrite}, {"ask", h.Ask}} {
		if w.can {
			can = append(can, w.word)
		}
	}
	return can
}
