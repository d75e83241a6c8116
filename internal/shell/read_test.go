package shell

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn/internal/testenv/golden"
)

var testContext = Context{Dir: "/w", Home: "/home/u", Env: map[string]string{"TMPDIR": "/tmp/s"}, Names: []string{"TOKEN"}}

// TestRead compares what is read with testdata/*.txt. There, a line that
// begins with "$ " is a source for bash, with "% " one for dash, with \n and
// the like as in Go; the lines below it are what it runs.
func TestRead(t *testing.T) {
	for _, file := range []string{"commands", "words", "state", "opaque", "nested"} {
		t.Run(file, func(t *testing.T) {
			name := "testdata/" + file + ".txt"
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for line := range strings.Lines(string(data)) {
				mark, source, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
				if mark == "#" || strings.TrimSpace(line) == "" {
					got.WriteString(line)
				}
				if mark != "$" && mark != "%" {
					continue
				}
				c := testContext
				if mark == "%" {
					c.Shell = POSIX
				}
				got.WriteString(line + describe(Read(decode(t, source), c)))
			}
			golden.Compare(t, name, got.String())
		})
	}
}

func decode(t *testing.T, s string) string {
	t.Helper()
	if !strings.Contains(s, `\`) {
		return s
	}
	s, err := strconv.Unquote(`"` + strings.ReplaceAll(s, `"`, `\"`) + `"`)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return s
}

func describe(l Line) string {
	var b strings.Builder
	for _, o := range l.Opaque {
		fmt.Fprintf(&b, "    opaque: %s: %s\n", o.Reason, o.Text)
	}
	for _, c := range l.Commands {
		b.WriteString("    " + describeCommand(c) + "\n")
	}
	return b.String()
}

func describeCommand(c Command) string {
	var parts []string
	for _, a := range c.Assigns {
		mark := ""
		if a.Exported {
			mark = "^"
		}
		parts = append(parts, mark+a.Name+":="+describeWord(a.Value))
	}
	for _, w := range c.Words {
		parts = append(parts, describeWord(w))
	}
	for _, r := range c.Redirects {
		kind := ""
		for i, is := range []bool{r.Reads(), r.Writes(), r.Copies()} {
			if is {
				kind += "RWC"[i : i+1]
			}
		}
		parts = append(parts, strings.TrimSpace(r.Fd+r.Op+kind+" "+describeWord(r.Target)+" "+describeWord(r.Text)))
	}
	if len(c.Via) > 0 {
		parts = append(parts, "via "+strings.Join(c.Via, ", "))
	}
	switch c.Stdin.From {
	case Pipe, File:
		parts = append(parts, fmt.Sprintf("reads %s %d", c.Stdin.From, c.Stdin.Command))
	case Text:
		parts = append(parts, fmt.Sprintf("reads %q", c.Stdin.Text.Text))
	}
	if !slices.Equal(c.Dirs, []string{"/w"}) {
		parts = append(parts, fmt.Sprintf("in %q", c.Dirs))
	}
	if c.Loop {
		parts = append(parts, "loop")
	}
	if c.Background {
		parts = append(parts, "beside")
	}
	if c.Unclear != "" {
		parts = append(parts, "unclear")
	}
	return strings.Join(parts, " | ")
}

func describeWord(w Word) string {
	s := w.Text
	if w.Literal() && s != "" && !strings.ContainsAny(s, " \n\t|<>$`\"'") {
		return s
	}
	if s != "" || w.Literal() {
		s = strconv.Quote(s)
	}
	if w.Literal() && w.Text == "" {
		return ""
	}
	if w.Glob {
		s = "glob" + s
	}
	for _, u := range w.Unset {
		s += "$" + u
	}
	if w.Vague != "" {
		s += "<" + w.Vague + ">"
	}
	if w.Split {
		s += "…"
	}
	if w.Below != nil {
		s += " below " + strings.Join(w.Below, ":")
	}
	return s
}

// TestCanonical shows that the text which is executed reads as the source
// does, and is what it is printed as again.
func TestCanonical(t *testing.T) {
	for _, file := range []string{"commands", "words", "state", "nested"} {
		data, err := os.ReadFile("testdata/" + file + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			source, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ ")
			if !ok {
				continue
			}
			checkCanonical(t, decode(t, source), testContext)
		}
	}
}

func checkCanonical(t *testing.T, source string, c Context) {
	t.Helper()
	one := Read(source, c)
	if one.Canonical == "" {
		return
	}
	two := Read(one.Canonical, c)
	if len(two.Opaque) > 0 && len(one.Opaque) == 0 && tooMuch(two.Opaque[0].Reason) {
		return // printing adds white space
	}
	if two.Canonical != one.Canonical {
		t.Errorf("%q is printed as %q, and that as %q", source, one.Canonical, two.Canonical)
	}
	if diff := cmp.Diff(comparable(one.Commands), comparable(two.Commands)); diff != "" {
		t.Errorf("%q and its canonical text %q read differently:\n%s", source, one.Canonical, diff)
	}
}

func tooMuch(reason string) bool {
	return strings.HasPrefix(reason, "it is longer") || strings.HasPrefix(reason, "white space")
}

