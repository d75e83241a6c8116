package importer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// cadre reads the isolation block of cadre.config.json (SPEC D9), or the block
// alone. What it says are settings of a session and no rules.
func (r *reader) cadre(data []byte) error {
	n, err := r.parseObject(data, "Cadre's isolation block")
	if err != nil {
		return err
	}
	block := cmp.Or(n.get("isolation"), n)
	if block.kind != '{' {
		return r.errorAt(block.line, "it is no object; want Cadre's isolation block")
	}
	for _, m := range block.members {
		r.cadreKey(m)
	}
	return nil
}

// cadreKeys are the keys of the block by value.
var cadreKeys = map[string]map[string]choice{
	"enabled":             {"true": {key: "isolation.enabled", value: true}},
	"policyProfile":       {"default": {key: "isolation.policy_profile", value: "default"}},
	"allowFallbackToHost": {"false": {key: "isolation.allow_fallback_to_host", value: false}},
	"networkMode": {
		"none": {key: "isolation.network", value: "none"}, "allowlist": {key: "isolation.network", value: "allowlist"},
		"full": {why: "it is the default there, so that nobody may have meant it; set isolation.network = \"full\" yourself"},
	},
}

// cadreLeft is why other values of a key are not carried over.
var cadreLeft = map[string]string{
	"enabled":             noIsolation,
	"provider":            "Bawn picks the strongest provider that meets the policy; name one in its configuration if you must",
	"policyProfile":       "define a profile of that name in Bawn's configuration first",
	"allowFallbackToHost": "a fallback to no isolation is chosen in Bawn's configuration, not imported",
	"dockerOptions":       "no provider of this configuration takes an image or arguments",
	"networkMode":         "it is no mode; want none, allowlist or full",
}

// cadreKey reads a key of the block, or an attribute of an isolation policy.
func (r *reader) cadreKey(m member) {
	switch m.key {
	case "policy":
		for _, inner := range r.members(m) {
			if inner.key != "policy" {
				r.cadreKey(inner)
			}
		}
	case "mounts":
		r.cadreMounts(m.value)
	case "envAllowlist":
		r.cadreEnv(m.value)
	case "resources":
		for _, limit := range r.members(m) {
			r.cadreResource(limit)
		}
	default:
		r.choose(m.item(), m.value.text(), cadreKeys[m.key], cmp.Or(cadreLeft[m.key], noEqual))
	}
}

func (r *reader) cadreMounts(n *node) {
	if n.kind != '[' {
		r.left(Item{Line: n.line, Text: "mounts: " + n.text()}, "it is no list")
	}
	for _, m := range n.items {
		r.cadreMount(m)
	}
}

// cadreMount opens a directory, for reading only unless it says otherwise.
func (r *reader) cadreMount(m *node) {
	dir, _ := m.get("path").string()
	if why := tooWide(strings.TrimRight(dir, "/")); why != "" {
		r.left(Item{Line: m.line, Text: "mounts: " + cmp.Or(dir, m.text())}, "%s", why)
		return
	}
	key := "isolation.ro"
	if m.get("readOnly").is(false) {
		key = "isolation.rw"
	}
	r.set(m.line, key, []string{strings.TrimRight(dir, "/")})
}

func (r *reader) cadreEnv(n *node) {
	var names []string
	for _, it := range r.strings("envAllowlist", n) {
		if !variable(strings.TrimSuffix(it.Text, "*")) {
			r.left(Item{Line: it.Line, Text: "envAllowlist " + it.Text}, "it is no name of a variable")
			continue
		}
		names = append(names, it.Text)
	}
	if len(names) > 0 {
		r.set(n.line, "isolation.env", names)
	}
}

func variable(s string) bool {
	return s != "" && (s[0] < '0' || s[0] > '9') && !strings.ContainsFunc(s, func(c rune) bool { return c > 0x7f || !nameByte(byte(c)) })
}

// cadreLimits are the limits with their keys and bounds here.
var cadreLimits = map[string]struct {
	key      string
	min, max int64
}{
	"cpuShares": {"cpu_shares", 2, 262144}, "memoryMb": {"memory_mb", 1, 1 << 30}, "pidsLimit": {"pids_limit", 1, 1 << 22},
	"timeoutMs": {"timeout", 1000, 30 * 24 * 3600 * 1000},
}

// cadreResource reads a limit, in the units of its name.
func (r *reader) cadreResource(m member) {
	at := Item{Line: m.value.line, Text: "resources." + m.key + ": " + m.value.text()}
	k, known := cadreLimits[m.key]
	number, _ := m.value.value.(json.Number)
	v, err := number.Int64()
	switch {
	case !known:
		r.left(at, noEqual)
	case err != nil || v < k.min || v > k.max:
		r.left(at, "want an integer from %d to %d", k.min, k.max)
	case m.key == "timeoutMs":
		r.set(at.Line, "isolation.resources.timeout", fmt.Sprintf("%ds", v/1000))
	default:
		r.set(at.Line, "isolation.resources."+k.key, v)
	}
}
