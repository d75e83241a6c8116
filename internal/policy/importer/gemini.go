package importer

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
)

// gemini reads one of Gemini CLI's two sorts of files: policies (TOML) and
// settings.json.
func (r *reader) gemini(data []byte) error {
	if path.Ext(r.File) == ".json" || path.Ext(r.File) != ".toml" && strings.HasPrefix(strings.TrimSpace(string(uncommented(data))), "{") {
		return r.geminiSettings(data)
	}
	doc, err := r.parseTOML(data)
	if err != nil {
		return err
	}
	r.geminiPolicy(data, doc)
	return nil
}

func (r *reader) geminiPolicy(data []byte, doc map[string]any) {
	rules, _ := doc["rule"].([]any)
	for _, key := range sortedKeys(doc) {
		if key != "rule" || rules == nil {
			r.left(Item{Line: keyLine(data, key), Text: key + " = " + shown(doc[key])}, "only [[rule]] can be carried over")
		}
	}
	line, rank := tableLines(data, "rule"), ranks(rules)
	for i, v := range rules {
		r.geminiRule(Item{Line: line(i), Text: describe(v)}, v, rank)
	}
}

// describe is a rule on one line.
func describe(v any) string {
	table, _ := v.(map[string]any)
	parts := []string{"rule"}
	for _, key := range sortedKeys(table) {
		if key != "priority" && key != "denyMessage" {
			parts = append(parts, key+"="+shown(table[key]))
		}
	}
	return shorten(strings.Join(parts, " "))
}

