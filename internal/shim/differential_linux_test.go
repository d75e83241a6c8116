package shim

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// differences are lines on which the shim is another shell than bash, and why.
var differences = map[string]string{
	"bash if\\n":           "what can't be parsed is not handed on",
	"argv bash nothing.sh": "the shell names itself by its path",
	"argv bash -c":         "the message is the shim's own",
	"argv bash -o":         "bash lists its options",
	"script read x\\nvalue\\necho \"got $x\"": "x is not exported, and the text after read is its input",
}

const input = "first line\nsecond line\nthird\n"

// TestLikeBash runs the lines of testdata by real shells and by the shim.
func TestLikeBash(t *testing.T) {
	testenv.Need(t, "bash")
	data, err := os.ReadFile("testdata/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	r.human.set(always(bawn.Allow))
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		t.Run(line, func(t *testing.T) {
			argv, stdin := command(t, line)
			populate(t, r.dir)
			want := finish(t, real(r, argv), stdin)
			populate(t, r.dir)
			got := finish(t, r.shell(argv...), stdin)
			diff := cmp.Diff(want, got)
			switch why, known := differences[line]; {
			case known && diff == "":
				t.Errorf("no difference, though %s", why)
			case !known && diff != "":
				t.Errorf("(-real +shim):\n%s", diff)
			}
		})
	}
}

// command is the argv and the input of a line of the test data.
func command(t *testing.T, line string) (argv []string, stdin string) {
	t.Helper()
	kind, text, _ := strings.Cut(line, " ")
	if kind != "argv" {
		text = unescape(t, text)
	}
	switch kind {
	case "script":
		return []string{"bash"}, text
	case "argv":
		return words(t, text), input
	}
	return []string{kind, "-c", text}, input
}

func unescape(t *testing.T, s string) string {
	t.Helper()
	s, err := strconv.Unquote(`"` + strings.ReplaceAll(s, `"`, `\"`) + `"`)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// words splits at blanks, but for those within double quotes.
func words(t *testing.T, s string) (out []string) {
	t.Helper()
	for s != "" {
		if s[0] == '"' {
			quoted, err := strconv.QuotedPrefix(s)
			if err != nil {
				t.Fatal(err)
			}
			word, err := strconv.Unquote(quoted)
			if err != nil {
				t.Fatal(err)
			}
			out, s = append(out, word), strings.TrimPrefix(s[len(quoted):], " ")
			continue
		}
		word, rest, _ := strings.Cut(s, " ")
		out, s = append(out, word), rest
	}
	return out
}

// real is a command that runs the real shell.
func real(r *rig, argv []string) *exec.Cmd {
	cmd := exec.Command("/bin/" + argv[0])
	cmd.Args, cmd.Env, cmd.Dir = argv, r.environ, r.dir
	return cmd
}

// populate makes the test's own directory what it is before each line.
func populate(t *testing.T, dir string) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := root.RemoveAll(filepath.Base(name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"file.txt": "banana\napple\ncherry\n", "script.sh": "echo \"script $# $1\"\nexit 6\n", "dir/inner": ""} {
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := root.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