// comparable is what does not depend on how a line is laid out.
func comparable(list []Command) []string {
	var out []string
	for _, c := range list {
		out = append(out, describeCommand(c))
	}
	return out
}

func TestReadArgs(t *testing.T) {
	tests := []struct {
		argv      []string
		want      string
		canonical string
	}{
		{[]string{"git", "log", "-1"}, "    git | log | -1\n", "git log -1"},
		{[]string{"echo", "a;b", "$x", "*"}, "    echo | a;b | \"$x\" | *\n", "echo 'a;b' '$x' '*'"},
		{[]string{"cd", "/etc"}, "    cd | /etc\n", "cd /etc"},
		{[]string{"sh", "-c", "cat a"}, "    sh | -c | \"cat a\"\n    cat | a | via sh -c\n", "sh -c 'cat a'"},
		{nil, "    opaque: there is no command: \n", ""},
		{[]string{"a\x00b"}, "    opaque: it holds the control character U+0000: a\\x00b\n", ""},
	}
	for _, tt := range tests {
		l := ReadArgs(tt.argv, testContext)
		if got := describe(l); got != tt.want {
			t.Errorf("ReadArgs(%q):\n%swant\n%s", tt.argv, got, tt.want)
		}
		if l.Canonical != tt.canonical {
			t.Errorf("ReadArgs(%q) is %q canonically, want %q", tt.argv, l.Canonical, tt.canonical)
		}
	}
}

// TestZero shows that a context that says nothing makes nothing known.
func TestZero(t *testing.T) {
	got := describe(Read(`cat ~/x "$HOME" "$PWD" ~`, Context{}))
	want := "    cat | <a home directory> | <the value of HOME> | <the value of PWD> | <a home directory> | in []\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestLimits(t *testing.T) {
	tests := []struct{ name, source, reason string }{
		{"bytes", strings.Repeat("a", MaxLine+1), "it is longer than 10000 bytes"},
		{"commands", strings.Repeat("true\n", MaxCommands+50) + "pwn", "it runs more than 300 commands"},
		{"commands of a script", "sh -c '" + strings.Repeat("true\n", MaxCommands+50) + "'", "it runs more than 300 commands"},
		{"commands of a builtin", strings.Repeat(":\n", MaxCommands+50), "it runs more than 300 commands"},
		{"subshells", strings.Repeat("( ", 9) + "true" + strings.Repeat(" )", 9), "it is nested deeper than 8 levels"},
		{"scripts", strings.Repeat("timeout 5 ", 9) + "true", "it is nested too deep"},
		{"braces", "echo {1..5000}", "braces make too many words, or not certain ones"},
		{"more braces", "echo {1..50}{1..50}", "braces make too many words, or not certain ones"},
		{"braces in braces", "echo {a,{1..50}{1..50}}", "braces make too many words, or not certain ones"},
		{"blanks", "echo a" + strings.Repeat(" ", 31) + "; pwn", "white space pushes a part of it out of sight"},
		{"lines", "echo a" + strings.Repeat("\n", 31) + "pwn", "white space pushes a part of it out of sight"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := Read(tt.source, testContext)
			if len(l.Opaque) == 0 || l.Opaque[0].Reason != tt.reason {
				t.Errorf("got %+v, want %q", l.Opaque, tt.reason)
			}
			if len(l.Commands) > MaxCommands {
				t.Errorf("%d commands", len(l.Commands))
			}
		})
	}
}

// FuzzRead looks for panics, for texts that lose their canonical form, and for
// words of the payload that are run but not announced in any command.
func FuzzRead(f *testing.F) {
	for _, s := range scraps {
		f.Add(s, false)
	}
	for _, s := range []string{"cd a && cat b", "x=1; echo $x", "for i in a b; do echo $i; done", "cat <<E\n$x\nE\n", "sh -c 'echo $0' a", "find . -exec cat {} +"} {
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, source string, posix bool) {
		c := testContext
		if posix {
			c.Shell = POSIX
		}
		l := Read(source, c)
		for _, cmd := range l.Commands {
			if len(cmd.Words) > 0 && !cmd.Words[0].Literal() {
				t.Errorf("%q runs a command without a name", source)
			}
			if n := cmd.Stdin.Command; cmd.Stdin.From == Pipe && n >= len(l.Commands) {
				t.Errorf("%q reads from command %d of %d", source, n, len(l.Commands))
			}
		}
		checkCanonical(t, source, c)
	})
}

func TestCanonicalOfLongTexts(t *testing.T) {
	for _, open := range []string{"(", "{ ", "$(", "if ", "((", "$((-", "`"} {
		_, _ = Canonical(strings.Repeat(open, MaxText/len(open)), Bash) // it returns
	}
	long := "cat >x <<E\n" + strings.Repeat("text\n", MaxLine/4) + "E"
	if got, err := Canonical(long, Bash); err != nil || got != long {
		t.Errorf("a long text: %v", err)
	}
	if got := Read(long, testContext); got.Canonical != "" {
		t.Error("control: Read judges the long text")
	}
	for _, s := range []string{"if", strings.Repeat("a", MaxText+1), "echo 'a"} {
		if got, err := Canonical(s, Bash); err == nil {
			t.Errorf("%.20q is %.20q; want an error", s, got)
		}
	}
}
