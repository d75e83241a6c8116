package gitstore

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// maxFollows bounds the branches of one unit whose settings are published.
const maxFollows = 256

// A following is what a branch follows, by its settings: remote and merge, and rebase where
// that is said. The zero following follows nothing.
type following struct {
	Remote string `json:"remote"`
	Merge  string `json:"merge"`
	Rebase string `json:"rebase,omitempty"`
}

// follow publishes what the guest's branches follow, where the host has such a branch
// and its configuration says nothing of it yet: what "git checkout -b x origin/main"
// and "git push -u" set. What is published so goes again with the branch.
//
// A guest can't have git execute anything by it. The remote is one that the host's
// configuration has by that name, or ".": any other word git takes for an address, and
// some addresses for a command. A branch that the session has not made follows its own name
// alone, as "push -u" has it: the human's "git push" could reach another one otherwise.
func (s *Store) follow(ctx context.Context, u *unit, final bool) {
	now := stampOf(u.private, "config")
	if u.Tree || !final && now == u.followed {
		return
	}
	guests, err := configOf(u.private)
	host, err2 := configOf(u.host)
	tree, err3 := readRefs(u.host, u.Size)
	if err != nil || err2 != nil || err3 != nil {
		return // a guest's mistakes are its own, and without a configuration nothing is followed
	}
	u.followed = now
	asked, has := followings(guests), followings(host)
	s.forgetFollowed(ctx, u, tree, has)
	remotes := remotesOf(host)
	for name, f := range asked {
		_, published := tree.refs["refs/heads/"+name]
		_, made := u.Made["refs/heads/"+name]
		switch {
		case has[name] != following{} || len(u.Follows) >= maxFollows || !f.harmless(name, remotes) || !made && f.Merge != "refs/heads/"+name:
		case !published:
			u.followed = stamp{} // it may be soon
		default:
			if err := s.sets(ctx, u, name, f); err != nil && final {
				s.tell(u, &s.report.Problems, fmt.Sprintf("what branch %q follows could not be written: %v", name, err))
			} else if err != nil {
				u.followed = stamp{} // another git may have the configuration
			}
		}
	}
}

// forgetFollowed takes back what was published of branches that are gone.
func (s *Store) forgetFollowed(ctx context.Context, u *unit, tree *refTree, has map[string]following) {
	for name, f := range u.Follows {
		if _, there := tree.refs["refs/heads/"+name]; !there {
			if has[name] == f {
				_ = s.setting(ctx, u, "--remove-section", "branch."+name) // it is without effect
			}
			delete(u.Follows, name)
		}
	}
}

// sets writes what a branch follows into the host's configuration.
func (s *Store) sets(ctx context.Context, u *unit, name string, f following) error {
	for _, kv := range [][2]string{{"remote", f.Remote}, {"merge", f.Merge}, {"rebase", f.Rebase}} {
		if kv[1] == "" {
			continue
		}
		if err := s.setting(ctx, u, "branch."+name+"."+kv[0], kv[1]); err != nil {
			return err
		}
	}
	if u.Follows == nil {
		u.Follows = map[string]following{}
	}
	u.Follows[name] = f
	return nil
}

// setting changes the host's configuration by git, which takes its lock.
func (s *Store) setting(ctx context.Context, u *unit, args ...string) error {
	_, err := s.git.run(ctx, u, call{args: append([]string{"config", "--file", filepath.Join(u.Host, "config")}, args...)})
	return err
}

