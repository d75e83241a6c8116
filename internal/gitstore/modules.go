package gitstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// A madeLink is a .git file that the guest has made in the workspace and that leads into
// the session's own git directory: that of a worktree or submodule which the guest has added.
type madeLink struct {
	made MadeRepository
	dir  string // its directory
	to   string // where it leads, below the private git directory
}

// madeLinks finds those of the session. What others lead to comes first.
func (s *Store) madeLinks() []madeLink {
	if s.Repo.Common == "" {
		return nil
	}
	var list []madeLink
	for _, m := range s.made() {
		dir := filepath.Dir(m.Path)
		target, err := linkTarget(s.guest.git(m))
		if err != nil {
			continue // a directory
		}
		to, err := filepath.Rel(s.Repo.Common, fromDir(dir, target))
		if err != nil || !filepath.IsLocal(to) {
			continue // of a repository that is kept
		}
		if fi, err := os.Lstat(m.Path); err == nil && fi.Mode().IsRegular() && fi.Size() == 0 {
			list = append(list, madeLink{m, dir, to})
		}
	}
	slices.SortStableFunc(list, func(a, b madeLink) int { return cmp.Compare(strings.Count(a.to, "/"), strings.Count(b.to, "/")) })
	return list
}

// addModules makes git directories on the host for submodules that the guest has added.
// The sync that follows publishes what was committed there, by the rules for every other
// repository: nothing of the guest's but the object format, the list of shallow
// commits and some remotes is taken over here. It returns what could not be done.
func (s *Store) addModules(ctx context.Context) (failed []string) {
	links := s.madeLinks()
	for _, l := range append(links, s.looseModules(ctx, links)...) {
		u := s.unitAt(l.to)
		if u == nil && s.isModule(l) {
			var err error
			if u, err = s.addModule(ctx, l); err != nil {
				failed = append(failed, fmt.Sprintf("the submodule %q could not be published: %v", cmp.Or(l.dir, l.to), err))
				continue
			}
			s.Units = append(s.Units, u)
		}
		if u != nil && u.Added {
			u.tags = s.ownTags(ctx, u)
		}
	}
	return failed
}

// unitAt is the unit whose private git directory is at a place below the session's.
func (s *Store) unitAt(private string) *unit {
	for _, u := range s.Units {
		if !u.Tree && u.Private == private {
			return u
		}
	}
	return nil
}

// isModule reports whether a link leads to a git directory and, where it is one, comes from
// a directory of the workspace that is what its path says.
func (s *Store) isModule(l madeLink) bool {
	if l.dir == "" {
		return s.isPrivateRepository(l.to)
	}
	if !inside(l.dir, s.Repo.Workspace) || l.dir == s.Repo.Workspace || strings.ContainsFunc(l.dir, unicode.IsControl) {
		return false
	}
	real, err := filepath.EvalSymlinks(l.dir)
	return err == nil && real == l.dir && s.isPrivateRepository(l.to)
}

// isPrivateRepository reports whether there is a git directory below the private one,
// without a symbolic link on the way.
func (s *Store) isPrivateRepository(at string) bool {
	top := s.Units[0].private
	if at == "." {
		return false
	}
	for _, name := range append(prefixes(at), path.Join(at, "objects"), path.Join(at, "refs")) {
		if fi, err := top.Lstat(name); err != nil || !fi.IsDir() {
			return false
		}
	}
	fi, err := top.Lstat(path.Join(at, "HEAD"))
	return err == nil && fi.Mode().IsRegular()
}

// prefixes are a path and all that lead to it, the shortest first.
func prefixes(p string) (list []string) {
	for i, r := range p {
		if r == '/' {
			list = append(list, p[:i])
		}
	}
	return append(list, p)
}

// addModule makes the git directory of one submodule.
func (s *Store) addModule(ctx context.Context, l madeLink) (_ *unit, err error) {
	if len(s.Units) > maxUnits {
		return nil, errTooMuch
	}
	u := &unit{Private: l.to, Rel: ".", WorkTree: l.dir, Added: true, Beside: refs{}, Made: refs{}, Base: refs{}, Start: refs{}, told: map[string]bool{}, n: len(s.Units)}
	if u.private, err = s.Units[0].private.OpenRoot(l.to); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			u.private.Close()
		}
	}()
	settings, err := configOf(u.private)
	if err != nil {
		return nil, err
	}
	common, err := os.OpenRoot(s.Repo.Common)
	if err != nil {
		return nil, err
	}
	defer common.Close()
	at, err := s.freePlace(common, l)
	if err != nil {
		return nil, err
	}
	if err := common.MkdirAll(path.Dir(at), 0o755); err != nil {
		return nil, err
	}
	if err := common.Mkdir(at, 0o755); err != nil {
		return nil, err
	}
	u.Host = filepath.Join(s.Repo.Common, at)
	if u.host, err = common.OpenRoot(at); err != nil {
		return nil, err
	}
	if err = s.initialise(ctx, u, settings, s.nearRemotes(settings)); err == nil && l.dir != "" {
		err = s.setting(ctx, u, "core.worktree", relative(u.Host, l.dir))
	}
	if err != nil {
		return nil, errors.Join(err, u.host.Close(), common.RemoveAll(at))
	}
	return u, nil
}

