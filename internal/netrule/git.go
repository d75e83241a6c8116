package netrule

import (
	"cmp"
	"fmt"
	"strings"
)

// A Git is one entry of isolation.git: the permitted operations on repositories
// of a host. The zero Git permits nothing.
type Git struct {
	host   Host
	user   string // over SSH; "" is "git"
	push   bool
	rooted bool // repo begins at the server's root, which only SSH can say
	repo   glob
	refs   glob // of a push
}

// ParseGit reads HOST fetch [REPO] or HOST push REPO REF. The host is as for
// ParseHost, but with the ports 22 and 443 by default. REPO is a pattern of
// repositories ("team/*"; none means all), REF one of refs
// ("refs/heads/agent/*"). Who may push may fetch. Over SSH an entry covers the
// user git, or the user before the host ("me@host"), and paths below that user's
// home. Paths from the root ("/srv/git/*") exclude HTTPS; without a repository
// an entry covers both.
func ParseGit(s string) (Git, error) {
	f, err := fields(s)
	if err != nil {
		return Git{}, err
	}
	g := Git{repo: glob(across)}
	host := ""
	if len(f) > 0 {
		if g.user, host, err = sshUser(f[0]); err != nil {
			return Git{}, fmt.Errorf("git rule %q: %w", clip(s), err)
		}
	}
	switch {
	case len(f) == 2 && f[1] == "fetch":
	case len(f) == 3 && f[1] == "fetch":
		g.repo, g.rooted, err = repoGlob(f[2])
	case len(f) == 4 && f[1] == "push":
		g.push = true
		if g.repo, g.rooted, err = repoGlob(f[2]); err == nil {
			g.refs, err = refGlob(f[3])
		}
	default:
		return Git{}, fmt.Errorf("git rule %q: want \"HOST fetch [REPOSITORY]\" or \"HOST push REPOSITORY REF\", for example \"github.com push team/app refs/heads/agent/*\"", clip(s))
	}
	if err == nil {
		g.host, err = parseHost(host, gitPorts)
	}
	if err != nil {
		return Git{}, fmt.Errorf("git rule %q: %w", clip(s), err)
	}
	return g, nil
}

// sshUser takes the name of a user from the front of a host.
func sshUser(s string) (user, host string, err error) {
	user, host, found := strings.Cut(s, "@")
	if !found {
		return "", s, nil
	}
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
	}
	if user == "" || user[0] == '-' || len(user) > 64 || strings.ContainsFunc(user, func(c rune) bool { return !plain(c) }) {
		return "", "", fmt.Errorf("user %q: want letters, digits, \".\", \"_\" and \"-\" before the \"@\"", clip(user))
	}
	if user == "git" {
		user = ""
	}
	return user, host, nil
}

func repoGlob(s string) (g glob, rooted bool, err error) {
	path, rooted := strings.CutPrefix(s, "/")
	if name, ok := Repository(path); !ok || name != path {
		return "", false, fmt.Errorf("repository %q: want it as in its address, without \"/\" at the end and without \".git\": \"team/app\"", clip(s))
	}
	g, err = parseGlob(path)
	return g, rooted, err
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

// Fetches reports whether the entry permits to fetch a repository, named in the
// form of Repository. The caller has compared User and Rooted for SSH.
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

// User returns whose repositories they are over SSH.
func (g Git) User() string { return cmp.Or(g.user, "git") }

// Rooted reports whether the paths begin at the server's root, so that the
// entry is about SSH alone.
func (g Git) Rooted() bool { return g.rooted }

// Host returns the host that the entry opens.
func (g Git) Host() Host { return g.host }

// Covers reports whether g permits all that o permits.
func (g Git) Covers(o Git) bool {
	return g.host.Covers(o.host) && g.user == o.user && (g.rooted == o.rooted || g.all()) && g.repo.covers(o.repo) && (!o.push || g.push && g.refs.covers(o.refs))
}

// all reports whether the entry is about all repositories, from wherever their
// paths begin.
func (g Git) all() bool { return g.repo == glob(across) && !g.rooted }

// On returns the entry for another host.
func (g Git) On(host Host) Git {
	g.host = host
	return g
}

// Meet returns an entry for g's host that permits what both permit. It reports
// false if the entries permit nothing in common, or if no single pattern says what
// both permit.
func (g Git) Meet(o Git) (Git, bool) {
	if g.user != o.user || g.rooted != o.rooted && !g.all() && !o.all() {
		return Git{}, false
	}
	var ok, refs bool
	g.rooted = g.rooted || o.rooted
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
	host, repo := g.host.text(gitPorts), g.repo.String()
	if g.user != "" {
		host = g.user + "@" + host
	}
	if g.rooted {
		repo = "/" + repo
	}
	switch {
	case g.push:
		return host + " push " + repo + " " + g.refs.String()
	case g.all():
		return host + " fetch"
	}
	return host + " fetch " + repo
}

// Repo returns the pattern of repositories.
func (g Git) Repo() string { return g.repo.String() }

// Refs returns the pattern of refs that may be pushed, "" where none may.
func (g Git) Refs() string { return g.refs.String() }
