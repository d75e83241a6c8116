package gitstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// maxMade bounds the repositories that one session makes.
const maxMade = 10_000

// A MadeRepository is a repository that a guest has made: the host has an empty .git in its
// place until a human keeps it.
type MadeRepository struct {
	Session string `json:"session"`
	Path    string `json:"path"`    // of the .git on the host
	Private string `json:"private"` // the guest's git directory; sealed
	There   bool   `json:"there"`   // whether the host still has the empty one
	entry   string // its name in the pool
}

// pool lists what a session's guest has made. It is empty where g is nil.
func pool(session string, g *guestDir) []MadeRepository {
	if g == nil {
		return nil
	}
	list, err := os.ReadDir(g.at(madeName))
	if err != nil {
		return nil
	}
	var out []MadeRepository
	for _, e := range list[:min(len(list), maxMade)] {
		text, err := atomicfile.Read(g.at(madeName, e.Name(), sandbox.PoolNote), 64<<10)
		var note sandbox.PoolEntry
		if err != nil || json.Unmarshal(text, &note) != nil || !filepath.IsAbs(note.Path) || filepath.Clean(note.Path) != note.Path {
			continue
		}
		out = append(out, MadeRepository{Session: session, Path: note.Path, Private: g.real(madeName, e.Name(), sandbox.PoolGit), There: sameEntry(note), entry: e.Name()})
	}
	slices.SortFunc(out, func(a, b MadeRepository) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// git is where this process finds the git directory, or the .git file, of a
// repository in the pool.
func (g *guestDir) git(m MadeRepository) string { return g.at(madeName, m.entry, sandbox.PoolGit) }

// drop removes a repository from the pool.
func (g *guestDir) drop(m MadeRepository) error { return removeAll(g.at(madeName, m.entry)) }

// made are those of this session that the guest has put anything into.
func (s *Store) made() []MadeRepository {
	return slices.DeleteFunc(pool(s.Session, s.guest), func(m MadeRepository) bool {
		if !m.There {
			return true
		}
		git := s.guest.git(m)
		fi, err := os.Lstat(git)
		return err != nil || fi.IsDir() && !isGitDir(git)
	})
}

// linkTarget reads where a .git file leads.
func linkTarget(file string) (string, error) {
	if fi, err := os.Lstat(file); err != nil || !fi.Mode().IsRegular() {
		return "", errors.Join(errors.New("no file"), err)
	}
	text, err := atomicfile.Read(file, 64<<10)
	if err != nil {
		return "", err
	}
	target, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
	if !ok {
		return "", errors.New("it leads nowhere")
	}
	return target, nil
}

func fromDir(dir, target string) string {
	if filepath.IsAbs(target) {
		return filepath.Clean(target)
	}
	return filepath.Join(dir, target)
}

// Again are the private directories of repositories in a workspace that guests of
// ended sessions have made.
func Again(state, workspace string) []bawn.GitDir {
	var out []bawn.GitDir
	ids, _ := Left(state) // without the list there are no directories to give
	for _, id := range ids {
		if dir := Place(state, id); present(filepath.Join(dir, closedName)) {
			out = append(out, Made(filepath.Join(guestPath(dir), madeName), workspace)...)
		}
	}
	return out
}

// Made are the private directories of repositories in a workspace that guests have
// made, by their pool. It is empty where the pool can't be opened.
func Made(dir, workspace string) []bawn.GitDir {
	g, err := openGuestDir(filepath.Dir(dir))
	if err != nil {
		return nil
	}
	defer g.close()
	var out []bawn.GitDir
	for _, m := range pool("", g) {
		if m.There && inside(m.Path, workspace) {
			out = append(out, bawn.GitDir{Path: m.Path, Private: m.Private})
		}
	}
	return out
}

func inside(p, dir string) bool {
	rel, err := filepath.Rel(dir, p)
	return err == nil && filepath.IsLocal(rel)
}

// Discard removes what a session has left: of one repository that it has made, or
// with path "" all of it.
func Discard(state, session, path string) error {
	if !plainName(session) {
		return fmt.Errorf("%q is no session", session)
	}
	dir := Place(state, session)
	lock, err := takeSoon(dir)
	if err != nil {
		return err
	}
	s := &Store{dir: dir, lock: lock}
	defer s.shut()
	s.Session = session
	s.guest, err = openGuestDir(guestPath(dir))
	if path == "" {
		return removePlace(dir, s.guest)
	}
	if err != nil {
		return err
	}
	for _, m := range pool(session, s.guest) {
		if m.Path == path {
			return errors.Join(s.guest.drop(m), s.tidy())
		}
	}
	return errors.New("the session has made no repository there")
}
