package importer

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/netrule"
)

// A cadreBlock is the isolation block of cadre.config.json. It holds settings
// of a session and no rules. Cadre's providers did less than its words promise;
// where they did, a report says so beside the setting.
type cadreBlock struct {
	*reader
	in       string            // where the settings of a policy go: "isolation." or "profiles.NAME."
	profiles map[string]string // named policies, and their names here
}

// cadre reads a file of Cadre's, or the block alone.
func (r *reader) cadre(data []byte) error {
	n, err := r.parseObject(data, "Cadre's isolation block")
	if err != nil {
		return err
	}
	block := cmp.Or(n.get("isolation"), n)
	if block.kind != '{' {
		return r.errorAt(block.line, "it is no object; want Cadre's isolation block")
	}
	b := &cadreBlock{reader: r, in: "isolation.", profiles: map[string]string{}}
	for _, m := range block.members {
		if m.key == "policies" || m.key == "profiles" {
			b.policies(m)
		}
	}
	for _, m := range block.members {
		b.key(m)
	}
	return nil
}

// key reads one key of the block.
func (b *cadreBlock) key(m member) {
	switch m.key {
	case "policies", "profiles": // read first
	case "enabled":
		b.choose(m.item(), m.value.text(), cadreEnabled, "it is neither true nor false")
	case "provider":
		b.choose(m.item(), m.value.text(), cadreProviders, "there is no provider of that name")
	case "allowFallbackToHost":
		b.choose(m.item(), m.value.text(), cadreFallback, "it is neither true nor false")
	case "policyProfile":
		b.profile(m)
	case "dockerOptions":
		for _, o := range b.members(m) {
			b.dockerOption(o)
		}
	case "policy":
		for _, a := range b.members(m) {
			b.attribute(a)
		}
	default:
		b.attribute(m)
	}
}

var cadreEnabled = map[string]choice{
	"true":  {key: "isolation.enabled", value: true},
	"false": {why: `nothing here switches the isolation off by import; to run without a sandbox say provider = "host" under [isolation] in your own configuration`},
}

var cadreProviders = map[string]choice{
	"docker": {key: "isolation.provider", value: "docker"},
	"host":   {why: `it is no sandbox; to run without one say provider = "host" under [isolation] in your own configuration`},
	"kata":   {why: `it is a runtime of the engine here: provider = "docker" with runtime = "io.containerd.kata.v2" under [isolation.docker_options], where the engine has it`},
}

var cadreFallback = map[string]choice{
	"false": {key: "isolation.allow_fallback_to_host", value: false},
	"true": {why: "Cadre went on without a sandbox and wrote nothing down; that is chosen in your own configuration and not imported: " +
		"allow_fallback_to_host = true, which is recorded and shown with every question"},
}

// policies reads policies with a name: each becomes a profile.
func (b *cadreBlock) policies(m member) {
	for _, p := range b.members(m) {
		at := Item{Line: p.value.line, Text: m.key + "." + p.key}
		name, ok := cadreProfile(p.key)
		taken := slices.Contains(slices.Collect(maps.Values(b.profiles)), name)
		if !ok || taken || p.value.kind != '{' {
			b.left(at, "it is no object under a name of its own; want up to %d of a-z, 0-9, \"_\" and \"-\"", maxCadreName)
			continue
		}
		before := len(b.Settings)
		inside := &cadreBlock{reader: b.reader, in: "profiles." + name + "."}
		for _, a := range p.value.members {
			inside.attribute(a)
		}
		if len(b.Settings) == before {
			b.left(at, "nothing of it was carried over, so that there is no profile")
			continue
		}
		b.profiles[p.key] = name
		if name != p.key {
			b.left(at, "it is called %q here, since %q is built in", name, p.key)
		}
	}
}

// maxCadreName is the longest name of a policy: a profile's has 64 bytes at
// most, with "cadre-" before it where it is taken.
const maxCadreName = 64 - len("cadre-")

// cadreProfile is a policy's name as that of a profile.
func cadreProfile(name string) (string, bool) {
	word := func(c rune) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-' }
	if name == "" || len(name) > maxCadreName || strings.IndexByte("_-", name[0]) >= 0 || strings.ContainsFunc(name, func(c rune) bool { return !word(c) }) {
		return "", false
	}
	if slices.Contains([]string{"default", "readonly", "online", "strict"}, name) {
		return "cadre-" + name, true
	}
	return name, true
}

// profile reads which policy counts.
func (b *cadreBlock) profile(m member) {
	name, isString := m.value.string()
	ours, defined := b.profiles[name]
	switch {
	case defined:
		b.set(m.value.line, "isolation.policy_profile", ours)
	case isString && name == "default":
		b.set(m.value.line, "isolation.policy_profile", name)
		b.left(m.item(), "Cadre's had the whole network and no limits; Bawn's of that name is closed, see \"bawn config show\"")
	default:
		b.left(m.item(), "define a profile of that name in Bawn's configuration first")
	}
}

