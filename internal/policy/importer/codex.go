package importer

import (
	"bytes"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
)

// codex reads one of Codex's two sorts of files: rules (execpolicy), which look
// like calls of functions, and config.toml.
func (r *reader) codex(data []byte) error {
	if path.Ext(r.File) == ".rules" || path.Ext(r.File) != ".toml" && bytes.Contains(data, []byte("prefix_rule")) {
		return r.codexRules(data)
	}
	doc, err := r.parseTOML(data)
	if err != nil {
		return err
	}
	r.codexConfig(data, "", doc)
	return nil
}

// codexConfig reads the keys that limit a session; of the others only those are
// reported that somebody may take for a permission.
func (r *reader) codexConfig(data []byte, table string, doc map[string]any) {
	for _, key := range sortedKeys(doc) {
		v := doc[key]
		at := Item{Line: keyLine(data, key), Text: table + key + " = " + shown(v)}
		switch key {
		case "approval_policy":
			r.choose(at, v, codexApprovals, noEqual)
		case "sandbox_mode":
			r.choose(at, v, codexSandboxes, "it is no mode of a sandbox that is known here")
		case "sandbox_workspace_write":
			r.codexWorkspace(data, at, v)
		case "mcp_servers", "permissions", "default_permissions", "shell_environment_policy", "network", "hooks", "projects",
			"approvals_reviewer", "apps", "experimental_network", "rules":
			r.left(at, noEqual)
		case "profiles":
			r.left(at, "import the keys of one profile as a file of their own")
		}
	}
}

var codexApprovals = map[string]choice{
	"untrusted":  {key: "mode", value: "safe"},
	"on-request": {key: "mode", value: "normal"},
	"on-failure": {why: "Bawn asks before an action and not after it has failed"},
	"never":      {why: "nothing here turns questions off; autonomy = \"limited\" turns them into denials"},
}

var codexSandboxes = map[string]choice{
	"read-only":          {key: "isolation.policy_profile", value: "readonly"},
	"workspace-write":    {key: "isolation.policy_profile", value: "default"},
	"danger-full-access": {why: noIsolation},
}

const noIsolation = "a session without isolation is chosen in Bawn's configuration (provider = \"host\"), not imported"

// codexWorkspace reads [sandbox_workspace_write]. A session's /tmp is its own
// here, so that the keys about temporary directories say nothing.
func (r *reader) codexWorkspace(data []byte, at Item, v any) {
	table, ok := v.(map[string]any)
	if !ok {
		r.left(at, "it is no table")
		return
	}
	for _, key := range sortedKeys(table) {
		at := Item{Line: keyLine(data, key), Text: key + " = " + shown(table[key])}
		switch key {
		case "writable_roots":
			r.codexRoots(at, table[key])
		case "network_access":
			r.choose(at, truth(table[key]), codexNetworks, "it is neither true nor false")
		case "exclude_tmpdir_env_var", "exclude_slash_tmp":
		default:
			r.left(at, noEqual)
		}
	}
}

// truth is "true" or "false", or "" for anything else.
func truth(v any) string {
	b, ok := v.(bool)
	if !ok {
		return ""
	}
	return strconv.FormatBool(b)
}

var codexNetworks = map[string]choice{
	"true":  {key: "isolation.network", value: "full"},
	"false": {key: "isolation.network", value: "none"},
}

func (r *reader) codexRoots(at Item, v any) {
	list, ok := texts(v)
	if !ok {
		r.left(at, "it is no list of strings")
		return
	}
	n := &node{line: at.Line, kind: '['}
	for _, dir := range list {
		n.items = append(n.items, &node{line: at.Line, value: dir})
	}
	r.directories("writable_roots", n)
}

// codexRules reads the rules of execpolicy: the strictest that matches wins
// there.
func (r *reader) codexRules(data []byte) error {
	calls, err := r.parseCalls(data)
	if err != nil {
		return err
	}
	for _, c := range calls {
		at := Item{Line: c.line, Text: c.text}
		if c.name != "prefix_rule" {
			r.left(at, "only prefix_rule(…) can be carried over")
			continue
		}
		r.prefixRule(at, c)
	}
	return nil
}

var codexDecisions = map[string]bawn.Verdict{"allow": bawn.Allow, "prompt": bawn.Ask, "forbidden": bawn.Deny}

func (r *reader) prefixRule(at Item, c call) {
	rule := bawn.Rule{Verdict: bawn.Allow}
	for _, a := range c.args {
		if !a.decides(&rule) {
			r.left(at, "the argument %q is not one that is known here", a.name)
			return
		}
	}
	pattern, ok := c.pattern()
	if !ok {
		r.left(at, "its pattern is no list of words and of lists of words")
		return
	}
	r.prefixWords(at, c, rule, pattern)
}

// decides applies an argument to a rule, and reports whether the argument is
// known.
func (a argument) decides(rule *bawn.Rule) (ok bool) {
	switch a.name {
	case "pattern", "match", "not_match":
		return a.value.list
	case "decision":
		rule.Verdict, ok = codexDecisions[a.value.text]
		return ok
	case "justification":
		rule.Reason = a.value.text
		return !a.value.list
	}
	return false
}

// prefixWords adds the rule, once for each of the alternatives of its first
// word, with those of its examples that hold for the rule here.
func (r *reader) prefixWords(at Item, c call, rule bawn.Rule, pattern [][]string) {
	for _, line := range product(pattern) {
		one := rule
		for _, a := range c.args {
			switch a.name {
			case "match":
				one.Match = r.examples(a.value, line, true)
			case "not_match":
				if rule.Verdict == bawn.Allow {
					one.NotMatch = r.examples(a.value, line, false)
				}
			}
		}
		r.command(at, strings.Join(line, " "), prefix, one)
	}
}

// examples are lines of words that a shell would not change; of those that
// must match, those that begin with the words of this rule.
func (r *reader) examples(v value, line []string, match bool) (out []string) {
	for _, it := range v.items {
		words := it.words()
		ours := len(words) >= len(line) && slices.Equal(words[:len(line)], line)
		if len(words) > 0 && allPlain(words) && (ours || !match) {
			out = append(out, strings.Join(words, " "))
		}
	}
	return out
}

// words are those of a line, or of a list of them.
func (v value) words() []string {
	if !v.list {
		return strings.Fields(v.text)
	}
	var out []string
	for _, w := range v.items {
		out = append(out, w.text)
	}
	return out
}

func allPlain(words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !plainWord(w) })
}

// maxLines bounds how many lines the alternatives of one rule make.
const maxLines = 256

// product writes every line that a pattern with alternatives stands for.
func product(pattern [][]string) [][]string {
	lines := [][]string{nil}
	for _, alternatives := range pattern {
		var next [][]string
		for _, l := range lines {
			for _, w := range alternatives {
				next = append(next, append(l[:len(l):len(l)], w))
			}
		}
		lines = next
	}
	return lines
}
