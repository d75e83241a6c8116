package undocli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bawn-dev/bawn/internal/checkpoint"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/undo"
	"github.com/bawn-dev/bawn/internal/verb"
)

// gitsTool is the one that git's configuration names.
const gitsTool = "git's"

// useTool shows a difference in the human's tool, by "git difftool". It gets copies of the
// files under plain names, in a directory without a repository: nothing that a guest has
// named is obeyed.
func (w *workspace) useTool(e *launch.Env, d *undo.Diff, tool string) error {
	dir, err := os.MkdirTemp("", "bawn-diff-")
	if err != nil {
		return internal(err)
	}
	defer os.RemoveAll(dir)
	n := 0
	for _, x := range d.List() {
		written, err := w.writeSides(e, d, x, dir, n)
		if err != nil {
			return internal(err)
		}
		n += written
	}
	if n == 0 {
		return nil
	}
	args := []string{"difftool", "--no-index"}
	if tool != gitsTool {
		args = append(args, "--tool="+tool)
	}
	cmd := exec.Command("git", append(args, "--", "old", "new")...) //nolint:forbidigo // the human's own git and tool, as "git difftool" by hand
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, append(e.Environ[:len(e.Environ):len(e.Environ)], "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir)), e.Stdin, e.Stdout, e.Stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) { // 1: they differ
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("git difftool: %w", err), Hint: "git config --global diff.tool NAME chooses a tool; \"git difftool --tool-help\" lists them"}
	}
	return nil
}

// writeSides writes both sides of a file, and returns 1 if it is one with content.
func (w *workspace) writeSides(e *launch.Env, d *undo.Diff, x checkpoint.Difference, dir string, n int) (int, error) {
	old, now, err := d.Contents(x)
	if err != nil {
		_, err = fmt.Fprintf(e.Stderr, "bawn: note: %s is not shown: %s\n", w.show(x.Path), redact.Visible(err.Error()))
		return 0, err
	}
	written := 0
	for side, content := range map[string][]byte{"old": old, "new": now} {
		if err := os.MkdirAll(filepath.Join(dir, side), 0o700); err != nil {
			return 0, err
		}
		if content == nil {
			continue
		}
		written = 1
		if err := os.WriteFile(filepath.Join(dir, side, plainName(n, undo.Show(w.path, x.Path))), content, 0o600); err != nil {
			return 0, err
		}
	}
	return written, nil
}

// plainName is a name that no program obeys, by which people know a path.
func plainName(n int, path string) string {
	clean := strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, path)
	return fmt.Sprintf("%03d_%s", n+1, clean[max(0, len(clean)-150):])
}
