package launch

import (
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/gitstore"
	"github.com/bawn-dev/bawn/internal/shell"
)

// Opens returns the connections that a yes to a command opens: those that its own
// words name. For a push it is the address of the remote, from the human's
// repository and not as a guest may have changed it, with the named refs.
func Opens(workspace string) func(bawn.Action) []bawn.Action {
	return func(a bawn.Action) (list []bawn.Action) {
		for _, c := range commandsOf(a) {
			words, ok := known(c)
			if !ok || c.Loop {
				continue
			}
			remote, refs := pushed(words)
			if url := remoteURL(workspace, remote); url != "" {
				list = append(list, pushes(url, refs)...)
			}
		}
		return list
	}
}

// commandsOf are the commands that a yes to a line is for; none where a part of it can't
// be read.
func commandsOf(a bawn.Action) []shell.Command {
	var line shell.Line
	if c := (shell.Context{Dir: a.Dir}); len(a.Args) > 0 {
		line = shell.ReadArgs(a.Args, c)
	} else {
		line = shell.Read(a.Resource, c)
	}
	if len(line.Opaque) > 0 {
		return nil
	}
	return line.Commands
}

// programsOf are the programs that a line names, as they are judged when they start
// (ruleOf): each once, where its words and its directory are known.
func programsOf(a bawn.Action) (list []bawn.Action) {
	for _, c := range commandsOf(a) {
		words, ok := known(c)
		if !ok || c.Loop || len(words) == 0 || len(c.Dirs) != 1 {
			continue
		}
		argv := append([]string{path.Base(words[0])}, words[1:]...)
		list = append(list, bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Args: argv, Dir: c.Dirs[0]})
	}
	return list
}

// known are a command's words, if all of them are known as they stand.
func known(c shell.Command) (words []string, ok bool) {
	for _, w := range c.Words {
		if !w.Literal() {
			return nil, false
		}
		words = append(words, w.Text)
	}
	return words, true
}

// quietFlags are flags of a push that do not change its effect outside.
var quietFlags = []string{"-u", "--set-upstream", "-q", "--quiet", "-v", "--verbose", "--progress", "--no-progress"}

// pushed reads "git push REMOTE REF...", without flags that change the pushed
// refs.
func pushed(words []string) (remote string, refs []string) {
	if len(words) < 4 || words[0] != "git" || words[1] != "push" {
		return "", nil
	}
	var rest []string
	for _, w := range words[2:] {
		switch {
		case slices.Contains(quietFlags, w):
		case w == "" || w[0] == '-' || w[0] == '+':
			return "", nil
		default:
			rest = append(rest, w)
		}
	}
	if len(rest) < 2 {
		return "", nil
	}
	for _, spec := range rest[1:] {
		from, to, both := strings.Cut(spec, ":")
		if to == "" {
			to = from
		}
		if both && from == "" || to == "HEAD" || strings.ContainsAny(to, "*@^~:") {
			return "", nil
		}
		refs = append(refs, to)
	}
	return rest[0], refs
}

// remoteURL is where a push goes, as the proxy names it; "" where that is not sure.
// For SSH it is the short form, git@HOST:PATH.
func remoteURL(workspace, remote string) string {
	url := remote
	if !strings.Contains(remote, ":") && remote != "" {
		url = gitstore.RemoteURL(workspace, remote)
	}
	if at, path, ok := strings.Cut(url, ":"); ok && strings.HasPrefix(at, "git@") && path != "" && !strings.ContainsAny(path[:1], "/~") {
		return "ssh://" + strings.TrimPrefix(at, "git@") + "/" + strings.TrimSuffix(path, ".git") + ".git"
	}
	if !strings.HasPrefix(url, "https://") || strings.ContainsAny(url, "@?#") {
		return ""
	}
	return strings.TrimSuffix(strings.TrimSuffix(url, "/"), ".git") + ".git" // as the proxy names a repository
}

// pushes are the connections of a push; the server's side decides the meaning of a
// short name. At a host that is not looked into, it is the host that is asked
// about.
func pushes(url string, refs []string) (list []bawn.Action) {
	for _, prefix := range []string{"refs/heads/", "refs/tags/"} {
		args := []string{"push"}
		for _, ref := range refs {
			if !strings.HasPrefix(ref, "refs/") {
				ref = prefix + ref
			}
			args = append(args, ref)
		}
		if len(list) == 0 || !slices.Equal(list[0].Args, args) {
			list = append(list, bawn.Action{Kind: bawn.Network, Operation: bawn.Connect, Resource: url, Args: args})
		}
	}
	return append(list, bawn.Action{Kind: bawn.Network, Operation: bawn.Connect, Resource: hostOf(url)})
}

// hostOf is the host and port of what remoteURL has returned.
func hostOf(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	host, _, _ := strings.Cut(rest, "/")
	switch {
	case strings.Contains(host, ":"):
		return host
	case scheme == "ssh":
		return host + ":22"
	}
	return host + ":443"
}