// freePlace is where the host gets the git directory that the guest has at a place: at the
// same, where that is the plain name of a submodule which the host does not have, and
// else under a name of Bawn's. Git finds it by the .git file in either; without one it
// is not to be found by a name that a submodule of the human's may have later.
func (s *Store) freePlace(common *os.Root, l madeLink) (string, error) {
	if l.dir != "" && isFree(common, l.to) {
		return l.to, nil
	}
	for n := range 2 * maxUnits {
		if at := fmt.Sprintf("modules/bawn-%s-%d", short(s.Session), n); isFree(common, at) {
			return at, nil
		}
	}
	return "", errTooMuch
}

// isFree reports whether a submodule's git directory can be made at a place: below
// modules/ of a git directory, in none that is there, and under names that no file system
// takes for others.
func isFree(common *os.Root, to string) bool {
	at, git := ".", true // whether at is a git directory
	parts := strings.Split(to, "/")
	for i, part := range parts {
		if git != (part == "modules") || !git && !moduleName(part) || git && i == len(parts)-1 {
			return false
		}
		list, err := readDir(common, at)
		if err != nil && !missing(err) {
			return false
		}
		for _, e := range list {
			if strings.EqualFold(e.Name(), part) && (e.Name() != part || !e.IsDir()) {
				return false
			}
		}
		at = path.Join(at, part)
		git = exists(common, path.Join(at, "HEAD")) || exists(common, path.Join(at, "objects"))
	}
	return !exists(common, at)
}

// moduleName accepts what a directory among submodules' may be called.
func moduleName(name string) bool {
	lower := strings.ToLower(name)
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("._+-", r)
	}
	return plainName(name) && !strings.ContainsFunc(lower, func(r rune) bool { return !plain(r) }) &&
		!strings.HasSuffix(lower, ".lock") && !strings.HasSuffix(lower, ".") && !slices.Contains(partsOfGit, lower)
}

// partsOfGit are names that lie in git directories.
var partsOfGit = []string{"head", "objects", "refs", "commondir", "gitdir", "hooks", "config", "config.worktree", "info", "index", "packed-refs", "shallow", "logs", "modules", "worktrees"}

// nearRemotes leaves, of a submodule's settings, the remotes on machines from which the
// repository itself comes. The human's "git fetch" goes to those of submodules too, and
// must not go where the guest says.
func (s *Store) nearRemotes(list []setting) []setting {
	known := map[string]bool{"": true}
	host, _ := configOf(s.Units[0].host) // without it, nothing is near
	for _, c := range host {
		if c.name() == "remote.*.url" {
			known[machineOf(c.value)] = true
		}
	}
	delete(known, "")
	return slices.DeleteFunc(slices.Clone(list), func(c setting) bool { return c.name() == "remote.*.url" && !known[machineOf(c.value)] })
}

