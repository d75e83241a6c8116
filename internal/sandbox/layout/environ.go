package layout

import (
	"fmt"
	"sort"
	"strings"
)

// environment chooses the guest's variables: those that the isolation names or
// sets, those that must be true inside, and those that the request sets.
func (b *builder) environment() []string {
	env := map[string]string{}
	for _, kv := range b.req.Environ {
		if name, value, ok := strings.Cut(kv, "="); ok && passed(b.iso.Env, name) {
			env[name] = value
		}
	}
	for _, kv := range b.iso.SetEnv {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	env["TMPDIR"] = "/tmp"
	if f, ok := b.facts.Lookup(b.req.Dir); ok {
		env["PWD"] = f.Real
	}
	env["XDG_RUNTIME_DIR"] = fmt.Sprintf("/run/user/%d", b.inside())
	env["BAWN_SESSION"] = b.req.Session.ID
	if b.noCache {
		env["XDG_CACHE_HOME"] = "/tmp/.cache"
	}
	for _, kv := range b.req.SetEnv {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
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
	for _, p := range patterns {
		prefix, wild := strings.CutSuffix(p, "*")
		if p == name || wild && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// LookupEnv returns the value of a variable, or "".
func LookupEnv(environ []string, name string) string {
	for i := len(environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(environ[i], name+"="); ok {
			return v
		}
	}
	return ""
}

func names(env []string) []string {
	list := make([]string, len(env))
	for i, kv := range env {
		list[i], _, _ = strings.Cut(kv, "=")
	}
	return list
}
