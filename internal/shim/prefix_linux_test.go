package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/hook"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/sessionsocket"
	"github.com/bawn-dev/bawn/internal/shell"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// cwdFile is where the lines of these tests leave their directory.
var cwdFile = filepath.Join(os.TempDir(), fmt.Sprintf("claude-%d-cwd", os.Getpid()))

// claudes is a line as Claude Code starts a command through its prefix.
func claudes(command string) string {
	return `source /h/.claude/shell-snapshots/snapshot-bash-1-x.sh 2>/dev/null || true && ` +
		`{ \builtin shopt -u extglob || \builtin setopt NO_EXTENDED_GLOB NO_EQUALS; } >/dev/null 2>&1 || true && ` +
		`{ \builtin unalias -- 'which'; \builtin unset -f -- 'which'; } >/dev/null 2>&1 || true && ` +
		`eval ` + command + ` < /dev/null && pwd -P >| ` + cwdFile
}

// judges opens a session socket that allows what has no "evil" in it, in canonical words,
// and tells what it was asked.
func judges(t *testing.T) (path string, asked func() []string) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "socket")
	l, err := sessionsocket.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 64)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- sessionsocket.Serve(ctx, l, sessionsocket.Handlers{Judge: func(_ context.Context, c *sessionsocket.Conn, j intent.Judge) {
			text := j.Actions[0].Resource
			heard <- text
			v := intent.Verdict{Verdict: "allow", Env: []string{"PINNED=yes"}}
			var err error
			if v.Canonical, err = shell.Canonical(text, shell.Bash); err != nil || strings.Contains(text, "evil") {
				v = intent.Verdict{Verdict: "deny", Rule: "test", Reason: "no"}
			}
			v.Canonical = strings.Replace(v.Canonical, "server", "judged", 1) // so that it shows
			_ = c.Send(intent.Reply{Verdict: &v})
		}})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return path, func() (list []string) {
		for {
			select {
			case text := <-heard:
				list = append(list, text)
			default:
				return list
			}
		}
	}
}

