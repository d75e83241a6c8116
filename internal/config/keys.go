package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/netrule"
)

// A kind is the type of a key's value.
type kind uint8

const (
	text kind = iota
	boolean
	whole
	number
	duration
	list
)

var kindNames = []string{"a string", "true or false", "an integer", "a number", `a string such as "90m" or "2h"`, "a list of strings"}

// A rule says how an untrusted project file may use a key.
type rule uint8

const (
	never   rule = iota // not even a trusted project file may set it
	trusted             // only a trusted one may set it
	lower               // only towards the strict end
	adds                // entries narrow, so they may be added
	covered             // each entry must be covered by the layers before
	narrows             // a profile, if each of its keys narrows
	inHosts             // entries about hosts that the layers before give without a limit
)

// A key is one thing that can be configured. The loader, the narrowing rules,
// the JSON Schema and the starter file are all made from the table of keys.
type key struct {
	path     string // dotted, for example "isolation.network"
	kind     kind
	rule     rule
	doc      string
	oneOf    []string // for text: the only values, the strictest first
	min, max float64  // for whole, number; seconds for duration
	unset    float64  // the rank of "not stated"
	profile  bool     // may stand in [profiles.NAME] too
	opens    bool     // for boolean: true is the wide end, not the strict one
	entry    func(s string, p paths) (string, error)
}

// name returns the last part of the path.
func (k *key) name() string { return lastName(k.path) }

// limit reports whether the key is a resource limit.
func (k *key) limit() bool { return strings.HasPrefix(k.path, "isolation.resources.") }

// HostProvider is the name of the provider that enforces next to nothing. Only
// a file of the user or of who manages the machine can name it.
const HostProvider = "host"

// Providers lists the names that isolation.provider accepts; "" lets Bawn pick.
func Providers() []string {
	return slices.Concat([]string{""}, SandboxProviders(), []string{HostProvider})
}

// SandboxProviders lists the names of those that are sandboxes, which a flag
// may choose.
func SandboxProviders() []string {
	return []string{"native", "landlock", "bwrap", "gvisor", "docker", "seatbelt"}
}

// MinMemoryMB is the lowest memory limit of a session, in MiB: with less hardly
// a program starts, and a smaller number was meant in another unit.
const MinMemoryMB = 16

