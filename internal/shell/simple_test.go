package shell

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"
)

func simple(source string) ([]*syntax.Stmt, string) { return new(quick).read(source) }

// same compares what simple makes of a line with what the parser makes of it. It reports
// whether simple reads the line at all.
func same(t interface{ Errorf(string, ...any) }, source string, d Dialect) bool {
	stmts, text := simple(source)
	if stmts == nil || suspicious(source) != "" {
		return false
	}
	c := Context{Dir: "/w", Home: "/home/u", Shell: d, Names: []string{"PATH"}}
	quick, slow := newReader(source, c), newReader(source, c)
	quick.line.Canonical = text
	quick.list(stmts, quick.start())
	slow.list(slow.parse(source, d), slow.start())
	if !reflect.DeepEqual(quick.line, slow.line) {
		t.Errorf("%q reads\n%+v, and parsed\n%+v", source, quick.line, slow.line)
	}
	return true
}

// TestSimpleLines: a line that is read without the parser reads as with it: those of the
// policy's corpus, and any words.
func TestSimpleLines(t *testing.T) {
	read, of := 0, 0
	files, err := filepath.Glob("../policy/testdata/corpus/*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			for _, part := range append(strings.Split(strings.TrimSpace(line), "\t"), strings.TrimSpace(line)) {
				of++
				for _, d := range []Dialect{Bash, POSIX} {
					if same(t, part, d) {
						read++
					}
				}
			}
		}
	}
	if t.Logf("%d of %d", read, of); read < 1000 {
		t.Errorf("%d lines were compared; want a thousand", read)
	}
	words := append(strings.Fields(leaders.text), "cd", "env", "sudo", "xargs", "sh", "-c", "eval", "ls", "a=b", "FOO=", "1", "2", "-", "--", "x@y", ":", ".", "source", "test", "exec", "trap", "command", "%1", "a+=b", "@", "+", "0", "git", "time", "coproc", "nohup", "!", "{", "}", "[", "[[", "~", "a:~", "~+", "&&", "||", "|", ";", "a;", ">", ">x", "2>&1", "2>", ">>", "<", "'a b'", `"a b"`, `x"y"`, "''")
	rapid.Check(t, func(t *rapid.T) {
		line := strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(words), rapid.StringMatching(`[-a-z0-9_./=:,+@%]{1,6}`)), 1, 6).Draw(t, "words"), " ")
		for _, d := range []Dialect{Bash, POSIX} {
			same(t, line, d)
		}
	})
}

// FuzzSimple: a line that is read without the parser reads as with it.
func FuzzSimple(f *testing.F) {
	for _, line := range []string{
		"ls", "cd web && npm run build", "a | b || c; d", "echo hi > out.txt", "make 2>&1 | tail -3", `grep -rn 'func main' "a b"c src`, "x <f >>g 2> h",
		"a 1>&2", "a ''", "a 2>&1 b", "a >x; b", "time ls; x", "a; export b", `"if" x`, "a=b c", "a && b=c d", "a  b", "a |b", "a;b", "a && ", "a >", "a > ; b", "a 22>x",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		same(t, line, Bash)
		same(t, line, POSIX)
	})
}

// TestSimpleReads are lines that need no parser.
func TestSimpleReads(t *testing.T) {
	for line, want := range map[string]string{
		"cd web && npm run build": "", "git status --short; git diff": "git status --short\ngit diff", "go test ./... 2>&1 | tail -20": "",
		"grep -rn 'func main' src": "", "echo hi > out.txt": "echo hi >out.txt", `git commit -m "a b" || echo no`: "", "cat < a 2> /dev/null": "cat <a 2>/dev/null",
	} {
		if stmts, text := simple(line); stmts == nil || text != want && want+text != line {
			t.Errorf("%q: %d statements, printed as %q", line, len(stmts), text)
		}
	}
}

// TestNotSimple are lines that only the parser reads.
func TestNotSimple(t *testing.T) {
	for _, line := range []string{"", " ls", "ls ", "ls  -l", "a=b ls", "if x", "ls|x", "ls |x", "ls>x", "ls >x y", "ls >", "ls &", "ls 'a", "ls \"$a\"", "ls $x", "ls *", "ls ~", "export A=b", "time ls", "ls\n", "ls é", "x\ty", "! ls", "{ ls", strings.Repeat("a ", 20) + "b", "a; ", "a &&", "a <<b", "ls; if x", "ls && a=b c"} {
		if stmts, _ := simple(line); stmts != nil {
			t.Errorf("%q is read without the parser", line)
		}
	}
}

// TestReadersAreUsedAgain: what was read stays as it was while other lines are read, and
// nothing of one line is in another.
func TestReadersAreUsedAgain(t *testing.T) {
	lines := []string{
		"ls", "cd a && f() { cd b; X=$(cat <c); } && f x | sh", "echo a b >out 2>&1 <in", "X=1 env Y=2 make -j4; $Z", "for i in a b; do (cd $i; rm *) & done", "cat <<E\nx $A\nE", "git status --short", "\x01", "if",
	}
	c := Context{Dir: "/w", Home: "/home/u"}
	want := make([]Line, len(lines))
	for i, line := range lines {
		r := &reader{line: Line{Source: line}, context: c, source: line}
		r.read()
		want[i] = r.line
	}
	kept := make([][]Line, len(lines))
	for range 3 {
		for i, line := range lines {
			kept[i] = append(kept[i], Read(line, c))
		}
	}
	for i, line := range lines {
		for _, got := range kept[i] {
			if !reflect.DeepEqual(got, want[i]) {
				t.Errorf("%q reads\n%+v, and by a reader of its own\n%+v", line, got, want[i])
			}
		}
	}
}
