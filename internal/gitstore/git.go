package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/redact"
)

// Bounds of every git that is run.
const (
	maxOutput  = 512 << 20
	maxMessage = 4 << 10
	gitTime    = 10 * time.Minute
	endTime    = 2 * time.Second // for a git's leftovers
)

// A hostGit runs git on the host's own git directories.
type hostGit struct{ program string }

// findGit finds git where no guest can have put it.
func findGit(pathVariable, workspace string) (*hostGit, error) {
	dirs := append([]string{"/usr/bin", "/usr/local/bin", "/bin"}, filepath.SplitList(pathVariable)...)
	for _, dir := range dirs {
		p, err := filepath.EvalSymlinks(filepath.Join(dir, "git"))
		if err != nil || !filepath.IsAbs(p) || fspath.Below(p, workspace) {
			continue
		}
		if fi, err := os.Stat(p); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return &hostGit{filepath.Join(dir, "git")}, nil
		}
	}
	return nil, errors.New("there is no git on this machine")
}

// environ is that of every git, on both sides: nothing of it is the human's.
func environ() []string {
	return []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0", "GIT_PAGER=cat", "GIT_EDITOR=false", "GIT_SSH_COMMAND=false", "GIT_ASKPASS=false",
		"GIT_AUTHOR_NAME=bawn", "GIT_AUTHOR_EMAIL=bawn@localhost", "GIT_COMMITTER_NAME=bawn", "GIT_COMMITTER_EMAIL=bawn@localhost",
	}
}

// pins are settings that win over those of any repository.
var pins = []string{
	"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.attributesFile=/dev/null", "-c", "core.excludesFile=/dev/null", "-c", "core.pager=cat", "-c", "core.alternateRefsCommand=true",
	"-c", "core.sshCommand=false", "-c", "protocol.allow=never", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "credential.helper=", "-c", "fetch.recurseSubmodules=false", "-c", "core.untrackedCache=keep",
}

// A call is one git.
type call struct {
	args  []string
	env   []string
	in    io.Reader
	out   io.Writer // nil: the result
	limit int64     // of the result; maxOutput for 0
}

// run runs git on the host's git directory of a unit. A context that ends keeps it
// from starting.
func (g *hostGit) run(ctx context.Context, u *unit, c call) ([]byte, error) {
	args := append([]string{"--git-dir=" + u.gitDir()}, pins...)
	if u.WorkTree != "" {
		args = append(args, "--work-tree="+u.WorkTree)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// At a session's end it may finish: a killed git leaves its locks in the
	// human's repository.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), gitTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, g.program, append(args, c.args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it removes them then
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.WaitDelay = append(environ(), c.env...), "/", c.in, endTime
	out := &bounded{limit: c.limit}
	cmd.Stdout = out
	if c.out != nil {
		cmd.Stdout = c.out
	}
	said := &bounded{limit: maxMessage, cut: true}
	cmd.Stderr = said
	alone(cmd)
	if err := cmd.Run(); err != nil {
		return nil, &gitError{c.args[0], message(said.Bytes()), err}
	}
	return out.Bytes(), nil
}

// alone keeps the signals of the human's terminal from a git.
func alone(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// A gitError holds a git's message.
type gitError struct {
	verb, said string
	err        error
}

func (e *gitError) Error() string {
	if e.said == "" {
		return fmt.Sprintf("git %s: %v", e.verb, e.err)
	}
	return fmt.Sprintf("git %s: %s", e.verb, e.said)
}

func (e *gitError) Unwrap() error { return e.err }

// message is the first line of a git's message, fit to be shown.
func message(text []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return redact.Visible(strings.ToValidUTF8(line[:min(len(line), 300)], "?"))
}

// bounded keeps the written bytes, up to a limit. With cut the rest is dropped.
type bounded struct {
	bytes.Buffer
	limit int64
	cut   bool
}

func (b *bounded) Write(p []byte) (int, error) {
	limit := b.limit
	if limit == 0 {
		limit = maxOutput
	}
	left := max(limit-int64(b.Len()), 0)
	if int64(len(p)) <= left {
		return b.Buffer.Write(p)
	}
	b.Buffer.Write(p[:left])
	if b.cut {
		return len(p), nil
	}
	return int(left), errTooMuch
}
