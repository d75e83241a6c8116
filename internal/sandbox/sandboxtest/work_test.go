package sandboxtest

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestWorkAgainstItself shows that every piece comes out the same when nothing
// is between, so that a difference means something.
func TestWorkAgainstItself(t *testing.T) {
	testenv.Whole(t) // of a piece that comes out otherwise each time TestBawn tells
	Work(t, WorkDir(t), Unsandboxed, nil)
}

// TestWorkNotices breaks the runner in the ways a sandbox may be wrong, and
// wants each noticed by a piece that is there for it.
func TestWorkNotices(t *testing.T) {
	testenv.Whole(t) // it tests the comparison
	shelf, base := workShelf(t), WorkDir(t)
	for _, tt := range []struct {
		name, piece string
		run         WorkRunner
	}{
		{"the umask does not count", "umask 077", after(chmodAll(0o077))},
		{"an open umask does not count", "umask 000", after(chmodAll(0))},
		{"another error number", "calls: errors", output(strings.NewReplacer("ENOENT", "EACCES"))},
		{"another message", "errors", output(strings.NewReplacer("No such file or directory", "Permission denied"))},
		{"a word on standard error", "no output at all", output(strings.NewReplacer(), "bawn: note\n")},
		{"a lost last newline", "large output", output(strings.NewReplacer("300000\n", "300000"))},
		{"a signal told as 1", "killed by its own signal", code(func(int) int { return 1 })},
		{"an exit code cut to 7 bits", "exit code 255", code(func(c int) int { return c & 0x7f })},
		{"a ghost", "git: status, add, commit", after(func(dir string) error { return os.WriteFile(filepath.Join(dir, ".envrc"), nil, 0o644) })},
		{"a lost file", "git: init", after(func(dir string) error { return os.Remove(filepath.Join(dir, "sub/x")) })},
		{"a lost branch", "git: branch, checkout, merge", afterGit("", "git update-ref -d refs/heads/two")},
		{"a branch elsewhere", "git: branch, checkout, merge", afterGit("", "git update-ref refs/heads/two main")},
		{"another HEAD", "git: init in place", afterGit("", "git symbolic-ref HEAD refs/heads/main")},
		{"a lost index entry", "git: init", afterGit("sub", "git rm -q --cached x")},
		{"a lost stash", "git: stash", afterGit("", "git stash -q; git update-ref refs/stash HEAD; git reset -q --hard")},
		{"a lost object", "git: nothing to commit", afterGit("", "rm .git/objects/*/*")},
		{"a note about nothing", "git: tag", output(strings.NewReplacer(), gitNote+"left\n")},
		{"a repository that is none", "git: tag", output(strings.NewReplacer(), gitNote+`the session has made a repository at $WORK/x/.git; "bawn git keep $WORK/x/.git" makes it yours`+"\n")},
		{"nothing told of an open merge", "git: cherry-pick with a conflict, and am", afterGit("", "git cherry-pick --abort")},
		{"another file", "calls: replace", after(func(dir string) error { return os.WriteFile(filepath.Join(dir, "data"), []byte("version 48\n"), 0o600) })},
		{"holes filled", "calls: sparse", after(rewrite("sparse"))},
		{"a hard link copied", "calls: renames", after(rewrite("n2"))},
		{"no standard input", "stdin from a pipe", func(dir string, _ io.Reader, argv ...string) (string, string, int) {
			return Unsandboxed(dir, nil, argv...)
		}},
		{"a file as a pipe", "stdin from a file", func(dir string, in io.Reader, argv ...string) (string, string, int) {
			return Unsandboxed(dir, io.MultiReader(in), argv...)
		}},
		{"somewhere else", "working directory", Wrapped("env", "-C", "..")},
		{"one descriptor too many", "only the given descriptors", Wrapped("sh", "-c", `exec 3</; exec "$@"`, "sh")},
		{"SIGPIPE ignored", "pipelines", Wrapped("sh", "-c", `trap '' PIPE; exec "$@"`, "sh")},
		{"changed arguments", "arguments as they are", Wrapped("sh", "-c", `exec $@`, "sh")},
		{"does not start", "cat without a shell", Wrapped("/no/such/sandbox")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := pieceNamed(t, tt.piece)
			if diffs := p.compare(t, base, shelf, tt.run); len(diffs) == 0 {
				t.Errorf("piece %q noticed nothing", tt.piece)
			}
		})
	}
}

func pieceNamed(t *testing.T, name string) *workPiece {
	t.Helper()
	for _, p := range workPieces() {
		if p.name == name {
			return &p
		}
	}
	t.Fatalf("no piece of work is called %q", name)
	return nil
}

// after returns an unsandboxed runner that does something to the tree at the end.
func after(spoil func(dir string) error) WorkRunner {
	return func(dir string, stdin io.Reader, argv ...string) (string, string, int) {
		out, errs, code := Unsandboxed(dir, stdin, argv...)
		if err := spoil(dir); err != nil {
			panic(err)
		}
		return out, errs, code
	}
}

// afterGit lets git spoil a repository at the end.
func afterGit(at, script string) WorkRunner {
	return after(func(dir string) error {
		_, errs, code := Unsandboxed(filepath.Join(dir, at), nil, "sh", "-c", workPrologue+script, "sh", "")
		if code != 0 {
			return fmt.Errorf("%s: %s", script, errs)
		}
		return nil
	})
}

// chmodAll gives every file the mode it had under the wrong umask.
func chmodAll(umask fs.FileMode) func(dir string) error {
	return func(dir string) error {
		return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			return os.Chmod(path, 0o644&^(umask^0o077))
		})
	}
}

// rewrite replaces a file by one with the same contents.
func rewrite(name string) func(dir string) error {
	return func(dir string) error {
		name := filepath.Join(dir, name)
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.Remove(name); err != nil {
			return err
		}
		return os.WriteFile(name, data, 0o600)
	}
}

// output returns an unsandboxed runner that says something else.
func output(r *strings.Replacer, add ...string) WorkRunner {
	return func(dir string, stdin io.Reader, argv ...string) (string, string, int) {
		out, errs, code := Unsandboxed(dir, stdin, argv...)
		return r.Replace(out), r.Replace(errs) + strings.Join(add, ""), code
	}
}

func code(f func(int) int) WorkRunner {
	return func(dir string, stdin io.Reader, argv ...string) (string, string, int) {
		out, errs, code := Unsandboxed(dir, stdin, argv...)
		return out, errs, f(code)
	}
}
