package hooksetup

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestShell: what the user has in a start-up file is there before and after, whatever it
// ends in, and a file that was not there is gone again.
func TestShell(t *testing.T) {
	for name, before := range map[string][]byte{"none": nil, "empty": {}, "a line": []byte("alias a=b\n"), "no line end": []byte("alias a=b"), "CRLF": []byte("a\r\n")} {
		home := t.TempDir()
		file := filepath.Join(home, ".bashrc")
		if before != nil {
			if err := os.WriteFile(file, before, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := Setup{Bawn: "/opt/a b/bawn", Home: home, Project: home, Root: "/", State: filepath.Join(home, "state"), Getenv: func(n string) string { return map[string]string{"SHELL": "/bin/bash"}[n] }}
		apply := func(undo bool) {
			t.Helper()
			p, err := s.Shell([]Starter{{Program: "claude"}, {Program: "codex", Later: true}})
			if undo {
				p, err = s.UndoShell()
			}
			if err == nil {
				err = s.Apply(p)
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		apply(false)
		first, _ := os.ReadFile(file)
		if !bytes.HasPrefix(first, before) || !strings.Contains(string(first), `command '/opt/a b/bawn' run -- "$@"`) {
			t.Errorf("%s: %s", name, first)
		}
		apply(false)
		if twice, _ := os.ReadFile(file); !bytes.Equal(twice, first) {
			t.Errorf("%s: twice is %s", name, twice)
		}
		apply(true)
		if after, err := os.ReadFile(file); !bytes.Equal(after, before) || (err == nil) != (before != nil) {
			t.Errorf("%s: %q, %v after undo; want %q", name, after, err, before)
		}
	}
}

// TestShellTorn: a file from which the user has taken half of our lines is left.
func TestShellTorn(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".zshrc"), []byte(shellBegin+"function claude {\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Setup{Bawn: "/bawn", Home: home, Root: "/", State: filepath.Join(home, "state"), Getenv: func(n string) string { return map[string]string{"SHELL": "/bin/zsh"}[n] }}
	_, put := s.Shell([]Starter{{Program: "claude"}})
	_, undo := s.UndoShell()
	for _, err := range []error{put, undo} {
		if err == nil || !strings.Contains(err.Error(), ".zshrc") {
			t.Errorf("%v; want an error that names the file", err)
		}
	}
}

// TestShellRuns has the shells that are installed read their file and start agents: in
// Bawn, without it in a session and by "command", and none that is not installed.
func TestShellRuns(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			testenv.Need(t, shell)
			program, err := exec.LookPath(shell)
			if err != nil {
				t.Fatal(err)
			}
			home := t.TempDir()
			bin := filepath.Join(home, `a 'b\`)
			say := "#!/bin/sh\necho \"${0##*/}\" \"$@\"\n"
			for _, name := range []string{"bawn", "claude", "codex"} {
				writeProgram(t, filepath.Join(bin, name), say)
			}
			s := Setup{Bawn: filepath.Join(bin, "bawn"), Home: home, Root: "/", State: filepath.Join(home, "state"), Getenv: func(n string) string { return map[string]string{"SHELL": program}[n] }}
			p, err := s.Shell([]Starter{{Program: "claude"}, {Program: "codex", Later: true}, {Program: "gemini", Later: true}})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Apply(p); err != nil {
				t.Fatal(err)
			}
			run := func(line string, env ...string) string {
				c := exec.CommandContext(testenv.Context(t), program, "-i", "-c", line)
				if shell == "bash" {
					c.Args = []string{program, "--rcfile", s.StartFile(), "-i", "-c", line}
				}
				c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it would take the tester's terminal
				c.Env = append([]string{"HOME=" + home, "TERM=dumb", "PATH=" + bin + ":/usr/bin:/bin"}, env...)
				out, _ := c.Output()
				return string(out)
			}
			for _, try := range []struct{ line, env, want string }{
				{"claude -p 'a  b'", "A=", "bawn run -- claude -p a  b\n"},
				{"codex", "A=", "bawn run -- codex\n"},
				{"command claude -p", "A=", "claude -p\n"},
				{"claude -p", "BAWN_SESSION=x", "claude -p\n"},
				{"gemini", "A=", ""},
			} {
				if got := run(try.line, try.env); got != try.want {
					t.Errorf("%s %q: %q; want %q", try.env, try.line, got, try.want)
				}
			}
		})
	}
}

func writeProgram(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
