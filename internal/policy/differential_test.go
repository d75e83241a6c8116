package policy

import (
	"context"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// payload is the one program that the shells of these tests find. It is no reader, so no
// line that runs it is ever allowed where nothing contains it.
const payload = "pwn"

// A lair is where a shell runs lines in which only the payload can be found.
type lair struct{ shell, dir, bin, mark string }

func newLair(t *testing.T, shell string) *lair {
	t.Helper()
	testenv.Need(t, shell)
	base := t.TempDir()
	l := &lair{shell, filepath.Join(base, "work"), filepath.Join(base, "bin"), filepath.Join(base, "mark")}
	for _, dir := range []string{l.dir, l.bin} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(l.bin, payload), []byte("#!/bin/sh\n: > "+l.mark+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return l
}

// runs reports whether the shell runs the payload when it is given a line.
func (l *lair) runs(t *testing.T, line string) bool {
	t.Helper()
	os.Remove(l.mark)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	path, err := exec.LookPath(l.shell)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, path, "-c", line)
	cmd.Dir, cmd.Env = l.dir, []string{"PATH=" + l.bin, "HOME=" + l.dir, "TMPDIR=/tmp"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 100 * time.Millisecond
	_ = cmd.Run() // most lines fail
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // background jobs
	}
	_, err = os.Stat(l.mark)
	return err == nil
}

// allowed returns the text that the policy lets run at the most permissive mode.
func (l *lair) allowed(p *Policy, line string, c bawn.Contained) (string, bool) {
	q := Question{
		Action: bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: line, Dir: l.dir}, Workspace: l.dir, Home: "/home/u", System: "linux",
		Mode: bawn.ModePermissive, Autonomy: bawn.AutonomyFull, Contained: c,
	}
	d := p.Decide(&q)
	return d.Canonical, d.Verdict == bawn.Allow
}

// splinters are what a line is spoilt with.
var splinters = []string{
	payload, payload, payload + " x", " ", "\n", ";", "&", "|", "&&", "||", "|&", "#", "\\", "\\\n", "\r", "\t", "'", `"`, "`", "$(", ")", "(", "{ ", " }",
	"${x:-", "${x#", "${x/", "}", "$((", "))", "((", "$[", "]", "[", "[[ ", " ]]", "$'", `$"`, "<(", ">(", "<<E", "<<'E'", "<<-E", "\nE\n", "<<<", ">", "<",
	">&", "&>", "2>&1", "if ", "; then ", "; fi", "while ", "; do ", "; done", "for x in ", "case x in ", "x) ", ";; esac", "f() ", "! ", "time ", "time -- ", "coproc ",
	"x=", "x=(", "a[", "~", "*", "?", "@(", "let ", "eval ", "exec ", "command ", "builtin ", "trap ", "alias ", ". ", "test -v ", "-eq ", "printf -v ",
	"\\\r\n", "#\\\n", " #", "$HOME#", `"a"#`, "$(x)#", "\n)", "(x ", "$(x ", "''", `""`, "xargs ", "env ", "nice ", "timeout 1 ", "sh -c ", "bash -c ", "find . -exec ", " {} \\;", " +", "echo ",
}

// spoil puts splinters, the payload among them, into a line.
func spoil(r *rand.Rand, line string) string {
	for range 1 + r.Intn(5) {
		at := r.Intn(len(line) + 1)
		line = line[:at] + splinters[r.Intn(len(splinters))] + line[at:]
	}
	at := r.Intn(len(line) + 1)
	return line[:at] + payload + line[at:]
}

// TestBothIsSplit holds a find of the test below: dash ends a command at the
// first character of "&>" and begins another behind the file's name.
func TestBothIsSplit(t *testing.T) {
	l, p := newLair(t, "dash"), corpusPolicy(t)
	for _, line := range []string{"echo&> hello pwn", "echo &>> hello pwn", "echo $(echo &> hello pwn)"} {
		if !l.runs(t, line) {
			t.Fatalf("dash does not run the payload of %q: this test can't fail", line)
		}
		if text, ok := l.allowed(p, line, bawn.ContainedFully); !ok || l.runs(t, text) {
			t.Errorf("%q: allowed %v as %q, of which dash runs the payload", line, ok, text)
		}
	}
}

// TestAllowedLinesRunNothingElse is the differential test against real shells:
// if the answer is allow, the payload does not run.
func TestAllowedLinesRunNothingElse(t *testing.T) {
	p := corpusPolicy(t)
	lines := corpus(t, "benign.tsv")
	for _, shell := range []string{"bash", "dash"} {
		t.Run(shell, func(t *testing.T) {
			l := newLair(t, shell)
			if !l.runs(t, "true; "+payload) {
				t.Fatal("the payload does not run: this test can't fail")
			}
			seed := testenv.FuzzSeed(t)
			r := rand.New(rand.NewSource(seed))
			tried, allowed := 0, 0
			for end := time.Now().Add(testenv.FuzzTime(t)); time.Now().Before(end); tried++ {
				line := spoil(r, lines[r.Intn(len(lines))].command)
				text, ok := l.allowed(p, line, bawn.Contained{})
				if !ok {
					continue
				}
				allowed++
				if l.runs(t, text) {
					t.Fatalf("seed %d: %q is allowed, and %s runs the payload when it is given %q", seed, line, shell, text)
				}
				if shell == "bash" && line != text && l.runs(t, line) { // as an agent does that its hook can only stop
					t.Fatalf("seed %d: %q is allowed, and %s runs the payload of it", seed, line, shell)
				}
			}
			t.Logf("seed %d: %d lines, %d allowed", seed, tried, allowed)
			if allowed == 0 {
				t.Error("no line was allowed: the test tests nothing")
			}
		})
	}
}
