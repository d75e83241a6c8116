//go:build linux || darwin

package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn"
)

type execInput struct {
	Command string `json:"command" jsonschema:"a command line of a shell"`
	Dir     string `json:"dir,omitempty" jsonschema:"the directory to run in; the workspace if it is left out"`
	Seconds int    `json:"timeout_seconds,omitempty" jsonschema:"after which it is ended; 120 if it is left out, at most 600"`
}

// maxCommand is the longest command line, in bytes.
const maxCommand = 100_000

func (s *server) exec(ctx context.Context, in execInput) (string, error) {
	switch {
	case strings.TrimSpace(in.Command) == "":
		return "", errors.New("no command; want a command line of a shell")
	case len(in.Command) > maxCommand || strings.ContainsRune(in.Command, 0):
		return "", fmt.Errorf("a command of %d bytes; want at most %d, and no NUL: write a script and run that", len(in.Command), maxCommand)
	case in.Seconds < 0:
		return "", errors.New("timeout_seconds is at least 1")
	}
	dir, err := s.directory(in.Dir)
	if err != nil {
		return "", err
	}
	text, env := in.Command, s.Environ
	if !s.Handed {
		v, err := s.judge(ctx, "exec", true, bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: in.Command, Dir: dir})
		if err != nil {
			return "", err
		}
		if v.Canonical == "" {
			return "", &deniedError{Verdict{Reason: "the command has no form in which it could be executed", Rule: v.Rule}}
		}
		text, env = v.Canonical, slices.Concat(s.Environ, v.Env)
	}
	return s.run(ctx, text, dir, env, s.patience(in.Seconds))
}

// patience is how long a command may take.
func (s *server) patience(seconds int) time.Duration {
	if seconds == 0 {
		return min(DefaultTimeout, s.Timeout)
	}
	return min(time.Duration(min(seconds, int(MaxTimeout/time.Second)))*time.Second, s.Timeout)
}

// directory is one of the workspace, absolute and without links.
func (s *server) directory(name string) (string, error) {
	if name == "" {
		return s.Workspace, nil
	}
	p, err := s.locate(filepath.Join(name, "x"))
	if err != nil {
		return "", err
	}
	defer p.close()
	return filepath.Dir(p.path), nil
}

// run executes a judged text, and ends all of its process group with it: later
// processes would have no owner.
func (s *server) run(ctx context.Context, text, dir string, env []string, patience time.Duration) (string, error) {
	if s.Shell == "" {
		return "", &deniedError{Verdict{Reason: "there is no shell here", Remedy: "use the other tools"}}
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out := &spool{}
	cmd := exec.CommandContext(ctx, s.Shell, "-c", text)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, quietly(env), out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for output of its leftovers
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start the shell: %w", err)
	}
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails if nothing is left of it
	return report(out, cmd.ProcessState, err, ctx.Err(), patience, time.Since(began)), nil
}

// quietly is an environment in which a shell reads no file of its own.
func quietly(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		return strings.HasPrefix(kv, "BASH_ENV=") || strings.HasPrefix(kv, "ENV=") || strings.HasPrefix(kv, "BASH_FUNC_")
	})
}

// report says how a command ended, behind what it wrote.
func report(out *spool, state *os.ProcessState, err, ended error, patience, took time.Duration) string {
	text := out.String()
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	switch status, _ := state.Sys().(syscall.WaitStatus); {
	case errors.Is(ended, context.DeadlineExceeded):
		return text + fmt.Sprintf("[bawn: ended after %v, its limit; give timeout_seconds, or run less at once]\n", patience)
	case ended != nil:
		return text + "[bawn: cancelled]\n"
	case status.Signaled():
		return text + fmt.Sprintf("[bawn: ended by signal %d (%v)]\n", status.Signal(), status.Signal())
	case errors.Is(err, exec.ErrWaitDelay):
		return text + fmt.Sprintf("[bawn: exit code %d; what it left in the background was ended]\n", state.ExitCode())
	}
	return text + fmt.Sprintf("[bawn: exit code %d, %v]\n", state.ExitCode(), took.Round(time.Millisecond))
}
