// Package host is the provider that isolates nothing: the guest is a process
// like any other of the user's. It limits the environment to
// what the isolation names, sets the limits that apply to an ordinary process,
// and ends what the session started with the session. What it can't enforce it
// says, attribute by attribute; it never calls less a success.
//
// It is never chosen: a human names it in the configuration, or has permitted
// it there as the last resort.
package host

import (
	"slices"
	"sort"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// Name is the name of the provider.
const Name = "host"

const (
	open   = "the guest is a process like any other of yours"
	remedy = "use another provider"
)

// A Plan is what Start will do. Its JSON form is what --plan prints.
type Plan struct {
	Limits   bawn.Resources `json:"limits"`
	EnvNames []string       `json:"environment"`
	Argv     []string       `json:"argv"`
	Dir      string         `json:"directory"`
	// Unenforced lists what the session asks for and does not get.
	Unenforced []bawn.Capability `json:"not_enforced"`
	InPart     []bawn.Capability `json:"enforced_in_part,omitempty"`

	env     []string
	session string
}

// Provider returns "host".
func (*Plan) Provider() string { return Name }

// Places says that all of the host is seen and written.
func (*Plan) Places() []bawn.Mount {
	return []bawn.Mount{{Path: "/", Access: bawn.ReadWrite, Why: "provider \"host\" hides nothing"}}
}

// Partly lists what is enforced in part.
func (p *Plan) Partly() []bawn.Capability { return p.InPart }

// Environ is the guest's environment.
func (p *Plan) Environ() []string { return slices.Clone(p.env) }

// Abilities says that nothing is isolated.
func (*Provider) Abilities() sandbox.Abilities { return sandbox.Abilities{Unsandboxed: true} }

// Name returns "host".
func (*Provider) Name() string { return Name }

// plan makes a plan of what the provider can do.
func plan(req sandbox.Request, have []bawn.Capability) *Plan {
	p := &Plan{Limits: req.Session.Isolation.Resources, Argv: req.Argv, Dir: req.Dir, env: environment(req), session: req.Session.ID}
	for _, kv := range p.env {
		name, _, _ := strings.Cut(kv, "=")
		p.EnvNames = append(p.EnvNames, name)
	}
	for _, attribute := range sandbox.Needs(req.Session.Isolation) {
		i := slices.IndexFunc(have, func(c bawn.Capability) bool { return c.Attribute == attribute })
		switch {
		case i < 0:
			p.Unenforced = append(p.Unenforced, bawn.Capability{Attribute: attribute, Why: open, Remedy: remedy})
		case have[i].Strength == bawn.Partly:
			p.InPart = append(p.InPart, have[i])
		case have[i].Strength == bawn.Unenforced:
			p.Unenforced = append(p.Unenforced, have[i])
		}
	}
	return p
}

// environment chooses the guest's variables: what the isolation names, what it
// sets, and what the request sets.
func environment(req sandbox.Request) []string {
	env := map[string]string{}
	put := func(kv string) {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	for _, kv := range req.Environ {
		if name, _, ok := strings.Cut(kv, "="); ok && passed(req.Session.Isolation.Env, name) {
			put(kv)
		}
	}
	for _, kv := range req.Session.Isolation.SetEnv {
		put(kv)
	}
	env["PWD"], env["BAWN_SESSION"] = req.Dir, req.Session.ID
	for _, kv := range req.SetEnv {
		put(kv)
	}
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	sort.Strings(list)
	return list
}

// passed reports whether a pattern names the variable; a trailing * is a prefix.
func passed(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		prefix, wild := strings.CutSuffix(p, "*")
		return p == name || wild && strings.HasPrefix(name, prefix)
	})
}

// unenforced are the attributes that an ordinary process is not held by.
func unenforced() []bawn.Capability {
	var list []bawn.Capability
	for _, attribute := range []string{
		sandbox.FSWrite, sandbox.FSRead, sandbox.FSPatterns, sandbox.FSProtect, sandbox.FSPrivate, sandbox.Processes, sandbox.IPC, sandbox.Kernel,
		sandbox.Terminal, sandbox.NetNone, sandbox.NetAllow, sandbox.DevicesByName,
	} {
		list = append(list, bawn.Capability{Attribute: attribute, Why: open, Remedy: remedy})
	}
	return append(list, bawn.Capability{Attribute: sandbox.NetFull, Strength: bawn.Enforced, How: "the host's network"})
}
