package gitstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An Ended lists what one ended session has left.
type Ended struct {
	Session   string           `json:"session"`
	Workspace string           `json:"workspace"`
	Place     string           `json:"place"`
	Report    []string         `json:"report,omitempty"`
	Made      []MadeRepository `json:"made,omitempty"`
}

// List lists what ended sessions have left.
func List(state string) ([]Ended, error) {
	ids, err := Left(state)
	if err != nil {
		return nil, err
	}
	var out []Ended
	for _, id := range ids {
		dir := Place(state, id)
		lock, err := take(dir)
		if err != nil {
			continue // it is alive
		}
		out = append(out, left(id, dir))
		lock.Close()
	}
	return out, nil
}

// left is what one session has left in its place.
func left(session, dir string) Ended {
	e := Ended{Session: session, Place: dir}
	s, err := load(dir)
	if err == nil {
		e.Workspace = s.Repo.Workspace
		s.guest, err = openGuestDir(guestPath(dir))
	}
	if err != nil {
		e.Report = []string{err.Error()}
		return e
	}
	defer s.guest.close()
	e.Made = pool(session, s.guest)
	r := s.past()
	for _, k := range r.Kept {
		e.Report = append(e.Report, fmt.Sprintf("%s of the session is at %s: %s", k.Ref, k.Beside, k.Why))
	}
	e.Report = slices.Concat(e.Report, r.Questions, r.Problems)
	return e
}

// Beside lists what sessions have left in a repository under refs of their own:
// changes that lost a race, and those that could not be published.
func Beside(r *Repository) ([]Kept, error) {
	root, err := os.OpenRoot(r.Common)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := readFile(root, "config", maxConfig)
	if err != nil {
		return nil, err
	}
	list, err := parseConfig(string(f))
	if err != nil {
		return nil, err
	}
	form, err := formatOf(list)
	if err != nil {
		return nil, err
	}
	t, err := readRefs(root, form.size)
	if err != nil {
		return nil, err
	}
	var out []Kept
	for name := range t.refs {
		session, rest, ok := strings.Cut(strings.TrimPrefix(name, ownRefs), "/")
		if strings.HasPrefix(name, ownRefs) && ok && !isPin(name) {
			out = append(out, Kept{Ref: "refs/" + rest, Beside: name, Why: "session " + short(session), Undo: rest == undoName || strings.HasPrefix(session, "undo-")})
		}
	}
	slices.SortFunc(out, func(a, b Kept) int { return strings.Compare(a.Beside, b.Beside) })
	return out, nil
}

// Forget removes one of those that Beside lists.
func Forget(ctx context.Context, r *Repository, o Options, ref string) error {
	if !strings.HasPrefix(ref, ownRefs) || !formatOK(ref) || isPin(ref) {
		return fmt.Errorf("no session has left %q", ref)
	}
	g, err := findGit(o.Path, r.Workspace)
	if err != nil {
		return err
	}
	_, err = g.run(ctx, &unit{Host: r.Common, Rel: r.rel()}, call{args: []string{"update-ref", "-d", ref}})
	return err
}

// MakeBranch makes a new branch of what a session has left beside.
func MakeBranch(ctx context.Context, r *Repository, o Options, branch, beside string) error {
	name := "refs/heads/" + branch
	if err := nameOK(name); err != nil {
		return fmt.Errorf("%q can't name a branch: %w", branch, err)
	}
	if !strings.HasPrefix(beside, ownRefs) || !formatOK(beside) {
		return fmt.Errorf("%q is none that a session has left", beside)
	}
	g, err := findGit(o.Path, r.Workspace)
	if err != nil {
		return err
	}
	_, err = g.run(ctx, &unit{Host: r.Common, Rel: r.rel()}, call{args: []string{"update-ref", "-m", "bawn apply", name, beside, ""}})
	return err
}

// errNotMade says that there is no such repository.
var errNotMade = errors.New("no session that has ended has made a repository there")

// Keep gives the human a repository that a guest has made: its commits, branches,
// tags, HEAD and index, checked as everywhere. Of its configuration it takes the
// remotes and the branches' upstreams.
func Keep(ctx context.Context, o Options, at string) (Report, error) {
	ids, err := Left(o.State)
	if err != nil {
		return Report{}, err
	}
	for _, id := range ids {
		g, err := openGuestDir(guestPath(Place(o.State, id)))
		if err != nil {
			continue // "bawn git" says why
		}
		for _, m := range pool(id, g) {
			if m.Path == at || filepath.Dir(m.Path) == at {
				return keep(ctx, o, m, g)
			}
		}
		g.close()
	}
	return Report{}, errNotMade
}

