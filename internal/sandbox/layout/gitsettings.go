package layout

import "strings"

// inertKeys are settings whose values name nothing that git executes or obeys.
var inertKeys = map[string]bool{
	"core.repositoryformatversion": true, "core.filemode": true, "core.bare": true, "core.logallrefupdates": true, "core.ignorecase": true,
	"core.precomposeunicode": true, "core.symlinks": true, "core.autocrlf": true, "core.eol": true, "core.worktree": true,
	"extensions.objectformat": true, "extensions.refstorage": true, "init.defaultbranch": true,
	"user.name": true, "user.email": true, "pull.rebase": true, "pull.ff": true, "submodule.active": true,
}

// A setting is one line of a git configuration, its key folded
// and without the name of a subsection.
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
// "remote.*" where it has a subsection.
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
