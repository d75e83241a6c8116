package importer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
)

// path adds the rules for a pattern of paths, as in gitignore(5): a name
// without a slash matches at any depth, and a directory matches everything in
// it.
func (r *reader) path(at Item, text string, rule bawn.Rule) {
	rule.Kind = bawn.Filesystem
	patterns, err := r.pathPatterns(text, rule.Verdict == bawn.Allow)
	if err != nil {
		r.left(at, "%v", err)
		return
	}
	for _, p := range patterns {
		rule.Pattern = p
		rule.Match = []string{sample(p)}
		r.add(at, rule)
	}
}

// pathPatterns brings a pattern into our form: from / or ~ or the workspace.
func (r *reader) pathPatterns(text string, allow bool) ([]string, error) {
	switch {
	case strings.ContainsAny(text, `[]{}!\`) || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return nil, fmt.Errorf("only the wildcards *, ** and ? can be carried over")
	case slices.Contains(strings.Split(text, "/"), ".."):
		return nil, fmt.Errorf("it leaves the directory that it starts from; write it from // or ~/")
	case strings.HasPrefix(text, "//"):
		return r.rooted("/"+strings.TrimLeft(text, "/"), allow)
	case strings.HasPrefix(text, "~/"):
		return r.rooted(text, allow)
	case strings.HasPrefix(text, "~"):
		return nil, fmt.Errorf("it names a whole home directory; name directories in it")
	case strings.HasPrefix(text, "/") && r.user:
		return nil, fmt.Errorf("in a user's file it is not clear where a path from / starts; write it from // or ~/")
	}
	if rest, ok := strings.CutPrefix(text, "./"); ok {
		text = "/" + rest
	}
	return inWorkspace(text, allow), nil
}

// rooted checks a pattern from / or ~/. A rule that allows must name a
// directory.
func (r *reader) rooted(p string, allow bool) ([]string, error) {
	first, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(p, "~"), "/"), "/")
	if allow && (first == "" || strings.Contains(first, "*")) {
		return nil, fmt.Errorf("it allows a whole home directory or file system; name a directory in it")
	}
	return []string{deep(p, allow)}, nil
}

// inWorkspace makes the patterns for paths in the workspace. A pattern that
// starts with "**" would hold everywhere: only one that denies may.
func inWorkspace(p string, allow bool) []string {
	anchored := strings.HasPrefix(p, "/") || strings.Contains(strings.TrimSuffix(p, "/"), "/")
	p = strings.TrimPrefix(p, "/")
	switch rest, any := strings.CutPrefix(p, "**/"); {
	case strings.Trim(p, "*/.") == "" && !allow:
		return []string{"**"}
	case strings.Trim(p, "*/.") == "":
		return []string{"*/**"}
	case any:
		p, anchored = rest, false
	}
	switch {
	case anchored:
		return []string{deep(p, allow)}
	case allow:
		return []string{deep(p, allow), "*/**/" + deep(p, allow)}
	}
	return []string{"**/" + deep(p, allow)}
}

// deep makes a pattern hold for everything below it as well. A rule that allows
// and looks like a file stays unchanged.
func deep(p string, allow bool) string {
	dir := strings.HasSuffix(p, "/")
	p = strings.TrimRight(p, "/")
	last := p[strings.LastIndexByte(p, '/')+1:]
	switch {
	case last == "**" || allow && !dir && strings.ContainsAny(last, ".*?"):
		return p
	case p == "":
		return "/**"
	}
	return p + "/**"
}

// sample is a path, host or name that a pattern matches.
func sample(p string) string {
	if dir, ok := strings.CutSuffix(p, "/**"); ok && strings.Trim(dir, "*") != "" {
		p = dir
	}
	p = strings.ReplaceAll(p, "**", "x")
	return strings.NewReplacer("*", "x", "?", "x").Replace(p)
}

// host adds the rule of a host.
func (r *reader) host(at Item, host string, rule bawn.Rule) {
	rule.Kind, rule.Operations, rule.Pattern = bawn.Network, []bawn.Operation{bawn.Connect}, strings.ToLower(host)
	if strings.Trim(host, "*.") == "" {
		if rule.Pattern = "*"; rule.Verdict == bawn.Allow {
			r.left(at, "it allows every host; name the hosts")
			return
		}
		rule.Match = []string{"example.com"}
	} else {
		rule.Match = []string{sample(rule.Pattern)}
	}
	r.add(at, rule)
}

// tool adds the rule of a tool. A rule that allows must name the server.
func (r *reader) tool(at Item, name string, rule bawn.Rule) {
	rule.Kind, rule.Operations, rule.Pattern = bawn.Tool, []bawn.Operation{bawn.Call}, name
	server, _, _ := strings.Cut(strings.TrimPrefix(name, "mcp__"), "__")
	if rule.Verdict == bawn.Allow && (server == "" || strings.Contains(server, "*")) {
		r.left(at, "it allows the tools of every server; name the server")
		return
	}
	rule.Match = []string{sample(name)}
	r.add(at, rule)
}