// ranks keeps the order of the priorities of a file, from 21 to 99: above the
// hints among our own rules and below those that guard the machine.
func ranks(rules []any) func(int64) int {
	var all []int64
	for _, v := range rules {
		if table, ok := v.(map[string]any); ok {
			p, _ := table["priority"].(int64)
			all = append(all, p)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return func(p int64) int {
		i, _ := slices.BinarySearch(all, p)
		return 21 + i*78/max(len(all)-1, 78)
	}
}

var geminiDecisions = map[string]bawn.Verdict{"allow": bawn.Allow, "ask_user": bawn.Ask, "deny": bawn.Deny}

// geminiConditions are keys that make a rule hold in some cases only.
var geminiConditions = []string{"commandRegex", "argsPattern", "subagent", "toolAnnotations", "interactive"}

func (r *reader) geminiRule(at Item, v any, rank func(int64) int) {
	table, _ := v.(map[string]any)
	decision, _ := table["decision"].(string)
	verdict, ok := geminiDecisions[decision]
	if !ok {
		r.left(at, "the decision %q is invalid; want allow, ask_user or deny", decision)
		return
	}
	if why := limited(table); why != "" {
		r.left(at, "%s", why)
		return
	}
	p, _ := table["priority"].(int64)
	reason, _ := table["denyMessage"].(string)
	r.geminiTools(at, table, bawn.Rule{Verdict: verdict, Priority: rank(p), Reason: reason})
	if table["allowRedirection"] == true {
		r.left(at, "allowRedirection: what a redirection writes is judged as a path here")
	}
}

// limited says why a rule holds in some cases only, or "".
func limited(table map[string]any) string {
	i := slices.IndexFunc(geminiConditions, func(key string) bool { return table[key] != nil })
	modes, ok := texts(table["modes"])
	switch {
	case i >= 0:
		return "the condition " + geminiConditions[i] + " can't be carried over"
	case table["modes"] != nil && (!ok || len(modes) > 0 && !slices.Contains(modes, "default")):
		return "a rule for one mode only can't be carried over"
	}
	return ""
}

func (r *reader) geminiTools(at Item, table map[string]any, rule bawn.Rule) {
	tools, ok := texts(cmp.Or[any](table["toolName"], "*"))
	prefixes, fine := texts(cmp.Or[any](table["commandPrefix"], []any{}))
	server, isText := cmp.Or[any](table["mcpName"], "").(string)
	switch {
	case !ok || !fine || !isText:
		r.left(at, "toolName, mcpName and commandPrefix must be strings")
	case len(prefixes) > 0 && (table["toolName"] == nil || slices.Equal(tools, []string{"run_shell_command"})):
		for _, p := range prefixes {
			r.command(at, p, prefix, rule)
		}
	case len(prefixes) > 0:
		r.left(at, "commandPrefix goes with the tool run_shell_command only")
	case server != "":
		for _, t := range tools {
			r.tool(at, "mcp__"+server+"__"+t, rule)
		}
	default:
		for _, t := range tools {
			r.geminiTool(at, t, rule)
		}
	}
}

// The effects of Gemini's own tools on files.
var geminiFiles = map[string][]bawn.Operation{
	"read_file": {bawn.Read}, "read_many_files": {bawn.Read}, "list_directory": {bawn.Read}, "glob": {bawn.Read},
	"search_file_content": {bawn.Read}, "grep_search": {bawn.Read}, "write_file": writing, "replace": writing, "edit": writing,
}

// geminiTool adds the rules of a tool without further conditions.
func (r *reader) geminiTool(at Item, name string, rule bawn.Rule) {
	ops, isFile := geminiFiles[name]
	switch {
	case name == "*" && rule.Verdict == bawn.Allow:
		r.left(at, "it allows every tool; name them")
	case name == "*":
		r.command(at, "", prefix, rule)
		r.host(at, "*", rule)
		r.tool(at, "*", rule)
		r.path(at, "**", rule)
	case name == "run_shell_command" || name == "ShellTool":
		r.command(at, "", prefix, rule)
	case isFile:
		rule.Operations = ops
		r.path(at, "**", rule)
	case name == "web_fetch":
		r.host(at, "*", rule)
	case strings.HasPrefix(name, "mcp_") || strings.Contains(name, "__"):
		r.geminiServerTool(at, strings.TrimPrefix(name, "mcp_"), rule)
	case rule.Verdict == bawn.Allow:
		r.left(at, "Bawn has no such tool to make rules for")
	default:
		r.tool(at, name, rule)
	}
}

// geminiServerTool reads server__tool, the older form, and server_tool, where
// the server's name ends at the first underscore.
func (r *reader) geminiServerTool(at Item, name string, rule bawn.Rule) {
	server, tool, ok := strings.Cut(name, "__")
	if !ok {
		server, tool, ok = strings.Cut(name, "_")
	}
	if !ok && name == "*" {
		server, tool, ok = "*", "*", true
	}
	if !ok {
		r.left(at, "it names no tool of a server")
		return
	}
	r.tool(at, "mcp__"+server+"__"+tool, rule)
}

// geminiSettings reads the tools that settings.json allows and excludes, in
// its present form and the one before. It may hold comments.
func (r *reader) geminiSettings(data []byte) error {
	n, err := r.parseObject(uncommented(data), "Gemini CLI's settings.json")
	if err != nil {
		return err
	}
	for _, m := range n.members {
		r.geminiSetting(m)
	}
	return nil
}

func (r *reader) geminiSetting(m member) {
	switch m.key {
	case "tools", "allowedTools", "excludeTools", "coreTools", "autoAccept", "sandbox":
		r.geminiToolSettings(m)
	case "general":
		mode := m.value.get("defaultApprovalMode")
		if mode != nil {
			r.choose(Item{Line: mode.line, Text: "defaultApprovalMode: " + mode.text()}, mode.value, geminiModes, noQuestions)
		}
	case "mcpServers":
		for _, server := range r.members(m) {
			r.geminiServer(server)
		}
	case "mcp", "policyPaths", "adminPolicyPaths", "hooks":
		r.left(m.item(), noEqual)
	}
}

var geminiModes = map[string]choice{"default": {key: "mode", value: "normal"}, "plan": {key: "mode", value: "plan"}}

// geminiToolSettings reads the permitted tools, in the present form, below
// "tools", and in the former one. Other keys are about how tools work.
func (r *reader) geminiToolSettings(m member) {
	switch m.key {
	case "tools":
		for _, t := range r.members(m) {
			if t.key != "tools" {
				r.geminiToolSettings(t)
			}
		}
	case "allowed", "allowedTools":
		r.geminiList(m, bawn.Allow)
	case "exclude", "excludeTools":
		r.geminiList(m, bawn.Deny)
	case "core", "coreTools", "autoAccept", "sandbox", "sandboxAllowedPaths", "sandboxNetworkAccess", "discoveryCommand", "callCommand":
		if !m.value.is(false) {
			r.left(m.item(), noEqual)
		}
	}
}

// geminiList reads tools, of which the shell may have words behind it.
func (r *reader) geminiList(m member, v bawn.Verdict) {
	for _, it := range r.strings(m.key, m.value) {
		at := Item{Line: it.Line, Text: m.key + " " + it.Text}
		tool, what, found := strings.Cut(it.Text, "(")
		what, closed := strings.CutSuffix(what, ")")
		switch {
		case !found:
			r.geminiTool(at, tool, bawn.Rule{Verdict: v})
		case closed && (tool == "run_shell_command" || tool == "ShellTool"):
			r.command(at, strings.TrimSuffix(what, ":*"), prefix, bawn.Rule{Verdict: v})
		default:
			r.left(at, "it is no tool; want NAME or run_shell_command(WORDS)")
		}
	}
}

// geminiServer reads the tools that a server must not offer.
func (r *reader) geminiServer(server member) {
	for _, m := range r.members(server) {
		at := Item{Line: m.value.line, Text: fmt.Sprintf("mcpServers.%s.%s: %s", server.key, m.key, m.value.text())}
		switch {
		case m.key == "excludeTools":
			for _, it := range r.strings(m.key, m.value) {
				r.tool(Item{Line: it.Line, Text: at.Text + " " + it.Text}, "mcp__"+server.key+"__"+it.Text, bawn.Rule{Verdict: bawn.Deny})
			}
		case m.key == "includeTools":
			r.left(at, "a list of the only tools can't be carried over")
		case m.key == "trust" && !m.value.is(false):
			r.left(at, "a server is not trusted as a whole; allow its tools by name")
		}
	}
}