// keys is the table. The order is that of the starter file.
var keys = []*key{
	{path: "pinned", kind: list, rule: never, entry: anyText,
		doc: `keys or tables that no later layer and no flag may change, for example "isolation.network"; only in the managed file`},
	{path: "mode", kind: text, rule: lower, oneOf: bawn.ModeNames(),
		doc: "how much a session may do without asking"},
	{path: "autonomy", kind: text, rule: lower, oneOf: []string{"none", "limited", "moderate", "full"},
		doc: "what happens where no rule speaks; follows from the mode when it is not set"},
	{path: "agent", kind: text, rule: trusted, entry: agentName,
		doc: "the agent's name, as it appears in the audit log"},

	{path: containedKey, kind: text, rule: lower, oneOf: []string{decides, "table"}, unset: 1,
		doc: `how commands in a verified sandbox are decided: "table" asks about what leaves the sandbox, "decide" applies every rule, as without a sandbox`},

	{path: "isolation.enabled", kind: boolean, rule: never,
		doc: `must be true; to run without a sandbox set isolation.provider to "host"`},
	{path: "isolation.provider", kind: text, rule: never, oneOf: Providers(),
		doc: `what enforces the isolation; "" picks the strongest provider that meets the policy. "host" means no sandbox: it is never picked, and no flag can name it`},
	{path: "isolation.allow_fallback_to_host", kind: boolean, rule: never, opens: true,
		doc: `if no provider meets the policy, take the strongest that meets it in part, and last "host"; recorded, and shown with every question`},
	{path: "isolation.runsc", kind: text, rule: never, entry: runscEntry,
		doc: `path of the runsc program for the provider "gvisor", outside of the workspace; when it is not set, runsc is looked up in PATH`},
	{path: "isolation.gvisor_accept_unprotected", kind: boolean, rule: never, opens: true,
		doc: `start sessions on the provider "gvisor" although their guests can make files that the host executes later`},
	{path: "isolation.policy_profile", kind: text, rule: narrows, entry: profileName,
		doc: "the profile to use: its keys win over earlier layers, and the keys of this file win over the profile"},

	{path: agentProfileKey, kind: boolean, rule: never,
		doc: "give known agents what they need, and keep them from changing what they obey: see \"bawn agents\""},

	{path: "isolation.network", kind: text, rule: lower, profile: true, oneOf: []string{"none", "allowlist", "full"},
		doc: "how much of the network a session reaches"},
	{path: "isolation.hosts", kind: list, rule: covered, profile: true, entry: ruleEntry(netrule.ParseHost),
		doc: `hosts a session may reach when network is "allowlist": NAME, *.NAME, an address or a network, with optional ports such as ":443,8000-8100"; the default ports are 80 and 443`},
	{path: "isolation.http", kind: list, rule: inHosts, profile: true, entry: ruleEntry(netrule.ParseHTTP),
		doc: `requests that a host takes, as HOST METHODS PATH, for example "api.example.org GET,HEAD /v1/**"; all other requests to this host ask`},
	{path: "isolation.git", kind: list, rule: covered, profile: true, entry: ruleEntry(netrule.ParseGit),
		doc: `what may be done with repositories of a host: "HOST fetch [REPOSITORY]" or "HOST push REPOSITORY REF"; write USER@HOST if SSH logs in as a user other than git`},
	{path: "isolation.host_ports", kind: list, rule: covered, profile: true, entry: ruleEntry(netrule.ParseHostPort),
		doc: `ports of the host's loopback that a session reaches at its own loopback: PORT, or GUEST:HOST`},
	{path: "isolation.ports", kind: list, rule: covered, profile: true, entry: ruleEntry(netrule.ParsePublish),
		doc: `ports of a session that are published on the host's loopback: PORT, or HOST:GUEST`},
	{path: "isolation.secrets", kind: list, rule: covered, profile: true, entry: secretEntry,
		doc: `secrets of the vault that may be put into requests where they are bound; "*" is all of them`},
	{path: "isolation.copy", kind: boolean, rule: lower, profile: true,
		doc: "have sessions work on a copy of the workspace, whose changes \"bawn apply\" takes over; --no-copy turns it off"},
	{path: "isolation.copy_agents", kind: list, rule: adds, profile: true, entry: agentName,
		doc: "agents whose sessions work on a copy of the workspace, such as \"claude\""},
	{path: "isolation.split", kind: boolean, rule: lower, profile: true,
		doc: "keep the agent and what it executes apart, in two sandboxes: the agent reaches its model, its shells run in the other"},
	{path: "isolation.split_workspace", kind: text, rule: lower, profile: true, oneOf: splitAccess,
		doc: "what the agent itself may do with the workspace in a split session; its commands are not affected"},
	{path: "isolation.models", kind: list, rule: covered, profile: true, entry: modelEntry,
		doc: "models that an agent reaches: as URLs, as hosts, or as ports of the host's loopback such as 11434; in a split session the commands do not reach them"},
	{path: "isolation.ssh_agent", kind: boolean, rule: lower, opens: true, profile: true,
		doc: `have your ssh-agent sign logins of a session to hosts that isolation.hosts names with port 22, and to no others`},
	{path: "isolation.docker_api", kind: boolean, rule: lower, opens: true, profile: true,
		doc: "give a session a filtered Docker socket, whose containers may do no more than the session"},
	{path: "isolation.upstream_proxy", kind: text, rule: never, entry: proxyEntry,
		doc: `the proxy for all connections of a session: SCHEME://HOST:PORT, the scheme http, https or socks5; when it is not set, the variable HTTPS_PROXY or ALL_PROXY counts; "none" turns it off`},
	{path: "isolation.while_away", kind: text, rule: lower, profile: true, oneOf: []string{"deny", "commands", "wait"},
		doc: `what happens to a question while no terminal and no relay can answer it: "deny" denies it at once, "wait" lets it wait, "commands" lets it wait unless it is about the network`},
	{path: "isolation.ask_timeout", kind: duration, rule: lower, profile: true, min: 0, max: 600,
		doc: `how long a connection to an unknown host waits for your answer; "0s" refuses it at once`},
	{path: "isolation.rw", kind: list, rule: covered, profile: true, entry: pathEntry,
		doc: "paths a session may read and write, beside the workspace"},
	{path: "isolation.ro", kind: list, rule: adds, profile: true, entry: pathEntry,
		doc: "paths that stay read-only, also inside the workspace"},
	{path: "isolation.deny", kind: list, rule: adds, profile: true, entry: denyEntry,
		doc: `paths a session can neither read nor write; also patterns with "*", "?" and "**". A pattern without a slash, such as "*.pem", or one that begins with "**/", counts below the workspace and each place of rw and ro; any other pattern counts below the workspace`},
	{path: "isolation.open", kind: list, rule: covered, profile: true, entry: openEntry,
		doc: `credentials that a session may read although they are hidden by default: a path, or a name such as "gh", "aws", "ssh"`},
	{path: "isolation.env", kind: list, rule: covered, profile: true, entry: envEntry,
		doc: `environment variables a session gets: NAME, a prefix such as "LC_*", or NAME=value`},
	{path: "isolation.caches", kind: text, rule: lower, profile: true, oneOf: []string{"read-only", "private", "shared"},
		doc: "which package caches a session uses: the host's without writing, private ones that start empty, or the host's"},
	{path: "isolation.cache_dirs", kind: list, rule: covered, profile: true, entry: cacheEntry,
		doc: "directories that are package caches"},
	{path: "isolation.devices", kind: list, rule: covered, profile: true, entry: deviceEntry,
		doc: `devices below /dev beyond the minimal set, by name, for example "kvm" or "nvidia0"; "gpu" stands for all graphics cards, "nvidia" for those of that maker`},
	{path: "isolation.protect", kind: boolean, rule: lower, profile: true,
		doc: "keep files that the host executes later (.git/hooks, .envrc, …) from being written"},
	{path: "isolation.protected", kind: list, rule: adds, profile: true, entry: protectedEntry,
		doc: "further names in the workspace that isolation.protect keeps from being written"},
	{path: "isolation.mask_env", kind: text, rule: lower, profile: true, oneOf: []string{"on", "strict", "off"},
		doc: `show placeholders in place of the secrets that .env files of the workspace keep: always, in mode "strict", or never`},
	{path: "isolation.log_programs", kind: boolean, rule: lower, profile: true,
		doc: "record every program that a session starts, with its words, parent and exit code; providers \"native\" and \"bwrap\""},
	{path: "isolation.unprotect", kind: list, rule: covered, profile: true, entry: unprotectEntry,
		doc: `names of docs/protected-names.md that a session may write in the workspace, for example "rust-toolchain.toml"`},

	{path: "isolation.docker_options.image", kind: text, rule: trusted, entry: imageEntry,
		doc: `the image of the provider "docker", by digest: NAME@sha256:DIGEST, or sha256:ID`},
	{path: "isolation.docker_options.workspace", kind: text, rule: trusted, entry: mountPointEntry,
		doc: "where the workspace is in the container"},
	{path: "isolation.docker_options.extra_args", kind: list, rule: covered, entry: dockerArgEntry,
		doc: `further arguments of "docker run", each as "--NAME=VALUE"; those that would widen need allow_args`},
	{path: "isolation.docker_options.allow_args", kind: list, rule: never, entry: dockerArgEntry,
		doc: "widening arguments that extra_args may hold, exactly as they stand there"},
	{path: "isolation.docker_options.memory_swap_mb", kind: whole, rule: lower, min: 0, max: 1 << 30,
		doc: "how much of a session may be swapped out beside its limit of memory, MiB"},
	{path: "isolation.docker_options.runtime", kind: text, rule: never, entry: runtimeEntry,
		doc: `the engine's OCI runtime, for example "crun"; the engine's default when it is not set`},
	{path: "isolation.docker_options.host", kind: text, rule: never, entry: engineEntry,
		doc: "path of the engine's socket, outside of the workspace; when it is not set, DOCKER_HOST or the usual path counts"},
	{path: "isolation.docker_options.accept_escapes", kind: boolean, rule: never, opens: true,
		doc: "serve a session's Docker API although a trial shows that containers get out of the engine, or although the trial can't be made"},

	{path: "isolation.resources.cpu_shares", kind: whole, rule: lower, profile: true, min: 2, max: 262144, unset: 1024,
		doc: "relative weight of the session's CPU time; the machine's default is 1024"},
	{path: "isolation.resources.cpus", kind: number, rule: lower, profile: true, min: 0.01, max: 4096, unset: unlimited,
		doc: "most cores, for example 1.5"},
	{path: "isolation.resources.memory_mb", kind: whole, rule: lower, profile: true, min: MinMemoryMB, max: 1 << 30, unset: unlimited,
		doc: "most memory, MiB; three quarters of the machine's when it is not set"},
	{path: "isolation.resources.tmp_mb", kind: whole, rule: lower, profile: true, min: 1, max: 1 << 30, unset: unlimited,
		doc: "size of the private /tmp, /run and /dev/shm each, MiB; a quarter of the memory, at most 4096, when it is not set"},
	{path: "isolation.resources.pids_limit", kind: whole, rule: lower, profile: true, min: 1, max: 1 << 22, unset: unlimited,
		doc: "most processes and threads"},
	{path: "isolation.resources.open_files", kind: whole, rule: lower, profile: true, min: 16, max: 1 << 20, unset: unlimited,
		doc: "most open files of one process"},
	{path: "isolation.resources.file_size_mb", kind: whole, rule: lower, profile: true, min: 1, max: 1 << 40, unset: unlimited,
		doc: "size of the largest file that can be written, MiB"},
	{path: "isolation.resources.net_connections", kind: whole, rule: lower, profile: true, min: 1, max: 65535, unset: unlimited,
		doc: "most connections to one host at a time"},
	{path: "isolation.resources.net_out_mb", kind: whole, rule: lower, profile: true, min: 1, max: 1 << 40, unset: unlimited,
		doc: "most that a session may send to one host, MiB"},
	{path: "isolation.resources.secret_requests", kind: whole, rule: lower, profile: true, min: 1, max: 1 << 40, unset: bawn.UsualUses,
		doc: "requests with one secret before a human is asked again; 1000 where it is not set"},
	{path: "isolation.resources.secret_out_mb", kind: whole, rule: lower, profile: true, min: 1, max: 1 << 40, unset: bawn.UsualLentMB,
		doc: "MiB in the bodies of requests with one secret before a human is asked again; 64 where it is not set; what has begun goes on"},
	{path: "isolation.resources.timeout", kind: duration, rule: lower, profile: true, min: 1, max: 30 * 24 * 3600, unset: unlimited,
		doc: `wall clock of the whole session, for example "2h"`},
}