// attribute reads one of an isolation policy.
func (b *cadreBlock) attribute(m member) {
	if m.value.kind == '[' && len(m.value.items) == 0 {
		b.left(m.item(), "an empty list was not checked against the provider there; here it adds nothing to what the profile gives")
		return
	}
	switch m.key {
	case "mounts":
		b.mounts(m)
	case "networkMode":
		b.network(m)
	case "networkAllowlist":
		b.hosts(m)
	case "envAllowlist":
		b.env(m)
	case "secrets":
		b.secrets(m)
	case "resources":
		for _, limit := range b.members(m) {
			b.resource(limit)
		}
	default:
		b.left(Item{Line: m.value.line, Text: m.key}, noEqual) // whose value may be a secret
	}
}

func (b *cadreBlock) mounts(m member) {
	if m.value.kind != '[' {
		b.left(m.item(), "it is no list")
	}
	for _, it := range m.value.items {
		b.mount(it)
	}
}

// mount opens a directory, for reading only unless it says otherwise.
func (b *cadreBlock) mount(m *node) {
	text, _ := m.get("path").string()
	at := Item{Line: m.line, Text: "mounts: " + cmp.Or(text, m.text())}
	dir := strings.TrimRight(text, "/")
	if why := cmp.Or(tooWide(dir), unspeakable(dir)); why != "" {
		b.left(at, "%s", why)
		return
	}
	for _, o := range m.members {
		if o.key != "path" && o.key != "readOnly" {
			b.left(Item{Line: o.value.line, Text: "mounts: " + text + ": " + o.key}, noEqual)
		}
	}
	key := "ro"
	switch only := m.get("readOnly"); {
	case only.is(false):
		key = "rw"
	case !only.is(true):
		b.left(at, "it does not say whether it is readOnly, with which Cadre lets it be written; here it is read-only")
	}
	b.set(m.line, b.in+key, []string{dir})
}

// unspeakable says why a text can't stand in a configuration, or "".
func unspeakable(s string) string {
	if strings.ContainsFunc(s, func(c rune) bool { return hidden(c) || c == '\uFFFD' }) {
		return "it has a character that can't be shown"
	}
	return ""
}

func (b *cadreBlock) network(m member) {
	mode, _ := m.value.string()
	switch mode {
	case "none":
		b.set(m.value.line, b.in+"network", mode)
	case "allowlist":
		b.set(m.value.line, b.in+"network", mode)
		b.left(m.item(), "Cadre filtered nothing: it was a bridge from which everything could be reached; here only the hosts of the profile and of isolation.hosts are, and you are asked about others")
	case "full":
		b.left(m.item(), "it is the default there, so that nobody may have meant it; set isolation.network = \"full\" yourself")
	default:
		b.left(m.item(), "it is no mode; want none, allowlist or full")
	}
}

func (b *cadreBlock) hosts(m member) {
	var hosts []string
	for _, it := range b.strings(m.key, m.value) {
		h, err := netrule.ParseHost(it.Text)
		if err != nil {
			b.left(Item{Line: it.Line, Text: m.key + " " + it.Text}, "%v", err)
			continue
		}
		hosts = append(hosts, h.String())
	}
	if len(hosts) > 0 {
		b.set(m.value.line, b.in+"hosts", hosts)
	}
}

func (b *cadreBlock) env(m member) {
	var names []string
	for _, it := range b.strings(m.key, m.value) {
		if !variable(strings.TrimSuffix(it.Text, "*")) {
			b.left(Item{Line: it.Line, Text: m.key + " " + it.Text}, "it is no name of a variable")
			continue
		}
		names = append(names, it.Text)
	}
	if len(names) > 0 {
		b.set(m.value.line, b.in+"env", names)
		b.left(m.item(), "Cadre passed these alone; the default profile passes others as well, none of which carries a credential, see \"bawn config show\"")
	}
}

func variable(s string) bool {
	return s != "" && (s[0] < '0' || s[0] > '9') && !strings.ContainsFunc(s, func(c rune) bool { return c > 0x7f || !nameByte(byte(c)) })
}

// secrets reads names only: a value is never repeated.
func (b *cadreBlock) secrets(m member) {
	if m.value.kind != '[' {
		b.left(Item{Line: m.value.line, Text: m.key}, "it is no list")
	}
	for _, it := range m.value.items {
		name, _ := it.get("name").string()
		if bare, ok := it.string(); ok && variable(bare) {
			name = bare
		}
		at := Item{Line: it.line, Text: m.key + ": " + cmp.Or(name, "an entry without a name")}
		if it.get("value") == nil {
			b.left(at, "put it into the vault and name it in isolation.secrets, see \"bawn secret --help\"")
			continue
		}
		b.left(at, "Cadre put it into the environment, for every process to read: put it into the vault, bind it to its host and name it in isolation.secrets, "+
			"see \"bawn secret --help\"; take its value out of this file, and replace it if others could read that")
	}
}
