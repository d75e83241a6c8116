package gitstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
	Private string `json:"private"` // what the guest has there
	There   bool   `json:"there"`   // whether the host still has the empty one
	entry   string // of the pool
}

// pool lists what a session's guest has made.
func pool(session, dir string) []MadeRepository {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []MadeRepository
	for _, e := range list[:min(len(list), maxMade)] {
		text, err := atomicfile.Read(filepath.Join(dir, e.Name(), sandbox.PoolNote), 64<<10)
		var note sandbox.PoolEntry
		if err != nil || json.Unmarshal(text, &note) != nil || !filepath.IsAbs(note.Path) || filepath.Clean(note.Path) != note.Path {
			continue
		}
		out = append(out, MadeRepository{Session: session, Path: note.Path, Private: filepath.Join(dir, e.Name(), sandbox.PoolGit), There: sameEntry(note), entry: filepath.Join(dir, e.Name())})
	}
	slices.SortFunc(out, func(a, b MadeRepository) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// made are those of this session that the guest has put anything into.
func (s *Store) made() []MadeRepository {
	return slices.DeleteFunc(pool(s.Session, s.MadePool()), func(m MadeRepository) bool {
		if !m.There {
			return true
		}
		fi, err := os.Lstat(m.Private)
		return err != nil || fi.IsDir() && !isGitDir(m.Private)
	})
}

// Again are the private directories of repositories in a workspace that guests of
// ended sessions have made.
func Again(state, workspace string) []sandbox.GitDir {
	var out []sandbox.GitDir
	ids, _ := Left(state) // there may be none
	for _, id := range ids {
		if dir := Place(state, id); present(filepath.Join(dir, closedName)) {
			out = append(out, Made(filepath.Join(dir, madeName), workspace)...)
		}
	}
	return out
}

// Made are the private directories of repositories in a workspace that guests have
// made, by their pool.
func Made(dir, workspace string) []sandbox.GitDir {
	var out []sandbox.GitDir
	for _, m := range pool("", dir) {
		if m.There && inside(m.Path, workspace) {
			out = append(out, sandbox.GitDir{Path: m.Path, Private: m.Private})
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
	defer lock.Close()
	if path == "" {
		return removeAll(dir)
	}
	s := &Store{dir: dir}
	s.Session = session
	for _, m := range pool(session, filepath.Join(dir, madeName)) {
		if m.Path == path {
			return errors.Join(removeAll(m.entry), s.tidy())
		}
	}
	return errors.New("the session has made no repository there")
}
