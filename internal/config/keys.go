package config

import (
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
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

// A rule says what an untrusted project file may do with a key.
type rule uint8

const (
	never   rule = iota // not even a trusted project file may set it
	trusted             // only a trusted one may set it
	lower               // only towards the strict end
	adds                // entries narrow, so they may be added
	covered             // each entry must be covered by what the layers before give
	narrows             // a profile, if each of its keys narrows
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
	entry    func(s string, p paths) (string, error)
}

// name returns the last part of the path.
func (k *key) name() string { return k.path[strings.LastIndexByte(k.path, '.')+1:] }

// limit reports whether the key is a resource limit.
func (k *key) limit() bool { return strings.HasPrefix(k.path, "isolation.resources.") }

// Providers lists the names that isolation.provider accepts.
func Providers() []string {
	return []string{"", "native", "landlock"}
}

// MinMemoryMB is the least memory that a session can be limited to, in MiB: with
// less hardly a program starts, and who asks for it meant another unit.
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

	{path: "isolation.enabled", kind: boolean, rule: never,
		doc: "must be true: there is no session without isolation"},
	{path: "isolation.provider", kind: text, rule: never, oneOf: Providers(),
		doc: `what enforces the isolation; "" picks the strongest that meets the policy; "landlock" is for where user namespaces are closed`},
	{path: "isolation.policy_profile", kind: text, rule: narrows, entry: profileName,
		doc: "the profile that is laid over the keys of the layers before, below those of this file"},

	{path: "isolation.network", kind: text, rule: lower, profile: true, oneOf: []string{"none", "allowlist", "full"},
		doc: "how much of the network a session reaches"},
	{path: "isolation.hosts", kind: list, rule: covered, profile: true, entry: hostEntry,
		doc: `hosts a session may reach when network is "allowlist": a name in lower case, with an optional leading "*." and an optional ":port"`},
	{path: "isolation.rw", kind: list, rule: covered, profile: true, entry: pathEntry,
		doc: "paths a session may read and write, beside the workspace"},
	{path: "isolation.ro", kind: list, rule: adds, profile: true, entry: pathEntry,
		doc: "paths that stay read-only, also inside the workspace"},
	{path: "isolation.deny", kind: list, rule: adds, profile: true, entry: pathEntry,
		doc: "paths a session can neither read nor write"},
	{path: "isolation.open", kind: list, rule: covered, profile: true, entry: openEntry,
		doc: `credentials whose read is opened again: a path, or a name such as "gh", "aws", "ssh"`},
	{path: "isolation.env", kind: list, rule: covered, profile: true, entry: envEntry,
		doc: `environment variables a session gets: NAME, a prefix such as "LC_*", or NAME=value`},
	{path: "isolation.caches", kind: text, rule: lower, profile: true, oneOf: []string{"read-only", "private", "shared"},
		doc: "how package caches are used: the host's without writing, a copy of Bawn's own, or the host's"},
	{path: "isolation.cache_dirs", kind: list, rule: covered, profile: true, entry: pathEntry,
		doc: "directories that are package caches"},
	{path: "isolation.devices", kind: list, rule: covered, profile: true, entry: deviceEntry,
		doc: `names below /dev beyond the minimal set, for example "kvm"`},
	{path: "isolation.protect", kind: boolean, rule: lower, profile: true,
		doc: "keep files that the host executes later (.git/hooks, .envrc, …) from being written"},
	{path: "isolation.protected", kind: list, rule: adds, profile: true, entry: protectedEntry,
		doc: "further names in the workspace that are protected so"},

	{path: "isolation.resources.cpu_shares", kind: whole, rule: lower, profile: true, min: 2, max: 262144, unset: 1024,
		doc: "relative weight of the CPU time; the machine's default is 1024"},
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
	{path: "isolation.resources.timeout", kind: duration, rule: lower, profile: true, min: 1, max: 30 * 24 * 3600, unset: unlimited,
		doc: `wall clock of the whole session, for example "2h"`},
}

// unavailable says why a key or value that somebody may well write is refused: a
// line that asks for less protection must never be read past.
var unavailable = map[string]string{
	"isolation.fallback":               "there is no fallback: without a working sandbox a session is refused; remove the line",
	"isolation.allow_fallback_to_host": "there is no fallback: without a working sandbox a session is refused; remove the line",
	"isolation.provider=host":          "there is no session without isolation; remove it, and \"bawn doctor\" shows what can be enforced here",
}

// extendsKey stands in profiles only.
var extendsKey = &key{path: "extends", kind: text, entry: profileName, profile: true,
	doc: "the profile that is laid down before this one"}

// find returns the key with the dotted path, or nil.
func find(path string) *key {
	i := slices.IndexFunc(keys, func(k *key) bool { return k.path == path })
	if i < 0 {
		return nil
	}
	return keys[i]
}

// table reports whether path is a table that holds keys.
func table(path string) bool {
	return path == "isolation" || path == "isolation.resources"
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
