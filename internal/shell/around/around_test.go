package around

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// claude is a line of Claude Code 2.1.329, where it has no snapshot of a shell.
func claude(command string) string {
	return `\builtin shopt -u extglob 2>/dev/null || true && { \builtin unalias -- 'which'; \builtin unset -f -- 'which'; } >/dev/null 2>&1 || true && ` +
		`eval ` + command + ` < /dev/null && pwd -P >| /tmp/claude-1-cwd`
}

// gemini is a line of Gemini CLI 0.61.0.
func gemini(command string) string {
	return "shopt -u promptvars nullglob extglob nocaseglob dotglob; _bgpids_file='/tmp/bgpids-1'\n(\n  trap 'jobs -p > \"$_bgpids_file\"' EXIT\n" +
		command + "\n)\n__code=$?\nexit $__code"
}

// TestWithout takes away agents' own words, and nothing of any other line.
func TestWithout(t *testing.T) {
	for text, want := range map[string]string{
		claude(`'echo x; cd /'`):    "{\necho x; cd /\n} < /dev/null && pwd -P >| /tmp/claude-1-cwd",
		claude(`'echo '"'"'it'"'"`): "{\necho 'it'\n} < /dev/null && pwd -P >| /tmp/claude-1-cwd",
		"source /h/.claude/shell-snapshots/snapshot-bash-1-x.sh 2>/dev/null || true && eval 'a'": "a",
		"SNAPSHOT_FILE=/h/.claude/shell-snapshots/snapshot-bash-1-x.sh\necho evil":               ":", // nothing of it is executed
		gemini("echo x"):        "echo x",
		gemini("cat <<E\nx\nE"): "cat <<E\nx\nE",
		gemini("exit 3 # )"):    "exit 3 # )",
		gemini("echo x")[len("shopt -u promptvars nullglob extglob nocaseglob dotglob; "):]: "echo x",
	} {
		l, ok := Without(text)
		if got := l.Around(l.Command); !ok || got != want {
			t.Errorf("%s\ngot %q, %v; want %q", text, got, ok, want)
		}
		if strings.Contains(l.Command, "pwd -P") || strings.Contains(l.Command, "eval") || strings.HasPrefix(l.Command, "{") {
			t.Errorf("%s\nwhat is judged is %q", text, l.Command)
		}
	}
	for name, text := range map[string]string{
		"no agent's":            "echo eval x",
		"evaluated by others":   "eval 'x'; y",
		"nothing evaluated":     "true && pwd -P # eval x",
		"more behind":           claude("'x'") + " && evil",
		"an expansion":          claude(`"$(evil)"`),
		"its output elsewhere":  claude("'x' > evil"),
		"another's snapshot":    "SNAPSHOT_FILE=/h/.bashrc\necho x",
		"a file elsewhere":      strings.Replace(claude("'x'"), "/tmp/", "/home/u/.ssh/", 1),
		"not a clean name":      strings.Replace(claude("'x'"), "/tmp/", "/tmp/../etc/", 1),
		"a pipe":                claude("'x'") + " | evil",
		"not read":              claude("'x'") + " '",
		"an option set":         strings.Replace(claude("'x'"), "shopt -u extglob 2>/dev/null", "evil -u extglob 2>/dev/null", 1),
		"another trap":          strings.Replace(gemini("x"), "jobs -p", "evil", 1),
		"an expansion's file":   strings.Replace(gemini("x"), "'/tmp/bgpids-1'", `"$(evil)"`, 1),
		"another variable":      strings.Replace(gemini("x"), "_bgpids_file='/tmp", "PATH=x _bgpids_file='/tmp", 1),
		"behind the exit":       gemini("x") + "\nevil _bgpids_file=",
		"a shell that is piped": strings.Replace(gemini("x"), "\n)\n", "\n) | evil\n", 1),
		"an option":             strings.Replace(gemini("x"), "shopt -u", "shopt -s", 1),
		"no command":            strings.Replace(gemini("x"), "\nx\n", "\n", 1),
		"a list":                strings.Replace(gemini("x"), "='/tmp/bgpids-1'", "=(a)", 1),
		"appended":              strings.Replace(gemini("x"), "='/tmp/bgpids-1'", "+=a", 1),
		"no group":              "_bgpids_file=x; true; __code=$?; exit $__code",
	} {
		if got, ok := Without(text); ok {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// TestSame runs lines with and without an agent's words: their output and their
// codes are the same.
func TestSame(t *testing.T) {
	testenv.Need(t, "bash")
	run := func(text string) (string, int) {
		c := exec.Command("bash", "-c", text)
		c.Dir = t.TempDir()
		out, _ := c.Output() // the code says it
		return string(out), c.ProcessState.ExitCode()
	}
	t.Setenv("TMPDIR", "/tmp")
	cwd := t.TempDir() + "/claude-1-cwd"
	for _, command := range []string{"echo x", "exit 3", "false", "cat; echo read", "cd / && pwd", "cat <<E\nhere\nE", "echo a &\nwait", "echo 'it'\"'\"'s'", "f() { return 4; }; f", "echo x # comment"} {
		quoted := "'" + strings.ReplaceAll(command, "'", `'"'"'`) + "'"
		for _, text := range []string{strings.ReplaceAll(claude(quoted), "/tmp/claude-1-cwd", cwd), strings.ReplaceAll(gemini(command), "/tmp/bgpids-1", t.TempDir()+"/pids")} {
			l, ok := Without(text)
			out, code := run(text)
			if got, gotCode := run(l.Around(l.Command)); !ok || got != out || gotCode != code {
				t.Errorf("%s\ngot %v %q %d, want %q %d", text, ok, got, gotCode, out, code)
			}
		}
	}
}

// FuzzWithout wants that what is left is shorter in nothing but an agent's own
// words: each word of the command is a word of the line.
func FuzzWithout(f *testing.F) {
	for _, text := range []string{claude("'echo x'"), gemini("echo x"), "eval x", "_bgpids_file=", claude(`"a\$b"`)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, ok := Without(text)
		if !ok {
			return
		}
		got := l.Around(l.Command)
		for _, word := range strings.FieldsFunc(got, func(c rune) bool { return c < 'a' || c > 'z' }) {
			if word != "dev" && word != "null" && !strings.Contains(text, word) && !strings.ContainsAny(text, `'"\`) {
				t.Errorf("%q is not of %q", word, text)
			}
		}
	})
}