// track publishes the ref of a remote that the session's first push of a branch has set.
// Without it the host's git says that the upstream is gone. Nothing that the human has
// is moved: the session has made the branch, has it follow that ref, which the host does
// not have or has from this session, and the host's branch contains what the ref is set to.
func (s *Store) track(ctx context.Context, u *unit) {
	for name, f := range u.Follows {
		made, ref := u.Made["refs/heads/"+name], "refs/remotes/"+f.Remote+"/"+strings.TrimPrefix(f.Merge, "refs/heads/")
		id, was := valueOf(u.private, ref, &refTree{}, u.Size), u.Tracks[ref]
		if f.Remote == "." || made == "" || id == "" || id == was || u.told["track "+ref+was+id] || !u.fetches(f.Remote) {
			continue
		}
		if _, err := s.git.run(ctx, u, call{args: []string{"merge-base", "--is-ancestor", id, made}}); err != nil {
			continue // it may be soon
		}
		_, err := s.git.run(ctx, u, call{args: []string{"update-ref", "-m", "bawn " + short(s.Session) + ": push", ref, id, cmp.Or(was, strings.Repeat("0", u.Size))}})
		if err != nil {
			u.told["track "+ref+was+id] = true // the human has it by now
			continue
		}
		if u.Tracks == nil {
			u.Tracks = refs{}
		}
		u.Tracks[ref] = id
	}
}

// fetches reports whether the host's git keeps a remote's branches where it does by itself.
func (u *unit) fetches(remote string) bool {
	list, _ := configOf(u.host) // without it, it does not
	return slices.ContainsFunc(list, func(c setting) bool {
		return c.name() == "remote.*.fetch" && c.sub == remote && c.value == "+refs/heads/*:refs/remotes/"+remote+"/*"
	})
}

// harmless reports whether a branch may follow that, beside remotes that the host has.
func (f following) harmless(name string, remotes map[string]bool) bool {
	branch := strings.HasPrefix(f.Merge, "refs/heads/") && nameOK(f.Merge) == nil
	return branch && nameOK("refs/heads/"+name) == nil && remotes[f.Remote] && (f.Rebase == "" || f.Rebase == "true" || f.Rebase == "false")
}

// followings are what branches follow by a configuration, as far as that says it in one
// way. A branch with another setting of where it pulls from or pushes to has one that
// nothing is equal to.
func followings(list []setting) map[string]following {
	all := map[string]following{}
	for _, c := range list {
		if c.section != "branch" || c.sub == "" {
			continue
		}
		f := all[c.sub]
		switch c.key {
		case "remote":
			f.Remote = c.value
		case "merge":
			f.Merge = strings.TrimPrefix(f.Merge+"\n"+c.value, "\n") // two are no branch's name
		case "rebase":
			f.Rebase = cmp.Or(c.value, "true")
		case "pushremote":
			f.Merge += "\n"
		}
		all[c.sub] = f
	}
	return all
}

// remotesOf are the names that a configuration has for other repositories, and ".", which
// is this one.
func remotesOf(list []setting) map[string]bool {
	names := map[string]bool{".": true}
	for _, c := range list {
		if c.name() == "remote.*.url" && c.value != "" && nameOK("refs/heads/"+c.sub) == nil {
			names[c.sub] = true
		}
	}
	return names
}

// configOf reads the configuration of a git directory.
func configOf(root *os.Root) ([]setting, error) {
	text, err := readFile(root, "config", maxConfig)
	if err != nil {
		return nil, err
	}
	return parseConfig(string(text))
}

// leftSparse reports whether the guest has left a sparse checkout on that the host does
// not have: then the host's git misses files.
func (u *unit) leftSparse() bool {
	if u.Sparse {
		return false
	}
	on := false
	for _, name := range []string{"config", path.Join(u.Rel, "config.worktree")} {
		text, err := readFile(u.private, name, maxConfig)
		if err != nil {
			continue
		}
		list, _ := parseConfig(string(text)) // as far as it can be read
		for _, c := range list {
			if c.section == "core" && c.key == "sparsecheckout" {
				on = c.bare || truth(c.value)
			}
		}
	}
	return on
}

// saysSparse is what the human is told then.
const saysSparse = "the session has left a sparse checkout on, so that files are missing: \"git ls-files -z --deleted | xargs -0 git restore --\" brings them back"
