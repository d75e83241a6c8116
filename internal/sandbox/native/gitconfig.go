package native

import (
	"path"
	"strings"
)

// maxConfig bounds the configuration of a repository that a guest makes.
const maxConfig = 64 << 10

// inertKeys are the settings by which git executes and obeys nothing:
// git-config(1). Values of url keys are looked at besides.
var inertKeys = map[string]bool{
	"core.repositoryformatversion": true, "core.filemode": true, "core.bare": true, "core.logallrefupdates": true, "core.ignorecase": true,
	"core.precomposeunicode": true, "core.symlinks": true, "core.autocrlf": true, "core.eol": true,
	"extensions.objectformat": true, "extensions.refstorage": true, "init.defaultbranch": true,
	"user.name": true, "user.email": true, "pull.rebase": true, "pull.ff": true, "submodule.active": true,
	"remote.*.url": true, "remote.*.fetch": true, "remote.*.tagopt": true, "remote.*.mirror": true, "remote.*.promisor": true, "remote.*.partialclonefilter": true,
	"branch.*.remote": true, "branch.*.merge": true, "branch.*.rebase": true,
}

// activeKey returns the first setting of a git configuration that is not
// known to be inert, or "syntax" for what is not written as git writes it.
// It returns "" if all is well.
func activeKey(text string) string {
	if len(text) > maxConfig {
		return "size"
	}
	section := ""
	for line := range strings.Lines(text) {
		line = strings.Trim(line, " \t\n")
		switch {
		case line == "":
			continue
		case strings.ContainsAny(line, "\\\r\x00;#") || !printable(line):
			return "syntax"
		case line[0] == '[':
			var ok bool
			if section, ok = sectionName(line); !ok {
				return "syntax"
			}
		default:
			if key := activeLine(section, line); key != "" {
				return key
			}
		}
	}
	return ""
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\t' || s[i] == 0x7f {
			return false
		}
	}
	return true
}

// sectionName returns "core" for [core] and "remote.*" for [remote "origin"].
func sectionName(line string) (string, bool) {
	inner, ok := strings.CutSuffix(line[1:], "]")
	if !ok {
		return "", false
	}
	name, sub, has := strings.Cut(inner, " ")
	if !wordOnly(name) {
		return "", false
	}
	if !has {
		return fold(name), true
	}
	if len(sub) < 2 || sub[0] != '"' || sub[len(sub)-1] != '"' || strings.Contains(sub[1:len(sub)-1], `"`) {
		return "", false
	}
	return fold(name) + ".*", true
}

func wordOnly(s string) bool {
	for i := range len(s) {
		if ch := s[i] | 0x20; ch < 'a' || ch > 'z' {
			return false
		}
	}
	return s != ""
}

func activeLine(section, line string) string {
	name, value, ok := strings.Cut(line, "=")
	name, value = fold(strings.TrimSpace(name)), strings.TrimSpace(value)
	if !ok || !wordOnly(name) || section == "" || strings.Contains(value, `"`) {
		return "syntax"
	}
	key := section + "." + name
	if !inertKeys[key] || name == "url" && !plainURL(value) {
		return key
	}
	return ""
}

// plainURL accepts what git fetches by itself: no remote helper ("ext::…"),
// no option.
func plainURL(v string) bool {
	if v == "" || v[0] == '-' || strings.Contains(v, "::") {
		return false
	}
	scheme, rest, ok := strings.Cut(v, "://")
	if !ok {
		return path.IsAbs(v) || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "../") || strings.Contains(v, ":") || !strings.Contains(v, " ")
	}
	switch fold(scheme) {
	case "https", "http", "ssh", "git", "file":
		return rest != "" && rest[0] != '-'
	}
	return false
}

// A setting is one line of a git configuration, its key folded as in
// [inertKeys].
type setting struct{ key, value string }

// settings reads a configuration as git-config(1) describes it. It takes
// everything for a setting that might be one.
func settings(text string) []setting {
	var list []setting
	section := ""
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\\\n", "")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section, line = header(line)
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		name, value, _ := strings.Cut(line, "=")
		list = append(list, setting{section + "." + strings.ToLower(strings.TrimSpace(name)), unquote(value)})
	}
	return list
}

// header splits a line at the end of its section's name, and returns that as
// [sectionName] does.
func header(line string) (section, rest string) {
	inner, quoted := line[1:], false
	end := strings.IndexFunc(inner, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ']' && !quoted
	})
	if end < 0 {
		return strings.ToLower(inner), ""
	}
	name, _, sub := strings.Cut(inner[:end], " ")
	if first, _, dotted := strings.Cut(name, "."); dotted {
		name, sub = first, true
	}
	if name = strings.ToLower(name); sub {
		name += ".*"
	}
	return name, strings.TrimSpace(inner[end+1:])
}

// unquote takes comments and quotes off a value.
func unquote(value string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(value); i++ {
		switch ch := value[i]; {
		case ch == '"':
			quoted = !quoted
		case ch == '\\' && i+1 < len(value):
			i++
			b.WriteByte(value[i])
		case (ch == '#' || ch == ';') && !quoted:
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(ch)
		}
	}
	return strings.TrimSpace(b.String())
}