// machineOf is the machine of an address that git reaches over HTTPS or SSH, or "".
func machineOf(address string) string {
	plain, ok := plainURL(address)
	if !ok || localURL(plain) {
		return ""
	}
	if !strings.Contains(plain, "://") {
		where, _, _ := strings.Cut(plain, ":")
		return strings.ToLower(where[strings.LastIndexByte(where, '@')+1:])
	}
	u, err := url.Parse(plain)
	if err != nil || u.Scheme != "https" && u.Scheme != "ssh" {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// maxOwnTags bounds the tags of a submodule that are published.
const maxOwnTags = 256

// ownTags are the tags of a submodule on commits that no branch of a remote has. All
// others came with the clone, by the thousand in some, and are fetched again.
func (s *Store) ownTags(ctx context.Context, u *unit) map[string]bool {
	commits, tags := &bounded{limit: maxPacked}, &bounded{limit: maxPacked}
	err := s.read(ctx, u, nil, commits, "rev-list", "--tags", "--not", "--remotes")
	err2 := s.read(ctx, u, nil, tags, "for-each-ref", "--format=%(refname) %(objectname) %(*objectname)", "refs/tags")
	own := map[string]bool{}
	if errors.Join(err, err2) != nil {
		return own
	}
	fresh := map[string]bool{}
	for id := range strings.FieldsSeq(commits.String()) {
		fresh[id] = true
	}
	for line := range strings.Lines(tags.String()) {
		f := strings.Fields(line)
		if len(f) > 1 && fresh[f[len(f)-1]] && len(own) < maxOwnTags {
			own[f[0]] = true
		}
	}
	return own
}

// lookPrivate reads the guest's side: of a submodule that the guest has added, without
// the tags that came with the clone.
func (u *unit) lookPrivate() (*side, error) {
	sd, err := look(u.private, u.Rel, u.Size)
	if err != nil || !u.Added || u.Tree {
		return sd, err
	}
	for name := range sd.tree.refs {
		if strings.HasPrefix(name, "refs/tags/") && !u.tags[name] {
			delete(sd.tree.refs, name)
		}
	}
	return sd, nil
}

// endLinks makes the .git files of submodules and worktrees lead to what the host has
// of them, and removes the others: what these lead to ends with the session, and git on
// the host refuses a repository with an empty one in a submodule.
func (s *Store) endLinks(ctx context.Context) error {
	var errs []error
	for _, l := range s.madeLinks() {
		if u := s.treeAt(l.to); u != nil {
			done, err := s.endTree(u, l)
			if errs = append(errs, err); done {
				continue
			}
		} else if u := s.unitAt(l.to); u != nil && u.Added && !u.hasCommits() {
			errs = append(errs, os.RemoveAll(u.Host)) // made for it
		} else if u != nil && u.worksIn(l.dir) {
			errs = append(errs, s.connect(ctx, u, l))
			continue
		}
		errs = append(errs, os.Remove(l.made.Path), s.guest.drop(l.made))
		kind, but := "submodule", "\"git submodule update --init\" fetches it"
		if path.Dir(l.to) == "worktrees" {
			kind, but = "worktree", "its branch is published"
			if s.Copy {
				but = "\"bawn apply --branch\" takes over what was committed there"
			}
		}
		s.report.Questions = append(s.report.Questions, fmt.Sprintf("%q was a %s of the session's, which your repository does not have: %s", l.dir, kind, but))
	}
	for _, u := range s.Units {
		if u.Added && u.WorkTree == "" && u.hasCommits() {
			s.report.Questions = append(s.report.Questions, fmt.Sprintf("what the session has committed in the submodule %q, which it has moved or removed, is in %q", u.Private, u.Host))
		} else if u.Added && u.WorkTree == "" {
			errs = append(errs, os.RemoveAll(u.Host)) // made for it
		}
	}
	return errors.Join(errs...)
}

// hasCommits reports whether the host has anything of a submodule that was added.
func (u *unit) hasCommits() bool {
	host, err := look(u.host, u.Rel, u.Size)
	return err != nil || len(host.tree.refs) > 0 || host.value(host.head) != ""
}

// worksIn reports whether the host has a directory as a submodule's work tree.
func (u *unit) worksIn(dir string) bool {
	at := ""
	list, _ := configOf(u.host) // without it, no directory is
	for _, c := range list {
		if c.section == "core" && c.sub == "" && c.key == "worktree" {
			at = fromDir(u.Host, c.value)
		}
	}
	return at == dir
}

// connect has a submodule's .git lead to its git directory on the host, and the
// repository know that it is used.
func (s *Store) connect(ctx context.Context, u *unit, l madeLink) error {
	dir, err := os.OpenRoot(l.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	done, err := replace(dir, ".git", []byte("gitdir: "+relative(l.dir, u.Host)+"\n"), func() bool {
		fi, err := dir.Lstat(".git")
		return err == nil && fi.Mode().IsRegular() && fi.Size() == 0
	})
	if err == nil && !done {
		err = fmt.Errorf("%q was changed meanwhile", l.made.Path)
	}
	if err != nil {
		return err
	}
	if err := s.guest.drop(l.made); err != nil || !u.Added {
		return err
	}
	if parent, name, ok := s.parentOf(u.Host); ok {
		err = s.setting(ctx, &unit{Host: parent, Rel: "."}, "submodule."+name+".active", "true")
	}
	if list, _ := configOf(u.host); len(remotesOf(list)) == 1 {
		s.report.Questions = append(s.report.Questions, fmt.Sprintf("%q is a submodule of yours now, without a remote: \"git remote add origin URL\" there gives it that of .gitmodules", l.dir))
	}
	return err
}

// parentOf is the git directory among whose modules another lies, and the name of the
// submodule, unless Bawn has chosen that.
func (s *Store) parentOf(host string) (parent, name string, ok bool) {
	const among = "/modules/"
	i := strings.LastIndex(host, among)
	if i < 0 || !inside(host[:i], s.Repo.Common) {
		return "", "", false
	}
	name = host[i+len(among):]
	return host[:i], name, !strings.HasPrefix(name, "bawn-")
}

// relative is the way from a directory to a path; both are real.
func relative(dir, p string) string {
	rel, err := filepath.Rel(dir, p)
	if err != nil {
		return p
	}
	return rel
}