// keep closes g.
func keep(ctx context.Context, o Options, m MadeRepository, g *guestDir) (Report, error) {
	s := &Store{dir: Place(o.State, m.Session), guest: g, pinned: true, idle: idleTime}
	defer s.shut()
	if !m.There {
		return Report{}, fmt.Errorf("%q is no longer what the session has left there", m.Path)
	}
	if fi, err := os.Lstat(g.git(m)); err != nil || !fi.IsDir() {
		return Report{}, errors.New("it is a worktree of another repository: its branch is published, its directory is not; discard it")
	}
	var err error
	if s.lock, err = takeSoon(s.dir); err != nil {
		return Report{}, err
	}
	s.Session, s.Repo = m.Session, Repository{Workspace: filepath.Dir(m.Path), Common: m.Path}
	if s.git, err = findGit(o.Path, s.Repo.Workspace); err != nil {
		return Report{}, err
	}
	s.Git = s.git.program
	u := &unit{Host: m.Path, Private: ".", Rel: ".", WorkTree: s.Repo.Workspace, Beside: refs{}, Base: refs{}, Start: refs{}, told: map[string]bool{}, n: -1}
	if u.private, err = os.OpenRoot(g.git(m)); err != nil {
		return Report{}, err
	}
	s.Units = []*unit{u}
	s.untrusted = func() (Untrusted, error) {
		return o.Untrusted(View{Session: m.Session, Private: m.Private, Program: s.Git})
	}
	if err := s.fill(ctx, u); err != nil {
		return Report{}, err
	}
	err = s.sync(ctx, true)
	if s.confined != nil {
		_ = s.confined.Close() // its contents are not needed any more
	}
	_ = os.Remove(s.basePath(u))
	if rest := s.unpublished(); err != nil || len(rest) > 0 {
		s.report.Problems = append(s.report.Problems, rest...)
		return s.report, err
	}
	return s.report, errors.Join(g.drop(m), s.tidy())
}

// fill makes a repository of the empty directory that the host has.
func (s *Store) fill(ctx context.Context, u *unit) error {
	var err error
	if u.host, err = os.OpenRoot(u.Host); err != nil {
		return err
	}
	list, err := readDir(u.host, ".")
	if err != nil {
		return err
	}
	if len(list) > 0 {
		return fmt.Errorf("%q is not empty any more: move it away, make an empty directory there, and try again", u.Host)
	}
	text, err := readFile(u.private, "config", maxConfig)
	if err != nil && !missing(err) {
		return err
	}
	settings, err := parseConfig(string(text))
	if err != nil {
		return err
	}
	return s.initialise(ctx, u, settings, settings)
}

// initialise makes an empty repository of the host's by git, which gets of the guest's the
// format, the list of shallow commits, some remotes and what branches follow.
func (s *Store) initialise(ctx context.Context, u *unit, settings, remotes []setting) error {
	form, err := formatOf(settings)
	if err != nil {
		return fmt.Errorf("the repository has %w, which bawn does not know", err)
	}
	u.Size, u.Fold = form.size, form.fold
	format := map[int]string{40: "sha1", 64: "sha256"}[u.Size]
	if _, err := s.git.run(ctx, u, call{args: []string{"init", "-q", "--template=", "--object-format=" + format, "--initial-branch=main"}}); err != nil {
		return err
	}
	if err := s.remotes(u, remotes); err != nil {
		return err
	}
	if shallow, err := readFile(u.private, "shallow", maxSmall); err == nil {
		if err := u.host.WriteFile("shallow", onlyIDs(shallow, u.Size), 0o644); err != nil {
			return err
		}
	}
	if u.Head, err = readHead(u.host, ".", u.Size); err != nil {
		return err
	}
	u.stamps()
	u.seen[1] = stamp{} // whatever is there is new
	return nil
}

// onlyIDs are the lines of a file that are object IDs.
func onlyIDs(text []byte, size int) []byte {
	var out []byte
	for line := range strings.Lines(string(text)) {
		if isID(strings.TrimRight(line, "\n"), size) {
			out = append(out, strings.TrimRight(line, "\n")+"\n"...)
		}
	}
	return out
}

// remotes adds to the host's configuration where the repository comes from.
func (s *Store) remotes(u *unit, list []setting) error {
	elsewhere := func(c setting) bool {
		_, ok := plainURL(c.value)
		return c.name() == "remote.*.url" && !c.bare && ok && !localURL(c.value) && nameOK("refs/heads/"+c.sub) == nil
	}
	known := map[string]bool{".": true} // this repository
	for _, c := range list {
		if elsewhere(c) {
			known[c.sub] = true
		}
	}
	list = slices.DeleteFunc(slices.Clone(list), func(c setting) bool {
		switch c.name() {
		case "remote.*.url":
			return !elsewhere(c)
		case "remote.*.fetch": // without a URL git would take the name for a path
			return !known[c.sub] || c.value != "+refs/heads/*:refs/remotes/"+c.sub+"/*"
		case "branch.*.remote":
			return nameOK("refs/heads/"+c.sub) != nil || c.bare || !known[c.value]
		case "branch.*.merge":
			return nameOK("refs/heads/"+c.sub) != nil || c.bare
		}
		return true
	})
	text, err := readFile(u.host, "config", maxConfig)
	if err != nil {
		return err
	}
	return u.host.WriteFile("config", append(text, cleanConfig(list, false)...), 0o644)
}

// localURL reports what git takes for a repository of this machine: a guest can have
// made it, with programs in its configuration.
func localURL(v string) bool {
	if scheme, _, ok := strings.Cut(v, "://"); ok {
		return strings.EqualFold(scheme, "file")
	}
	colon, slash := strings.IndexByte(v, ':'), strings.IndexByte(v, '/')
	return colon < 0 || slash >= 0 && slash < colon
}

// tidy removes a place that nothing is left in.
func (s *Store) tidy() error {
	r := s.past()
	if len(pool(s.Session, s.guest)) > 0 || len(r.Problems) > 0 {
		return nil
	}
	return removePlace(s.dir, s.guest)
}
