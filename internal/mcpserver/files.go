package mcpserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/bawn-dev/bawn"
)

type readInput struct {
	Path   string `json:"path" jsonschema:"relative to the workspace, or absolute below it"`
	Offset int    `json:"offset,omitempty" jsonschema:"the first line, from 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many lines, at most 2000"`
}

func (s *server) read(ctx context.Context, in readInput) (string, error) {
	if in.Offset < 0 || in.Limit < 0 {
		return "", errors.New("offset and limit are at least 0; the first line is 1")
	}
	content, err := s.content(ctx, "read", in.Path)
	if err != nil {
		return "", err
	}
	if binary(content) {
		return "", fmt.Errorf("%q is no text (%d bytes); use exec with a program that reads such files", in.Path, len(content))
	}
	return numbered(string(content), max(in.Offset, 1), in.Limit), nil
}

// numbered writes lines with their numbers, as many as fit.
func numbered(text string, first, limit int) string {
	if limit == 0 || limit > MaxLines {
		limit = MaxLines
	}
	var b strings.Builder
	n := 0
	next := 0 // the first line that is not shown
	for line := range strings.Lines(text) {
		if n++; n < first || next > 0 {
			continue
		}
		row := fmt.Sprintf("%6d\t%s\n", n, cutLine(strings.TrimSuffix(line, "\n")))
		if n >= first+limit || b.Len()+len(row) > MaxResult-200 {
			next = n
			continue
		}
		b.WriteString(row)
	}
	switch {
	case n == 0:
		return "[bawn: the file is empty]\n"
	case first > n:
		return fmt.Sprintf("[bawn: the file has %d lines only]\n", n)
	case next > 0:
		fmt.Fprintf(&b, "[bawn: the file has %d lines; go on with offset %d]\n", n, next)
	}
	return b.String()
}

// cutLine is at most MaxColumns characters of a line, in what can be seen.
func cutLine(line string) string {
	if len(line) > MaxColumns && utf8.RuneCountInString(line) > MaxColumns {
		cut := string([]rune(line)[:MaxColumns])
		return fmt.Sprintf("%s [bawn: %d bytes more]", strings.TrimSuffix(printable(cut), "\n"), len(line)-len(cut))
	}
	return strings.TrimSuffix(printable(line), "\n")
}

// content is that of a file which the Judge lets be read.
func (s *server) content(ctx context.Context, tool, name string) ([]byte, error) {
	p, err := s.locate(name)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if _, err := s.judge(ctx, tool, true, file(bawn.Read, p.path)); err != nil {
		return nil, err
	}
	content, _, err := p.read()
	if err != nil {
		return nil, s.explain(name, err)
	}
	return content, nil
}

// read reads the file that stands at the spot, and no link that came there
// since it was judged.
func (p *spot) read() ([]byte, fs.FileMode, error) {
	before, err := p.dir.Lstat(p.base)
	if err != nil {
		return nil, 0, err
	}
	switch {
	case before.IsDir():
		return nil, 0, errors.New("it is a directory; list it with glob")
	case !before.Mode().IsRegular():
		return nil, 0, errors.New("it is no file")
	}
	f, err := p.dir.OpenFile(p.base, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !os.SameFile(before, info) {
		err = errors.New("it was exchanged while it was opened; try again")
	}
	if err != nil {
		return nil, 0, err
	}
	content, err := io.ReadAll(io.LimitReader(f, MaxContent+1))
	if err == nil && len(content) > MaxContent {
		err = fmt.Errorf("it has %d bytes; want at most %d: use exec with head, tail or sed", info.Size(), MaxContent)
	}
	return content, info.Mode().Perm(), err
}

type writeInput struct {
	Path    string `json:"path" jsonschema:"relative to the workspace, or absolute below it"`
	Content string `json:"content" jsonschema:"the whole content"`
}

func (s *server) write(ctx context.Context, in writeInput) (string, error) {
	if len(in.Content) > MaxContent {
		return "", fmt.Errorf("%d bytes; want at most %d", len(in.Content), MaxContent)
	}
	p, err := s.locateNew(ctx, in.Path)
	if err != nil {
		return "", err
	}
	defer p.close()
	perm, op, done := fs.FileMode(0o644), bawn.Create, "made"
	if info, err := p.dir.Lstat(p.base); err == nil {
		if !info.Mode().IsRegular() {
			return "", fmt.Errorf("%q is no file", in.Path)
		}
		perm, op, done = info.Mode().Perm(), bawn.Write, "replaced"
	}
	if _, err := s.judge(ctx, "write", true, file(op, p.path)); err != nil {
		return "", err
	}
	if err := p.replace([]byte(in.Content), perm); err != nil {
		return "", s.explain(in.Path, err)
	}
	return fmt.Sprintf("%s %s (%d bytes)\n", done, printable(in.Path), len(in.Content)), nil
}

// locateNew is locate for a file that is to be written: directories that are
// missing on its way are made, where the Judge lets the file be made.
func (s *server) locateNew(ctx context.Context, name string) (*spot, error) {
	at, err := s.relative(name)
	if err != nil {
		return nil, err
	}
	if at == "." {
		return nil, fmt.Errorf("%q is the workspace itself; want a file in it", name)
	}
	dir := filepath.Dir(at)
	if _, err := s.root.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return s.locate(name)
	}
	there := dir // the deepest that exists
	for there != "." {
		if _, err := s.root.Lstat(there); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		there = filepath.Dir(there)
	}
	p, err := s.enter(name, filepath.Join(there, "x"))
	if err != nil {
		return nil, err
	}
	defer p.close()
	rest := strings.TrimPrefix(strings.TrimPrefix(at, there), "/")
	if there == "." {
		rest = at
	}
	if _, err := s.judge(ctx, "write", true, file(bawn.Create, filepath.Join(filepath.Dir(p.path), rest))); err != nil {
		return nil, err
	}
	if err := p.dir.MkdirAll(filepath.Dir(rest), 0o755); err != nil {
		return nil, s.explain(name, err)
	}
	return s.locate(name)
}

