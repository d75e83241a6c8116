package executor

import (
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// statement runs one statement as a shell's next one.
func (l *lab) statement(t *testing.T, shell, text string, from intent.State) (string, Change) {
	t.Helper()
	d := Do{Argv: StatementArgv(shell, text), Dir: from.Dir, Env: from.Env, Statement: true}
	return l.run(t, d)
}

// TestStatements runs statements one after the other, as a shell that reads
// them from its input would.
func TestStatements(t *testing.T) {
	for _, shell := range []string{"bash", "dash"} {
		t.Run(shell, func(t *testing.T) {
			testenv.Need(t, shell)
			l := start(t)
			at := intent.State{Dir: t.TempDir(), Env: []string{"PATH=/usr/bin:/bin"}}
			if err := os.Mkdir(at.Dir+"/a'b c", 0o755); err != nil {
				t.Fatal(err)
			}
			for _, step := range []struct {
				text, out string
				code      int
			}{
				{"cd \"a'b c\"", "", 0},
				{"basename \"$PWD\"; pwd >/dev/null", "a'b c\n", 0},
				{"export A='1\n2' B=\"it's\"; C=3", "", 0},
				{"echo \"$A\" $B $C-$#-${1-none}", "1\n2 it's -0-none\n", 0},
				{"unset B; export A=2", "", 0},
				{"echo $A ${B-gone}", "2 gone\n", 0},
				{"false", "", 1},
				{"(exit 9)", "", 9},
				{"{ sh -c 'kill -9 $$'; } 2>/dev/null", "", 137},
				{"cd /no/such 2>/dev/null", "", 0},
				{"basename \"$PWD\"", "a'b c\n", 0},
				{"ln -s . here && cd here", "", 0},
				{"basename \"$PWD\"; basename \"$(pwd -P)\"", "here\na'b c\n", 0},
				{"cat <<E\nhere $A\nE", "here 2\n", 0},
				{"for i in 1 2; do\n echo $i\ndone", "1\n2\n", 0},
				{"f() { echo from f; }; f", "from f\n", 0},
				{"echo end # a comment", "end\n", 0},
			} {
				out, end := l.statement(t, shell, step.text, at)
				code := end.Status.ExitStatus()
				if strings.HasPrefix(step.text, "cd /no") && code != 0 {
					code = 0 // 1 or 2, by shell
				}
				if out != step.out || code != step.code || end.State == nil || end.State.Ended {
					t.Fatalf("%q: got %q, %d, %+v", step.text, out, code, end.State)
				}
				at = *end.State
			}
			if !slices.Contains(at.Env, "A=2") || slices.ContainsFunc(at.Env, func(kv string) bool { return strings.HasPrefix(kv, "_=") || strings.HasPrefix(kv, "C=") }) {
				t.Errorf("the environment is %q", at.Env)
			}
		})
	}
}

// TestStatementsThatEndTheShell: what follows goes to nobody.
func TestStatementsThatEndTheShell(t *testing.T) {
	l := start(t)
	at := intent.State{Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}}
	for text, code := range map[string]int{"exit 3": 3, "exec true": 0, "set -e; false; echo no": 1, "exit": 0} {
		out, end := l.statement(t, "bash", text, at)
		if out != "" || end.Status.ExitStatus() != code || end.State == nil || !end.State.Ended || len(end.State.Env) != 0 {
			t.Errorf("%q: got %q, %+v, %+v", text, out, end.Status, end.State)
		}
	}
	if _, end := l.statement(t, "bash", "kill -9 $$", at); end.Status.Signal() != syscall.SIGKILL || end.State == nil || !end.State.Ended {
		t.Errorf("got %+v", end)
	}
}

// TestStatementsLeaveNoDescriptor: neither a statement's commands nor what it
// leaves in the background has the one for the state, and a background command
// keeps nobody waiting.
func TestStatementsLeaveNoDescriptor(t *testing.T) {
	l := start(t)
	at := intent.State{Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}}
	for _, shell := range []string{"bash", "dash"} {
		out, end := l.statement(t, shell, "sh -c 'ls /proc/$$/fd'", at)
		if got := strings.Fields(out); !slices.Equal(got, []string{"0", "1", "2"}) || end.State == nil {
			t.Errorf("%s: a command has descriptors %q", shell, got)
		}
		out, end = l.statement(t, shell, "while :; do sleep 1; done >/dev/null 2>&1 & echo started", at)
		if out != "started\n" || end.State == nil || end.State.Dir != "/" {
			t.Errorf("%s: got %q, %+v", shell, out, end)
		}
	}
}

// TestStateIsBounded: a statement that exports more than a state may have
// leaves the shell as it was.
func TestStateIsBounded(t *testing.T) {
	l := start(t)
	at := intent.State{Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}}
	text := `x=$(head -c 100000 /dev/zero | tr '\0' x); export A=$x B=$x C=$x D=$x E=$x F=$x; (exit 4)`
	if _, end := l.statement(t, "bash", text, at); end.State != nil || end.Status.ExitStatus() != 4 {
		t.Errorf("got %+v", end.Status)
	}
}

// TestStatementReadsItsInput: the statement's standard input is the caller's.
func TestStatementReadsItsInput(t *testing.T) {
	l := start(t)
	r, w, _ := os.Pipe()
	_, _ = io.WriteString(w, "line\n")
	w.Close()
	d := Do{Argv: StatementArgv("dash", "read x; export x"), Dir: "/", Env: []string{"PATH=/bin"}, Stdio: [3]bool{true}, Statement: true}
	p, err := l.Do(testenv.Context(t), l.signed(t, d), [3]*os.File{r})
	r.Close()
	if err != nil {
		t.Fatal(err)
	}
	if end := last(t, p); end.State == nil || !slices.Contains(end.State.Env, "x=line") {
		t.Errorf("got %+v", end)
	}
}

func TestReadState(t *testing.T) {
	for text, want := range map[string]*intent.State{
		"":                                       {Ended: true},
		"3\x00/w\x00A=b\x00_=/usr/bin/env\x00":   {Dir: "/w", Env: []string{"A=b"}},
		"0\x00//w/../x\x00":                      {Dir: "/x", Env: []string{}},
		"0\x00/\x00A=1\x00A=2\x00none\x00=x\x00": {Dir: "/", Env: []string{"A=1"}},
		"0\x00/w":                                nil,
		"0\x00":                                  nil,
		"x\x00/w\x00":                            nil,
		"256\x00/w\x00":                          nil,
		"-1\x00/w\x00":                           nil,
		"0\x00w\x00":                             nil,
	} {
		if got, _, _ := readState([]byte(text)); cmp.Diff(want, got) != "" {
			t.Errorf("%q: got %+v", text, got)
		}
	}
}

// FuzzReadState: a shell is a guest's, and writes what it likes.
func FuzzReadState(f *testing.F) {
	f.Add([]byte("0\x00/w\x00A=b\x00_=x\x00"))
	f.Add([]byte(""))
	f.Add([]byte("7\x00/\x00\x00\x00=\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, code, _ := readState(b)
		if s == nil || s.Ended {
			return
		}
		d := Do{Argv: []string{"true"}, Dir: s.Dir, Env: s.Env}
		if _, err := d.Digest(session, plan); err != nil || code < 0 || code > 255 {
			t.Errorf("no command can follow in %+v: %v", s, err)
		}
	})
}
