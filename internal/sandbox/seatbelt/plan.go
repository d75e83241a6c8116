package seatbelt

import (
	"fmt"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/protect"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// Facts are what a plan needs to know of the machine.
type Facts struct {
	Real func(path string) string // where links lead; as much of it as exists
	// Follow says which links are on the way and where it ends; nil where none is.
	Follow       func(path string) (links []string, end string)
	Capabilities []bawn.Capability
}

// A Plan is what Start will do. Its JSON form is what --plan prints.
type Plan struct {
	Profile  string            `json:"profile"` // in the sandbox profile language, with proxyPort for the port of the proxy
	Shell    string            `json:"shell"`   // what /bin/sh does first, in the sandbox: limits
	Listed   []Place           `json:"places"`
	Limits   bawn.Resources    `json:"limits"`
	Tmp      string            `json:"tmp"`             // made by Start, removed by Close
	Relay    bool              `json:"relay,omitempty"` // a proxy on loopback leads to the relay
	EnvNames []string          `json:"environment"`
	Argv     []string          `json:"argv"`
	Dir      string            `json:"directory"`
	InPart   []bawn.Capability `json:"enforced_in_part,omitempty"`

	env []string
}

// Provider returns "seatbelt".
func (*Plan) Provider() string { return Name }

// Places says what the guest sees and writes of the host.
func (p *Plan) Places() []bawn.Mount {
	var list []bawn.Mount
	for _, l := range p.Listed {
		access := l.Access
		if l.Path == p.Tmp {
			access = bawn.Private
		}
		list = append(list, bawn.Mount{Path: l.Path, Access: access, Why: l.Why})
	}
	return list
}

// Partly lists what is enforced in part.
func (p *Plan) Partly() []bawn.Capability { return p.InPart }

// Environ is the guest's environment.
func (p *Plan) Environ() []string { return slices.Clone(p.env) }

// unsupported says what this provider has no means for.
func unsupported(what string) error {
	return fmt.Errorf("provider %q can't %s; use another provider", Name, what)
}

// maker is a plan under construction.
type maker struct {
	req   sandbox.Request
	facts Facts
	tmp   string
	list  []Place
	err   error
}

// Make turns a request into a plan without touching anything. It errs where the
// profile could not say what is asked.
func Make(req sandbox.Request, facts Facts) (*Plan, error) {
	m := &maker{req: req, facts: facts, tmp: "/private/tmp/bawn-" + req.Session.ID + req.Zone}
	if err := m.check(); err != nil {
		return nil, err
	}
	places, err := m.places()
	if err != nil {
		return nil, err
	}
	iso := req.Session.Isolation
	p := &Plan{
		Listed: places, Tmp: m.tmp, Relay: req.Relay && iso.Network == bawn.NetworkAllowlist, Shell: limits(iso.Resources), Limits: iso.Resources,
		Argv: req.Argv, Dir: req.Dir, env: m.environ(),
	}
	if iso.Network == bawn.NetworkAllowlist && !p.Relay {
		return nil, unsupported("lead a network by name to a relay that nobody serves")
	}
	p.Profile = m.profile(places)
	for _, kv := range p.env {
		name, _, _ := strings.Cut(kv, "=")
		p.EnvNames = append(p.EnvNames, name)
	}
	for _, need := range sandbox.Needs(iso) {
		i := slices.IndexFunc(facts.Capabilities, func(c bawn.Capability) bool { return c.Attribute == need && c.Strength == bawn.Partly })
		if i >= 0 {
			p.InPart = append(p.InPart, facts.Capabilities[i])
		}
	}
	return p, nil
}

// environ chooses the guest's variables. Later ones win.
func (m *maker) environ() []string {
	iso := m.req.Session.Isolation
	env := map[string]string{}
	put := func(kv string) {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	for _, kv := range m.req.Environ {
		name, _, ok := strings.Cut(kv, "=")
		if ok && slices.ContainsFunc(iso.Env, func(pattern string) bool { return passes(pattern, name) }) {
			put(kv)
		}
	}
	for _, kv := range iso.SetEnv {
		put(kv)
	}
	env["PWD"], env["BAWN_SESSION"], env["TMPDIR"] = m.req.Dir, m.req.Session.ID, m.tmp+"/"
	env["DIRHELPER_USER_DIR_SUFFIX"] = path.Base(m.tmp) // confstr(3) asks no TMPDIR: mktemp, Foundation, xcrun
	for _, kv := range m.req.SetEnv {
		put(moved(kv, m.req.Files))
	}
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	sort.Strings(list)
	return list
}

// passes reports whether a pattern names a variable; a trailing * is a prefix.
func passes(pattern, name string) bool {
	prefix, wild := strings.CutSuffix(pattern, "*")
	return pattern == name || wild && strings.HasPrefix(name, prefix)
}

// proxied returns the environment with the proxy on which the relay listens.
func (p *Plan) proxied(env []string, port int) []string {
	if !p.Relay {
		return env
	}
	url := "http://127.0.0.1:" + strconv.Itoa(port)
	out := slices.Clone(env)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		out = append(out, name+"="+url)
	}
	return out
}

// command is the argument list that runs argv under the profile.
func (p *Plan) command(argv []string, port int) []string {
	profile := strings.Replace(p.Profile, toProxy(proxyPort), toProxy(strconv.Itoa(port)), 1)
	return append([]string{Program, "-p", profile, "/bin/sh", "-c", p.Shell, "sh"}, argv...)
}

// proxyPort stands for a port that is known once the relay listens. What a path holds is no
// rule with it: quotes are escaped there.
const proxyPort = "PORT"

// toProxy is a filter for connections to the relay's proxy.
func toProxy(port string) string { return `(remote ip "localhost:` + port + `")` }

// limits is a script for sh(1) that lowers limits, where they are not lower
// already, and becomes the command. A size of files is counted in units of 512
// or 1024 bytes, as sh takes it; here it is counted so that none of both exceeds
// the limit. RLIMIT_NPROC would count all processes of the user, so it is not set.
func limits(r bawn.Resources) string {
	var b strings.Builder
	for _, l := range []struct {
		flag string
		n    int64
	}{{"n", r.OpenFiles}, {"f", r.FileSizeMB * 1024}} {
		if l.n > 0 {
			fmt.Fprintf(&b, `h=$(ulimit -H -%[1]s); if [ "$h" = unlimited ] || [ "$h" -gt %[2]d ]; then ulimit -%[1]s %[2]d || exit 126; fi; `, l.flag, l.n)
		}
	}
	return b.String() + `exec "$@"`
}

// profile writes the rules.
func (m *maker) profile(places []Place) string {
	p := &profile{}
	p.line("(version 1)")
	p.line("(deny default)")
	p.comment("processes of this sandbox, and no others")
	p.line("(allow process-exec)\n(allow process-fork)")
	p.line("(allow process-info* signal (target same-sandbox))")
	p.line("(allow sysctl-read)\n(allow pseudo-tty)\n(allow ipc-posix-sem)")
	p.rule("allow", "ipc-posix-shm-read*", `(ipc-posix-name "apple.shm.notification_center")`)
	p.rule("allow", "file-ioctl", `(regex #"^/dev/ttys[0-9]+$")`, literal("/dev/ptmx"))
	p.rule("allow", "mach-lookup", services...)
	for _, l := range places {
		m.place(p, l)
	}
	p.comment("what rules speak of stays where it is")
	var fixed []string
	for _, dir := range above(places) {
		fixed = append(fixed, literal(dir))
	}
	p.rule("deny", "file-write-unlink", fixed...)
	p.rule("allow", "file-read-metadata", ways(places)...)
	p.comment("directories of the session's own in the user's temporary ones")
	p.rule("allow", "file-read-metadata", `(regex #"^/private/var/folders(/[^/]+(/[^/]+(/[TC])?)?)?$")`)
	p.rule("allow", "file-read* file-write*", `(regex #"^/private/var/folders/[^/]+/[^/]+/[TC]/`+pattern(path.Base(m.tmp))+`(/|$)")`)
	p.comment("terminals that the guest makes, and no others; one from outside is inherited and needs ioctls alone")
	p.rule("allow", "file-read* file-write*", `(require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty"))`)
	p.rule("allow", "file-read-metadata", `(regex #"^/dev/ttys[0-9]+$")`)
	m.network(p)
	return p.b.String()
}

// place writes what holds below one path.
func (m *maker) place(p *profile, l Place) {
	p.comment(l.Access.String())
	switch l.Access {
	case bawn.ReadWrite:
		p.rule("allow", "file-read* file-write*", subpath(l.Path))
		m.protect(p, l.Path)
		m.own(p, l.Path)
		m.guard(p, l.Path)
	case bawn.ReadOnly:
		p.rule("allow", "file-read*", subpath(l.Path))
		p.rule("deny", "file-write*", subpath(l.Path))
		if slices.Contains(devicesRead, l.Path) { // below /dev/fd is one file for each descriptor
			p.rule("allow", "file-write-data file-ioctl", subpath(l.Path))
		}
	default:
		p.rule("deny", "file-read* file-write*", subpath(l.Path))
	}
}

// protect closes names that the host executes later, also those that are not
// there (K6). Git's own directory can be worked in and not made, moved or told
// what to execute.
func (m *maker) protect(p *profile, root string) {
	if !m.req.Session.Isolation.Protect || root == m.tmp {
		return
	}
	var dirs, below []string
	names := append(layout.ProtectedNames(m.req.Session.Isolation.Unprotected), m.req.Protected...)
	ways := protect.Ways(names)
	for dir := range ways { // or it would be made elsewhere, and moved here
		dirs = append(dirs, dir)
	}
	for _, name := range names {
		if ways[name] == nil {
			below = append(below, name)
		}
	}
	for _, part := range []string{"hooks", "config", "config.lock", "config.worktree", "config.worktree.lock", "commondir", "gitdir", "info", "modules", "worktrees"} {
		below = append(below, ".git/"+part)
	}
	filters := append([]string{named(root, below...), entry(root, append(dirs, ".git")...)}, m.inHome(root)...)
	slices.Sort(filters[2:])
	p.rule("deny", "file-write*", slices.Compact(filters)...)
}

// inHome are filters for what lies below both root and the home directory, and what
// the host executes or obeys there.
func (m *maker) inHome(root string) (filters []string) {
	entries := protect.Home()
	for i := range entries {
		p := path.Join(m.facts.Real(m.req.Home), entries[i].Path())
		if entries[i].Counts("darwin") && m.req.Home != "" && fspath.Below(p, root) && p != root {
			filters = append(filters, subpath(p))
		}
	}
	return filters
}

// own opens files below root whose names are protected.
func (m *maker) own(p *profile, root string) {
	for _, o := range m.req.Owned {
		if o = path.Join(m.facts.Real(path.Dir(o)), path.Base(o)); fspath.Below(o, root) {
			p.rule("allow", "file-write*", literal(o))
		}
	}
}

// guard closes the places below root that the request says are to stay as they are,
// be they there or not, and where they lead.
func (m *maker) guard(p *profile, root string) {
	var filters []string
	for _, g := range m.req.Guarded {
		g = path.Join(m.facts.Real(path.Dir(g)), path.Base(g))
		for _, place := range []string{g, m.facts.Real(g)} {
			if f := subpath(place); fspath.Below(place, root) && place != root && !slices.Contains(filters, f) {
				filters = append(filters, f)
			}
		}
	}
	if len(filters) > 0 {
		p.rule("deny", "file-write*", filters...)
	}
}

// network writes what leaves the machine, or reaches its own services.
func (m *maker) network(p *profile) {
	p.comment("the network: " + m.req.Session.Isolation.Network.String())
	switch m.req.Session.Isolation.Network {
	case bawn.NetworkFull:
		p.line("(allow network*)\n(allow system-socket)")
		p.rule("allow", "mach-lookup", networkServices...)
		p.line("(deny network-outbound (remote unix-socket))\n(deny network-bind network-inbound (local unix-socket))")
		p.rule("allow", "network-outbound", toSocket(literal("/private/var/run/mDNSResponder")))
	case bawn.NetworkAllowlist:
		p.rule("allow", "network-outbound", toProxy(proxyPort))
		p.rule("allow", "network-bind network-inbound", `(local ip "localhost:*")`)
	default:
		p.rule("allow", "network-bind network-inbound", `(local ip "localhost:*")`)
	}
	p.comment("sockets in the session's own directory, and those that it is given")
	p.rule("allow", "system-socket", "(socket-domain AF_UNIX)")
	p.rule("allow", "network-bind network-inbound", atSocket(subpath(m.tmp)))
	p.rule("allow", "network-outbound", toSocket(subpath(m.tmp)))
	for _, f := range m.req.Files {
		if slices.Contains(m.req.Sockets, f.Target) {
			p.rule("allow", "network-outbound", toSocket(literal(m.facts.Real(f.Source))))
		}
	}
}

func toSocket(filter string) string { return "(remote unix-socket " + filter + ")" }

func atSocket(filter string) string { return "(local unix-socket " + filter + ")" }

// devicesRead are the devices of every session.
var devicesRead = []string{"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/ptmx", "/dev/dtracehelper"}

// services are what nearly every program asks for by Mach messages: names of
// users, the log, notifications. The pasteboard, the keychain's daemon, Apple
// events, launchd and the window server are not among them.
var services = []string{
	`(global-name "com.apple.system.opendirectoryd.libinfo")`, `(global-name "com.apple.system.opendirectoryd.membership")`,
	`(global-name "com.apple.system.notification_center")`, `(global-name "com.apple.system.logger")`, `(global-name "com.apple.logd")`, `(global-name "com.apple.bsd.dirhelper")`,
}

// networkServices answer about names and certificates. By name they are not asked: trustd
// fetches by itself what a certificate names, from wherever that is.
var networkServices = []string{
	`(global-name "com.apple.SystemConfiguration.configd")`, `(global-name "com.apple.SystemConfiguration.DNSConfiguration")`, `(global-name "com.apple.networkd")`,
	`(global-name "com.apple.trustd")`, `(global-name "com.apple.trustd.agent")`, `(global-name "com.apple.ocspd")`,
}