// TestPrefix starts lines as an agent does. What runs is what was judged, and
// nothing where that was denied.
func TestPrefix(t *testing.T) {
	testenv.Need(t, "bash")
	path, asked := judges(t)
	dir := t.TempDir()
	t.Cleanup(func() { os.Remove(cwdFile) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		line, asked, runs string
		code              int
	}{
		"a tool's command":    {line: claudes(`'echo "it'"'"'s" $PINNED;   cd /'`), asked: `echo "it's" $PINNED;   cd /`, runs: "it's yes\n"},
		"denied":              {line: claudes("'echo evil'"), asked: "echo evil", code: codeDenied},
		"a server":            {line: "echo server  $PINNED", asked: "echo server  $PINNED", runs: "judged yes\n"},
		"not to be read":      {line: "echo 'x", code: codeDenied},
		"an expansion":        {line: claudes(`"echo $HOME evil"`), asked: "whole", code: codeDenied},
		"more than Claude's":  {line: claudes("'echo x'") + " && echo evil", asked: "whole", code: codeDenied},
		"two commands":        {line: claudes("'echo x'") + " && eval 'echo evil'", asked: "whole", code: codeDenied},
		"in its block":        {line: strings.Replace(claudes("'echo x'"), `\builtin unalias`, `evil`, 1), asked: "whole", code: codeDenied},
		"another file":        {line: strings.Replace(claudes("'echo x'"), ".claude/shell-snapshots", "evil", 1), asked: "whole", code: codeDenied},
		"in the background":   {line: claudes("'echo evil'") + " &", asked: "whole", code: codeDenied},
		"not bawn's hook":     {line: "bawn hook claude; echo evil", asked: "whole", code: codeDenied},
		"nor this":            {line: "bawn hook claude || { echo evil >/tmp/x; exit 2; }", asked: "whole", code: codeDenied},
		"nor that":            {line: "bawn hook claude || { evil; exit 2; }", asked: "whole", code: codeDenied},
		"a subscript":         {line: `bawn hook no || { printf -v 'a[$(echo evil)]' x; exit 2; }`, asked: "whole", code: codeDenied},
		"words of its own":    {line: "bawn hook claude || { echo evil; exit 2; }", asked: "whole", code: codeDenied},
		"and more":            {line: "bawn hook claude" + hook.OrDeny + "; echo evil", asked: "whole", code: codeDenied},
		"a process":           {line: "eval 'true' < <(echo evil)", asked: "whole", code: codeDenied},
		"in a redirection":    {line: `true > "$(echo evil)" && eval true`, asked: "whole", code: codeDenied},
		"of its block":        {line: strings.Replace(claudes("'echo x'"), "} >/dev/null", `} >"$(echo evil)"`, 1), asked: "whole", code: codeDenied},
		"within its block":    {line: strings.Replace(claudes("'echo x'"), "shopt -u extglob", "shopt -u evil >/x", 1), asked: "whole", code: codeDenied},
		"any file":            {line: "eval 'true' && pwd -P >| /tmp/evil", asked: "whole", code: codeDenied},
		"any snapshot":        {line: "source /evil/shell-snapshots/x && eval 'true'", asked: "whole", code: codeDenied},
		"away from there":     {line: "source /h/shell-snapshots/../evil/snapshot-x && eval 'true'", asked: "whole", code: codeDenied},
		"nor with a variable": {line: "X=evil bawn hook claude", asked: "whole", code: codeDenied},
	} {
		code, out := start(t, test.line, path, dir)
		want := test.asked
		if want == "whole" {
			want = test.line
		}
		if got := strings.Join(asked(), "|"); got != want {
			t.Errorf("%s: it was asked about %q, want %q", name, got, want)
		}
		if code != test.code || out != test.runs {
			t.Errorf("%s: got %d %q, want %d %q", name, code, out, test.code, test.runs)
		}
	}
	if cwd, err := os.ReadFile(cwdFile); string(cwd) != "/\n" {
		t.Errorf("the agent's own words: got %q, %v", cwd, err)
	}
	// Whichever bawn the line names, it is this one that is called.
	t.Setenv(roleVariable, "hook")
	code, out := start(t, `'/tmp/evil/bawn' hook claude`+hook.OrDeny, path, dir)
	if got := asked(); len(got) != 0 || code != 2 || out != "hook claude\n" {
		t.Errorf("its own hook: asked %q, got %d %q", got, code, out)
	}
	if w, err := unwrap(`'/tmp/evil/bawn' hook claude`); err != nil || !w.hook || w.text("") != "'"+self+"' hook claude\n" {
		t.Errorf("its own hook: got %+v, %v", w, err)
	}
	if code, out := start(t, "echo x", filepath.Join(dir, "no-socket"), dir); code != codeDenied || out != "" {
		t.Errorf("without a session socket: got %d %q", code, out)
	}
}

// start is the prefix, whose shell is a child here.
func start(t *testing.T, line, path, dir string) (code int, out string) {
	t.Helper()
	ran := errors.New("it has run")
	var status int
	code = prefix(line, os.Environ(), path, func(argv, environ []string) error {
		cmd := exec.Command(prefixShell)
		cmd.Args, cmd.Env, cmd.Dir = argv, environ, dir
		b, err := cmd.Output()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			status = exit.ExitCode()
		}
		out = string(b)
		return ran
	})
	if out != "" || status != 0 {
		return status, out
	}
	return code, out
}

// FuzzUnwrap takes lines apart. What is put together again with the command
// that was found is the same line, and a hook's is one only where it begins so.
func FuzzUnwrap(f *testing.F) {
	for _, line := range []string{claudes("'ls'"), claudes(`"x" 'y'`), "ls", "bawn hook claude || { exit 2; }", "'", "eval 'x'", "eval eval"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		w, err := unwrap(line)
		if err != nil {
			return
		}
		switch {
		case w.hook && !strings.Contains(line, "hook"):
			t.Fatalf("%q was taken for a hook's", line)
		case w.eval != nil:
			again, err := unwrap(w.text(w.command))
			if err != nil || again.eval == nil || again.command != w.command {
				t.Fatalf("%q: %q became %+v, %v", line, w.command, again, err)
			}
		}
	})
}