// unavailable says why a key or value that somebody may well write is refused: a
// line that asks for less protection must never be read past.
var unavailable = map[string]string{
	"isolation.fallback": "without a working sandbox a session is refused; allow_fallback_to_host in your own configuration is the one way to less",
}

// extendsKey stands in profiles only.
var extendsKey = &key{path: "extends", kind: text, entry: profileName, profile: true,
	doc: "the profile that this one starts from"}

// A KeyInfo documents a key.
type KeyInfo struct {
	Path       string // dotted
	Value      string // what it takes
	Project    string // how an untrusted project's file may use it
	InProfiles bool
	Doc        string
}

var ruleTexts = []string{
	never: "never, also when trusted", trusted: "only when trusted", lower: "only towards the strict end", adds: "may add",
	covered: "only what earlier layers already give", narrows: "only one whose keys all narrow", inHosts: "only for hosts that earlier layers open in full",
}

// Keys lists the keys in the order of the starter file.
func Keys() []KeyInfo {
	out := make([]KeyInfo, 0, len(keys))
	for _, k := range keys {
		value := kindNames[k.kind]
		if k.oneOf != nil {
			value = strings.Join(quoted(k.oneOf), ", ")
		}
		out = append(out, KeyInfo{Path: k.path, Value: value, Project: ruleTexts[k.rule], InProfiles: k.profile, Doc: k.doc})
	}
	return out
}

func quoted(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = strconv.Quote(w)
	}
	return out
}

// find returns the key with the dotted path, or nil.
func find(path string) *key {
	i := slices.IndexFunc(keys, func(k *key) bool { return k.path == path })
	if i < 0 {
		return nil
	}
	return keys[i]
}

// tables are the tables that hold keys.
var tables = []string{"policy", "isolation", "isolation.resources", "isolation.docker_options"}

// table reports whether path is a table that holds keys.
func table(path string) bool {
	return slices.Contains(tables, path)
}

// keyPaths lists the paths of the keys, without the prefix, that begin with it.
func keyPaths(prefix string, only func(*key) bool) []string {
	var paths []string
	for _, k := range keys {
		if rest, ok := strings.CutPrefix(k.path, prefix); ok && only(k) {
			paths = append(paths, rest)
		}
	}
	return paths
}
