package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
)

type globInput struct {
	Pattern string `json:"pattern" jsonschema:"such as **/*.go"`
	Path    string `json:"path,omitempty" jsonschema:"the directory to look in; the workspace if it is left out"`
}

// A hit is a file that was found; its name is relative to the workspace.
type hit struct {
	name string
	at   time.Time
}

func (s *server) glob(ctx context.Context, in globInput) (string, error) {
	match, err := pattern(in.Pattern)
	if err != nil {
		return "", err
	}
	var hits []hit
	more, err := s.walk(ctx, "glob", in.Path, func(below string, _ *spot, e fs.DirEntry, name string) error {
		if !match.MatchString(below) {
			return nil
		}
		h := hit{name: name}
		if info, err := e.Info(); err == nil {
			h.at = info.ModTime()
		}
		hits = append(hits, h)
		return nil
	})
	if err != nil {
		return "", err
	}
	slices.SortFunc(hits, func(a, b hit) int {
		if c := b.at.Compare(a.at); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	var b strings.Builder
	for i, h := range hits {
		if i == MaxFound || b.Len() > MaxResult-4096 {
			fmt.Fprintf(&b, "[bawn: %d more; narrow the pattern]\n", len(hits)-i)
			break
		}
		fmt.Fprintln(&b, strings.TrimSuffix(printable(strings.ReplaceAll(h.name, "\n", `\n`)), "\n"))
	}
	if len(hits) == 0 {
		b.WriteString("[bawn: no file matches]\n")
	}
	return b.String() + more, nil
}

// pattern compiles a glob: * and ? within a name, ** over directories, {a,b};
// all else is itself, brackets too. A pattern without a slash matches names in
// every directory.
func pattern(glob string) (*regexp.Regexp, error) {
	if glob == "" || len(glob) > 1000 {
		return nil, errors.New("no pattern; want one such as **/*.go, of at most 1000 bytes")
	}
	b, depth := `(?s)^`, 0
	if !strings.Contains(glob, "/") {
		b += `(?:.*/)?`
	}
	for rest := glob; rest != ""; {
		part, means := rest[:1], ""
		switch c := rest[0]; {
		case strings.HasPrefix(rest, "**/"):
			part, means = "**/", `(?:.*/)?`
		case strings.HasPrefix(rest, "**"):
			part, means = "**", `.*`
		case c == '*':
			means = `[^/]*`
		case c == '?':
			means = `[^/]`
		case c == '{':
			depth, means = depth+1, `(?:`
		case c == '}' && depth > 0:
			depth, means = depth-1, `)`
		case c == ',' && depth > 0:
			means = `|`
		default:
			part = rest[:max(1, strings.IndexAny(rest, "*?{},"))]
			means = regexp.QuoteMeta(part)
		}
		b, rest = b+means, rest[len(part):]
	}
	re, err := regexp.Compile(b + "$")
	if err != nil || depth > 0 {
		return nil, fmt.Errorf("pattern %.100q can't be read; want one such as **/*.{go,mod}", glob)
	}
	return re, nil
}

// skipped are directories whose contents are rarely meant.
var skipped = []string{".git", ".hg", ".svn", "node_modules"}

var errEnough = errors.New("enough")

// walk calls f with every file below a directory that the Judge lets be read:
// with its name there, and in the workspace. Links are not followed. What it
// returns besides is a line about what was left out.
func (s *server) walk(ctx context.Context, tool, dir string, f func(below string, top *spot, e fs.DirEntry, name string) error) (string, error) {
	if dir == "" {
		dir = "."
	}
	top, err := s.locate(filepath.Join(dir, "x"))
	if err != nil {
		return "", err
	}
	defer top.close()
	base := filepath.Dir(top.path)
	if _, err := s.judge(ctx, tool, true, file(bawn.Read, base)); err != nil {
		return "", err
	}
	inside, _ := filepath.Rel(s.Workspace, base) // it is below
	visited := 0
	err = fs.WalkDir(top.dir.FS(), ".", func(below string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && below == ".":
			return err
		case err != nil: // it can't be read, or is gone
			return nil
		case e.IsDir() && below != "." && slices.Contains(skipped, e.Name()):
			return fs.SkipDir
		case e.IsDir():
			return nil
		}
		if visited++; visited > MaxVisited {
			return errEnough
		}
		return f(below, top, e, path.Join(filepath.ToSlash(inside), below))
	})
	switch {
	case errors.Is(err, errEnough) && visited > MaxVisited:
		return fmt.Sprintf("[bawn: stopped after %d files; look in a directory below]\n", MaxVisited), nil
	case errors.Is(err, errEnough):
		return "", nil
	case err != nil:
		return "", s.explain(dir, err)
	}
	return "", nil
}

type grepInput struct {
	Pattern    string `json:"pattern" jsonschema:"a regular expression (RE2)"`
	Path       string `json:"path,omitempty" jsonschema:"the directory or the file to search; the workspace if it is left out"`
	Glob       string `json:"glob,omitempty" jsonschema:"only files that match, such as *.go"`
	IgnoreCase bool   `json:"ignore_case,omitempty" jsonschema:"upper and lower case are the same"`
}

// A finding are the lines of one file that match.
type finding struct {
	name, path string
	lines      []string
}

func (s *server) grep(ctx context.Context, in grepInput) (string, error) {
	g, err := newGrep(in)
	if err != nil {
		return "", err
	}
	if done, err := s.grepFile(ctx, in.Path, g); done || err != nil {
		return g.text(), err
	}
	more, err := s.walk(ctx, "grep", in.Path, g.visit)
	if err != nil {
		return "", err
	}
	g.left = s.permitted(ctx, g)
	return g.text() + more, nil
}

// grepFile searches the one file of a name, and reports whether it is one.
func (s *server) grepFile(ctx context.Context, name string, g *search) (bool, error) {
	if name == "" {
		return false, nil
	}
	p, err := s.locate(name)
	if err != nil {
		return false, err
	}
	defer p.close()
	if info, err := p.dir.Lstat(p.base); err != nil || !info.Mode().IsRegular() {
		return false, nil //nolint:nilerr // the walk says what it is
	}
	if _, err := s.judge(ctx, "grep", true, file(bawn.Read, p.path)); err != nil {
		return false, err
	}
	g.search(p, name)
	return true, nil
}

// A search is one grep.
type search struct {
	want  *regexp.Regexp
	names *regexp.Regexp // nil: all
	found []finding
	lines int
	left  int // files that the Judge kept back
}

func newGrep(in grepInput) (*search, error) {
	if in.Pattern == "" || len(in.Pattern) > 1000 {
		return nil, errors.New("no pattern; want a regular expression of at most 1000 bytes")
	}
	flags := ""
	if in.IgnoreCase {
		flags = "(?i)"
	}
	re, err := regexp.Compile(flags + in.Pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern %.100q: %w", in.Pattern, err)
	}
	g := &search{want: re}
	if in.Glob != "" {
		g.names, err = pattern(in.Glob)
	}
	return g, err
}

// visit searches one file of a walk.
func (g *search) visit(below string, top *spot, e fs.DirEntry, name string) error {
	if g.lines >= MaxMatches {
		return errEnough
	}
	if !e.Type().IsRegular() || g.names != nil && !g.names.MatchString(below) {
		return nil
	}
	dir, err := top.dir.OpenRoot(path.Dir(below))
	if err != nil {
		return nil //nolint:nilerr // it is gone, or can't be read
	}
	defer dir.Close()
	g.search(&spot{dir: dir, base: path.Base(below), path: filepath.Join(filepath.Dir(top.path), below)}, name)
	return nil
}

// search collects the lines of a file that match.
func (g *search) search(p *spot, name string) {
	content, _, err := p.read()
	if err != nil || binary(content) || !g.want.Match(content) {
		return
	}
	f := finding{name: name, path: p.path}
	n := 0
	for line := range bytes.Lines(content) {
		n++
		line = bytes.TrimRight(line, "\r\n")
		if g.lines < MaxMatches && g.want.Match(line) {
			g.lines++
			f.lines = append(f.lines, fmt.Sprintf("%d:%s", n, cutLine(string(line))))
		}
	}
	if len(f.lines) > 0 {
		g.found = append(g.found, f)
	}
}

// judged is how many files are put to the Judge at once.
const judged = 64

// permitted keeps the findings in files that the Judge lets be read, without a
// question: a search meets files that nobody has named. It returns how many it
// kept back.
func (s *server) permitted(ctx context.Context, g *search) (left int) {
	var kept []finding
	for part := range slices.Chunk(g.found, judged) {
		actions := make([]bawn.Action, len(part))
		for i, f := range part {
			actions[i] = file(bawn.Read, f.path)
		}
		if _, err := s.judge(ctx, "grep", false, actions...); err == nil {
			kept = append(kept, part...)
			continue
		}
		for i, f := range part {
			if _, err := s.judge(ctx, "grep", false, actions[i]); err == nil {
				kept = append(kept, f)
			}
		}
	}
	left = len(g.found) - len(kept)
	g.found = kept
	return left
}

func (g *search) text() string {
	var b strings.Builder
	for _, f := range g.found {
		name := strings.TrimSuffix(printable(strings.ReplaceAll(f.name, "\n", `\n`)), "\n")
		for _, l := range f.lines {
			fmt.Fprintf(&b, "%s:%s\n", name, l)
		}
	}
	switch {
	case g.lines >= MaxMatches:
		fmt.Fprintf(&b, "[bawn: more than %d lines; narrow the search]\n", MaxMatches)
	case len(g.found) == 0 && g.left == 0:
		b.WriteString("[bawn: nothing matches]\n")
	}
	if g.left > 0 {
		fmt.Fprintf(&b, "[bawn: %d files that match may not be read without a question; read them by name]\n", g.left)
	}
	return b.String()
}
