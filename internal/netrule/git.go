package netrule

import (
	"fmt"
	"strings"
)

// A Git is one entry of isolation.git: what may be done with repositories of a
// host. The zero Git permits nothing.
type Git struct {
	host Host
	push bool
	repo glob
	refs glob // of a push
}

// ParseGit reads HOST fetch [REPO] or HOST push REPO REF: a host as ParseHost
// reads it, but with the ports 22 and 443 where none are stated, a pattern of
// repositories ("team/*"; none means all) and, for a push, one of refs
// ("refs/heads/agent/*"). Who may push may fetch.
func ParseGit(s string) (Git, error) {
	f, err := fields(s)
	if err != nil {
		return Git{}, err
	}
	g := Git{repo: glob(across)}
	switch {
	case len(f) == 2 && f[1] == "fetch":
	case len(f) == 3 && f[1] == "fetch":
		g.repo, err = repoGlob(f[2])
	case len(f) == 4 && f[1] == "push":
		g.push = true
		if g.repo, err = repoGlob(f[2]); err == nil {
			g.refs, err = refGlob(f[3])
		}
	default:
		return Git{}, fmt.Errorf("git rule %q: want \"HOST fetch [REPOSITORY]\" or \"HOST push REPOSITORY REF\", for example \"github.com push team/app refs/heads/agent/*\"", clip(s))
	}
	if err == nil {
		g.host, err = parseHost(f[0], gitPorts)
	}
	if err != nil {
		return Git{}, fmt.Errorf("git rule %q: %w", clip(s), err)
	}
	return g, nil
}

func repoGlob(s string) (glob, error) {
	if name, ok := Repository(s); !ok || name != s {
		return "", fmt.Errorf("repository %q: want it as in its address, without \"/\" at the ends and without \".git\": \"team/app\"", clip(s))
	}
	return parseGlob(s)
}

func refGlob(s string) (glob, error) {
	switch {
	case s == "*" || s == "**":
		return "", fmt.Errorf("ref %q: want one that begins with \"refs/\"; all of them are \"refs/**\"", s)
	case !strings.HasPrefix(s, "refs/") || s == "refs/":
		return "", fmt.Errorf("ref %q: want one that begins with \"refs/\", such as %q", clip(s), "refs/heads/"+clip(strings.TrimPrefix(s, "heads/")))
	}
	return parseGlob(s)
}

// Repository brings the path of a repository into the form in which entries
// name it: "/team/app.git/" is "team/app". It reports false for what no entry
// can name: an empty path, one with empty segments, ".", "..", escapes,
// backslashes, a tilde in front, or characters that are not plain.
func Repository(path string) (string, bool) {
	name := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"), ".git")
	if name == "" || name[0] == '~' || name[len(name)-1] == '/' || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '\\' || c == '%' }) {
		return "", false
	}
	for segment := range strings.SplitSeq(name, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return "", false
		}
	}
	return name, true
}

// Fetches reports whether the entry permits to fetch a repository, named in
// the form of Repository.
func (g Git) Fetches(name string, port uint16, repo string) bool {
	return g.host.Match(name, port) && g.repo.match(repo)
}

// Pushes reports whether the entry permits to create or move one ref, written
// in full, of a repository. Deleting and forcing are no push: no entry permits
// them.
func (g Git) Pushes(name string, port uint16, repo, ref string) bool {
	return g.push && g.Fetches(name, port, repo) && g.refs.match(ref)
}

// Push reports whether the entry permits to push at all.
func (g Git) Push() bool { return g.push }

// Host returns the host that the entry opens.
func (g Git) Host() Host { return g.host }

// Covers reports whether g permits all that o permits.
func (g Git) Covers(o Git) bool {
	return g.host.Covers(o.host) && g.repo.covers(o.repo) && (!o.push || g.push && g.refs.covers(o.refs))
}

// On returns the entry for another host.
func (g Git) On(host Host) Git {
	g.host = host
	return g
}

// Meet returns an entry for g's host that permits what both permit. It reports
// false where there is none, or where patterns overlap in a way that no one
// pattern says.
func (g Git) Meet(o Git) (Git, bool) {
	var ok, refs bool
	if g.repo, ok = g.repo.meet(o.repo); !ok {
		return Git{}, false
	}
	if g.refs, refs = g.refs.meet(o.refs); !g.push || !o.push || !refs {
		g.push, g.refs = false, ""
	}
	return g, true
}

// String writes the entry in the form that ParseGit reads.
func (g Git) String() string {
	host := g.host.text(gitPorts)
	switch {
	case g.push:
		return host + " push " + g.repo.String() + " " + g.refs.String()
	case g.repo == glob(across):
		return host + " fetch"
	}
	return host + " fetch " + g.repo.String()
}

// Repo returns the pattern of repositories.
func (g Git) Repo() string { return g.repo.String() }

// Refs returns the pattern of refs that may be pushed, "" where none may.
func (g Git) Refs() string { return g.refs.String() }
