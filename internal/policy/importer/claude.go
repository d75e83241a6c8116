package importer

import (
	"cmp"
	"strings"

	"github.com/bawn-dev/bawn"
)

// claude reads Claude Code's settings.json: the lists of permissions, the mode
// and further directories. Denials are looked at first there, then questions,
// then allowances.
func (r *reader) claude(data []byte) error {
	n, err := r.parseObject(data, "Claude Code's settings.json")
	if err != nil {
		return err
	}
	for _, m := range n.members {
		r.claudeKey(m)
	}
	return nil
}

func (r *reader) claudeKey(m member) {
	why := claudeLeft[m.key]
	switch {
	case m.key == "permissions":
		r.claudePermissions(m)
	case why != "":
		r.left(m.item(), "%s", why)
	}
}

const noEqual = "it has no equal here"

// claudeLeft are the keys beside the permissions that somebody may take for
// some.
var claudeLeft = map[string]string{
	"sandbox":                    "Bawn's own sandbox is set in its configuration, see \"bawn config\"",
	"hooks":                      "a hook is a program of its own and no rule",
	"enableAllProjectMcpServers": noEqual, "enabledMcpjsonServers": noEqual, "disabledMcpjsonServers": noEqual,
	"allowedMcpServers": noEqual, "deniedMcpServers": noEqual, "allowManagedPermissionRulesOnly": noEqual,
}

func (r *reader) claudePermissions(permissions member) {
	for _, m := range r.members(permissions) {
		switch m.key {
		case "allow", "ask", "deny":
			r.claudeList(m)
		case "defaultMode":
			r.choose(m.item(), m.value.value, claudeModes, noQuestions)
		case "additionalDirectories":
			r.directories(m.key, m.value)
		case "disableBypassPermissionsMode", "disableAutoMode": // here is nothing that they would have to close
		default:
			r.left(m.item(), noEqual)
		}
	}
}

func (r *reader) claudeList(m member) {
	var v bawn.Verdict
	if v.UnmarshalText([]byte(m.key)) != nil {
		return
	}
	for _, it := range r.strings(m.key, m.value) {
		r.claudeRule(Item{Line: it.Line, Text: m.key + " " + it.Text}, it.Text, bawn.Rule{Verdict: v})
	}
}

var claudeModes = map[string]choice{
	"default":     {key: "mode", value: "normal"},
	"manual":      {key: "mode", value: "normal"},
	"plan":        {key: "mode", value: "plan"},
	"dontAsk":     {key: "autonomy", value: "limited"},
	"acceptEdits": {why: "edits in the workspace need no question in a contained session; choose mode and sandbox yourself"},
}

// noQuestions is why a mode that asks nobody is not carried over.
const noQuestions = "nothing here turns questions off; choose a mode yourself, see \"bawn config\""

// directories adds directories that may be written.
func (r *reader) directories(name string, n *node) {
	var dirs []string
	for _, it := range r.strings(name, n) {
		dir := strings.TrimRight(it.Text, "/")
		if why := tooWide(dir); why != "" {
			r.left(Item{Line: it.Line, Text: name + " " + it.Text}, "%s", why)
			continue
		}
		dirs = append(dirs, dir)
	}
	if len(dirs) > 0 {
		r.set(n.line, "isolation.rw", dirs)
	}
}

// tooWide says why a directory is not opened, or "".
func tooWide(dir string) string {
	switch {
	case strings.Contains(dir+"/", "/../") || dir == "~" || dir == "":
		return "it is too wide; name a directory"
	case !strings.HasPrefix(dir, "/") && !strings.HasPrefix(dir, "~/"):
		return "it is not clear where it starts; write it from / or ~/"
	}
	return ""
}

// The effects of Claude's tools on files.
var claudeFiles = map[string][]bawn.Operation{
	"Read": {bawn.Read}, "Glob": {bawn.Read}, "Grep": {bawn.Read}, "LS": {bawn.Read}, "NotebookRead": {bawn.Read},
	"Edit": writing, "Write": writing, "MultiEdit": writing, "NotebookEdit": writing,
}

var writing = []bawn.Operation{bawn.Write, bawn.Create}

// claudeRule reads Tool or Tool(what).
func (r *reader) claudeRule(at Item, text string, rule bawn.Rule) {
	tool, what, found := strings.Cut(text, "(")
	if found && !strings.HasSuffix(what, ")") {
		r.left(at, "it is no rule; want Tool or Tool(what)")
		return
	}
	what = strings.TrimSuffix(what, ")")
	switch {
	case tool == "Bash" || tool == "PowerShell" && rule.Verdict != bawn.Allow:
		r.claudeCommand(at, what, rule)
	case claudeFiles[tool] != nil:
		r.claudePath(at, tool, what, rule)
	case tool == "WebFetch":
		r.claudeHost(at, what, rule)
	default:
		r.claudeTool(at, tool, found, rule)
	}
}

// claudeHost reads "domain:NAME"; "" stands for all.
func (r *reader) claudeHost(at Item, what string, rule bawn.Rule) {
	domain, ok := strings.CutPrefix(what, "domain:")
	if !ok && what != "" && what != "*" {
		r.left(at, "it names no domain")
		return
	}
	r.host(at, domain, rule)
}

// claudeTool reads a tool that has no rules of its own here.
func (r *reader) claudeTool(at Item, tool string, limited bool, rule bawn.Rule) {
	server := strings.HasPrefix(tool, "mcp__")
	if limited || !server && rule.Verdict == bawn.Allow {
		r.left(at, "Bawn has no such tool to make rules for")
		return
	}
	if server && strings.Count(tool, "__") == 1 {
		tool += "__*"
	}
	r.tool(at, tool, rule)
}

// claudeCommand reads "words", "words:*", "words *" and "word*".
func (r *reader) claudeCommand(at Item, text string, rule bawn.Rule) {
	f, text := exact, strings.TrimSpace(text)
	if rest, ok := strings.CutSuffix(text, ":*"); ok {
		f, text = prefix, rest
	} else if rest, ok := strings.CutSuffix(text, "*"); ok {
		f, text = stem, rest
		if rest == "" || strings.HasSuffix(rest, " ") {
			f = prefix
		}
	}
	r.command(at, text, f, rule)
}

// claudePath reads a pattern of paths; "" stands for all.
func (r *reader) claudePath(at Item, tool, text string, rule bawn.Rule) {
	rule.Operations = claudeFiles[tool]
	if rule.Verdict == bawn.Deny && rule.Operations[0] != bawn.Read {
		rule.Operations = append([]bawn.Operation{bawn.Delete}, rule.Operations...)
	}
	r.path(at, cmp.Or(text, "**"), rule)
	if text == "" && rule.Verdict == bawn.Allow {
		r.left(at, "carried over for the workspace only; name the other directories")
	}
}
