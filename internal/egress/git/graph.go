package git

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"sync"
)

// maxGraph is how many commits a Graph keeps: some 20 MB.
const maxGraph = 100_000

// A Graph remembers the parents of commits that pushes have shown. An id is a
// hash of the commit's text, so a proof holds for every repository and every
// server. A branch that was pushed in one request can be proven to descend from
// another in the next, which sends no commit. Its zero value is empty and ready
// to use, by several goroutines at once.
type Graph struct {
	mu      sync.Mutex
	parents map[string][]string
}

func (g *Graph) add(id string, parents []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.parents == nil {
		g.parents = map[string][]string{}
	}
	if len(g.parents) < maxGraph {
		g.parents[id] = parents
	}
}

func (g *Graph) get(id string) ([]string, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, ok := g.parents[id]
	return p, ok
}

// commitID is the id of a commit with this text (git-hash-object(1)).
func commitID(text []byte, idLen int) string {
	whole := slices.Concat([]byte("commit "+strconv.Itoa(len(text))), []byte{0}, text)
	if idLen == 64 {
		sum := sha256.Sum256(whole)
		return hex.EncodeToString(sum[:])
	}
	sum := sha1.Sum(whole) // git's own format; not a choice of ours
	return hex.EncodeToString(sum[:])
}

// commitParents reads the parents from a commit's text: the lines after the
// tree, as git's parse_commit_buffer does.
func commitParents(text []byte, idLen int) ([]string, error) {
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	tree, ok := bytes.CutPrefix(line, []byte("tree "))
	if !ok || len(tree) != idLen || !validID(string(tree)) {
		return nil, fmt.Errorf("a commit begins with %.80q; want its tree", line)
	}
	var parents []string
	for {
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		id, ok := bytes.CutPrefix(line, []byte("parent "))
		if !ok {
			return parents, nil
		}
		if len(id) != idLen || !validID(string(id)) {
			return nil, fmt.Errorf("a commit has %.80q; want the id of a parent", line)
		}
		parents, rest = append(parents, string(id)), after
	}
}

// A walk looks for old among the ancestors of a new commit while commits come
// to be known one by one.
type walk struct {
	old     string
	shallow map[string]bool // commits whose parents don't count
	awaited map[string]bool // reached, but not known yet
	seen    map[string]bool
	steps   *int // that all walks of one push may still take
	found   bool
}

func newWalk(u Update, shallow map[string]bool, steps *int, known *Graph) *walk {
	w := &walk{old: u.Old, shallow: shallow, steps: steps, awaited: map[string]bool{}, seen: map[string]bool{}}
	w.reach(u.New, known)
	return w
}

// over reports whether nothing that may still come can change the outcome.
func (w *walk) over() bool { return w.found || len(w.awaited) == 0 }

// learn goes on from id, which has come to be known, if the walk waits for it.
func (w *walk) learn(id string, known *Graph) {
	if w.awaited[id] && !w.found {
		delete(w.awaited, id)
		delete(w.seen, id)
		w.reach(id, known)
	}
}

// reach follows the parents of id as far as they are known.
func (w *walk) reach(id string, known *Graph) {
	for todo := []string{id}; len(todo) > 0 && !w.found; {
		id, todo = todo[len(todo)-1], todo[:len(todo)-1]
		if w.seen[id] || *w.steps == 0 {
			continue
		}
		*w.steps--
		w.seen[id] = true
		parents, ok := known.get(id)
		switch {
		case id == w.old:
			w.found = true
		case w.shallow[id]:
		case ok:
			todo = append(todo, parents...)
		default:
			w.awaited[id] = true
		}
	}
}
