// Package plugin describes a plugin before it runs: its manifest, which a human has
// agreed to, and the pins of its tools. A plugin is a program of somebody else's: a
// server of the Model Context Protocol, or a hook that is told of actions and may object.
// It runs as a guest, in a session of its own, and gets what its manifest says and
// nothing more.
package plugin

import (
	"slices"
	"time"

	"github.com/bawn-dev/bawn"
)

// Kinds of plugins.
const (
	Server = "mcp"  // a server of the Model Context Protocol over its standard input and output
	Hook   = "hook" // is told of actions and may have them asked about or denied; see ParseAnswer
)

// A Manifest says what a plugin is and what it may do. The zero Manifest runs
// nothing and may do nothing.
type Manifest struct {
	Name      string            // of the file: NAME.toml
	Kind      string            // Server or Hook
	Version   string            // for people
	About     string            // one line, for people
	Run       Run               // what is started
	Files     Files             // beside the plugin's own directory
	Hosts     []string          // in the form of netrule.ParseHost; nil: no network
	Secrets   []string          // names of the vault
	Env       map[string]string // set for the plugin
	Limits    Limits
	Tools     Tools
	Arguments map[string]string // "TOOL.ARGUMENT" → ArgumentPath, ArgumentHost or ArgumentCommand
	Hook      HookTable         // of a Hook only
}

// The meaning of an argument of a tool, so that rules about it count.
const (
	ArgumentPath    = "path"    // a file or directory
	ArgumentHost    = "host"    // a host, a host:port or a URL
	ArgumentCommand = "command" // a command line
)

// Run names the program; exactly one of Command, NPX, UVX and Go is set, and
// Image only beside Command.
type Run struct {
	Command []string `toml:"command,omitempty"`
	NPX     string   `toml:"npx,omitempty"`   // PACKAGE@VERSION, run by npx
	UVX     string   `toml:"uvx,omitempty"`   // PACKAGE@VERSION or PACKAGE==VERSION, run by uvx
	Go      string   `toml:"go,omitempty"`    // PACKAGE@VERSION, run by go run
	Image   string   `toml:"image,omitempty"` // NAME@sha256:DIGEST, in which Command runs
	Args    []string `toml:"args,omitempty"`  // follow the package
}

// Files are paths: absolute, below ~, or relative to the workspace ("." is all
// of it). A plugin does not see anything else, except the system.
type Files struct {
	Read  []string `toml:"read,omitempty"`
	Write []string `toml:"write,omitempty"`
}

// Limits of a plugin. Zero stands for the default of DefaultLimits.
type Limits struct {
	MemoryMB    int64         // MiB of all its processes
	PIDs        int64         // processes and threads
	CPUs        float64       // cores; not every machine can enforce it, so none by default
	Time        time.Duration // wall clock of one run
	ResultBytes int64         // of one result
	CallsAtOnce int           // calls that run at a time
}

// DefaultLimits count where a manifest states none.
var DefaultLimits = Limits{MemoryMB: 1024, PIDs: 256, Time: 12 * time.Hour, ResultBytes: 1 << 20, CallsAtOnce: 8}

// Tools says what becomes of a call, by globs of tool names. A denial counts
// before a question, a question before an allowance; what no glob names asks.
type Tools struct {
	Allow []string `toml:"allow,omitempty"`
	Ask   []string `toml:"ask,omitempty"`
	Deny  []string `toml:"deny,omitempty"`
}

// Verdict returns the manifest's verdict on a call to a tool, and its line,
// such as "tools.deny: write_*". The name is taken as it is.
func (t Tools) Verdict(tool string) (bawn.Verdict, string) {
	for _, list := range []struct {
		globs   []string
		verdict bawn.Verdict
		name    string
	}{{t.Deny, bawn.Deny, "deny"}, {t.Ask, bawn.Ask, "ask"}, {t.Allow, bawn.Allow, "allow"}} {
		if i := slices.IndexFunc(list.globs, func(g string) bool { return glob(g, tool) }); i >= 0 {
			return list.verdict, "tools." + list.name + ": " + list.globs[i]
		}
	}
	return bawn.Ask, "tools: no glob names it"
}

// glob reports whether the pattern, in which * stands for any text, covers the
// whole name.
func glob(pattern, name string) bool {
	star, mark, p, n := -1, 0, 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark, p = p, n, p+1
		case p < len(pattern) && pattern[p] == name[n]:
			p, n = p+1, n+1
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