// replace puts a new file in the place of what is there, as a whole. A link
// that came there meanwhile is replaced, not followed.
func (p *spot) replace(content []byte, perm fs.FileMode) (err error) {
	tmp := ".bawn-" + strings.ToLower(rand.Text())
	f, err := p.dir.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = p.dir.Remove(tmp) // our own
		}
	}()
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(perm)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return p.dir.Rename(tmp, p.base)
}

type editInput struct {
	Path string `json:"path" jsonschema:"relative to the workspace, or absolute below it"`
	Old  string `json:"old" jsonschema:"the text to be replaced, exactly as it stands in the file"`
	New  string `json:"new" jsonschema:"the text in its place"`
	All  bool   `json:"all,omitempty" jsonschema:"replace every occurrence"`
}

func (s *server) edit(ctx context.Context, in editInput) (string, error) {
	if in.Old == "" || in.Old == in.New {
		return "", errors.New("old and new have to differ, and old is not empty; to make a file use write")
	}
	p, err := s.locate(in.Path)
	if err != nil {
		return "", err
	}
	defer p.close()
	if _, err := s.judge(ctx, "edit", true, file(bawn.Read, p.path), file(bawn.Write, p.path)); err != nil {
		return "", err
	}
	content, perm, err := p.read()
	if err != nil {
		return "", s.explain(in.Path, err)
	}
	text, n, err := replaced(string(content), in)
	if err != nil {
		return "", err
	}
	if err := p.replace([]byte(text), perm); err != nil {
		return "", s.explain(in.Path, err)
	}
	return fmt.Sprintf("replaced %d in %s\n", n, printable(in.Path)), nil
}

// replaced is a text after the edit, and how often it took place.
func replaced(text string, in editInput) (string, int, error) {
	n := strings.Count(text, in.Old)
	switch {
	case n == 0:
		return "", 0, fmt.Errorf("the old text is not in %q; read the file again, blanks count", in.Path)
	case n > 1 && !in.All:
		return "", 0, fmt.Errorf("the old text is in %q %d times, at lines %v; give more of what stands around it, or set all", in.Path, n, linesOf(text, in.Old))
	case len(text)+n*(len(in.New)-len(in.Old)) > MaxContent:
		return "", 0, fmt.Errorf("the file would have more than %d bytes", MaxContent)
	}
	return strings.ReplaceAll(text, in.Old, in.New), n, nil
}

// linesOf lists the first lines at which a part of a text begins.
func linesOf(text, part string) []int {
	var lines []int
	line := 1
	for len(lines) < 10 {
		i := strings.Index(text, part)
		if i < 0 {
			break
		}
		line += strings.Count(text[:i], "\n")
		lines = append(lines, line)
		line += strings.Count(part, "\n")
		text = text[i+len(part):]
	}
	return slices.Compact(lines)
}
