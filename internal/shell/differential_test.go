package shell

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// A shellUnderTest runs texts in which only one program can be found, the
// payload, which notes its directory and its arguments.
type shellUnderTest struct {
	name            string
	dialect         Dialect
	dir, bin, mark  string
	context         Context
	raw             bool // run the source instead of the canonical text
	understood, ran int
}

const payload = "pwn"

func newShell(t *testing.T, name string, d Dialect) *shellUnderTest {
	t.Helper()
	testenv.Need(t, name)
	base, err := filepath.EvalSymlinks(t.TempDir()) // pwd says it like this
	if err != nil {
		t.Fatal(err)
	}
	s := &shellUnderTest{name: name, dialect: d, dir: base + "/here", bin: base + "/bin", mark: base + "/mark"}
	for _, dir := range []string{s.dir, s.dir + "/a/b", s.bin} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := "#!/bin/sh\nprintf '%s\\0' \"$(pwd)\" \"$@\" \"$(printf '\\001')\" >> " + s.mark + "\n"
	if err := os.WriteFile(filepath.Join(s.bin, payload), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	s.context = Context{Dir: s.dir, Home: s.dir, Shell: d, Env: map[string]string{"TMPDIR": "/tmp/s"}}
	return s
}

// run executes a text and returns what the payload noted: the directory and
// the arguments of each time that it ran.
func (s *shellUnderTest) run(t *testing.T, text string) [][]string {
	t.Helper()
	os.Remove(s.mark)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	args := []string{"-c", text}
	if s.dialect == Bash {
		args = append([]string{"--norc", "--noprofile"}, args...)
	}
	path, err := exec.LookPath(s.name)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + s.bin, "HOME=" + s.dir, "TMPDIR=/tmp/s"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 100 * time.Millisecond
	_ = cmd.Run() // most texts fail
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // background jobs
	}
	noted, err := os.ReadFile(s.mark)
	if err != nil {
		return nil
	}
	var runs [][]string
	for _, one := range bytes.Split(bytes.TrimSuffix(noted, []byte("\x00\x01\x00")), []byte("\x00\x01\x00")) {
		runs = append(runs, strings.Split(string(one), "\x00"))
	}
	return runs
}

// check runs a text that Read understands, and wants every run of the payload
// to be one that Read has announced, with its arguments and directory.
func (s *shellUnderTest) check(t *testing.T, text string) {
	t.Helper()
	line := Read(text, s.context)
	if len(line.Opaque) > 0 {
		return
	}
	s.understood++
	run := line.Canonical
	if s.raw {
		run = text
	}
	for _, noted := range s.run(t, run) {
		s.ran++
		if !slices.ContainsFunc(line.Commands, func(c Command) bool { return announces(c, noted[0], noted[1:]) }) {
			var announced strings.Builder
			for _, c := range line.Commands {
				fmt.Fprintf(&announced, "\n  %q: %+v", c.Dirs, c.Words)
			}
			t.Fatalf("%s runs %q in %s, which Read did not announce\nsource    %q\ncanonical %q%s", s.name, noted[1:], noted[0], text, line.Canonical, &announced)
		}
	}
}

func announces(c Command, dir string, args []string) bool {
	if len(c.Words) > 1 && (c.Words[0].Text == "." || c.Words[0].Text == "source") && sources(c.Words[1:]) {
		return true // found on the PATH and run as it is
	}
	return len(c.Words) > 0 && c.Words[0].Text == payload && (c.Dirs == nil || slices.Contains(c.Dirs, dir)) && fits(c.Words[1:], args)
}

// sources reports whether the first of words, less those that can become none,
// is the payload.
func sources(words []Word) bool {
	w := words[0]
	return w.Text == payload || (w.Split || w.Glob) && len(words) > 1 && sources(words[1:])
}

// fits reports whether args can be what words become.
func fits(words []Word, args []string) bool {
	if len(words) == 0 {
		return len(args) == 0
	}
	w := words[0]
	if (w.Split || w.Glob) && fits(words[1:], args) {
		return true // none
	}
	if len(args) == 0 || !fitsOne(w, args[0]) {
		return false
	}
	return fits(words[1:], args[1:]) || (w.Split || w.Glob) && fits(words, args[1:])
}

func fitsOne(w Word, arg string) bool {
	switch {
	case w.Vague != "":
		return strings.HasPrefix(arg, w.Text) || w.Split
	case w.Glob:
		return true
	}
	return w.Text == arg
}

// TestShellsRunWhatWasRead is the differential test: whatever a real shell
// runs of a text that Read understands, Read has announced.
func TestShellsRunWhatWasRead(t *testing.T) {
	for _, sh := range []struct {
		name string
		d    Dialect
		raw  bool
	}{{"bash", Bash, false}, {"dash", POSIX, false}, {"bash", Bash, true}, {"dash", POSIX, true}} {
		name := sh.name
		if sh.raw {
			name += " raw"
		}
		t.Run(name, func(t *testing.T) {
			s := newShell(t, sh.name, sh.d)
			s.raw = sh.raw
			for _, text := range disagreements {
				s.check(t, text)
			}
			seed := testenv.FuzzSeed(t)
			random := rand.New(rand.NewSource(seed))
			n := 0
			for end := time.Now().Add(testenv.FuzzTime(t)); time.Now().Before(end) && !t.Failed(); n++ {
				if n%2 == 0 {
					s.check(t, s.quiet(random))
				} else {
					s.check(t, (&author{r: random, bash: sh.d == Bash}).program())
				}
			}
			t.Logf("seed %d: %d texts, %d understood, the payload ran %d times", seed, n, s.understood, s.ran)
			if s.understood == 0 || s.ran == 0 {
				t.Error("no text was understood, or none ran the payload: the test tests nothing")
			}
		})
	}
}

// disagreements are texts that the parser and shells read differently, or in
// which a value is run. Each runs the payload in one shell at least.
var disagreements = []string{
	". $printf pwn",
	"echo a #\\\npwn", "echo a \\\r\npwn", "echo a \r#; pwn", "true \r#|pwn", "5>\r\tpwn", "let x|pwn", "let x=1&pwn", "let x||pwn", "coproc a=1 pwn",
	"coproc pwn>f", "time -- pwn", "pwn\n)", "((pwn))", "[[ 'a[$(pwn)]' -eq 1 ]]", "[ -v 'a[$(pwn)]' ]", "x='a[$(pwn)]'; ((x))", "x='a[$(pwn)]'; echo $((x)) $[x]",
	"printf -v 'a[$(pwn)]' x", "read 'a[$(pwn)]' <<<1", "declare -i n='a[$(pwn)]'", "x='a[$(pwn)]'; echo ${y:$x}", "x='a[$(pwn)]'; echo ${b[$x]}", "x='a[$(pwn)]'; echo ${!x}",
	"x='$(pwn)'; echo ${x@P}", "declare -n r='a[$(pwn)]'; echo $r", "PS4='$(pwn)'; set -x; :", "mapfile -C pwn -c 1 x <<<1", "compgen -C pwn", "compgen -W '$(pwn)'", "trap pwn EXIT",
	"hash -p $PWD/../bin/pwn x; x", "command_not_found_handle() { pwn; }; nosuch", "alias e=pwn\ne", "shopt -s expand_aliases; alias e=pwn\ne", "unset 'a[$(pwn)]'", "wait -n -p 'a[$(pwn)]'",
	"c=pwn; $c", "$(echo pwn)", "eval pwn", "echo pwn | sh", "bash <<<pwn", "IFS=_; c=pwn_1; $c", "{pwn,1}", "pw?", "x=1; x=pwn true; $x", "exec pwn", "f() { pwn; }; f", "! pwn",
	"for v in pwn; do $v; done", "echo ${x:-$(pwn)}", "cat <(pwn)", "cat <<E\n$(pwn)\nE\n", "ulimit -c 'a[$(pwn)]'", "test -v 'a[$(pwn)]'", "env pwn", "x[$(pwn)]=1", "ls() { pwn; }; ls",
	"x=t; ((0 && (x=1))); echo $((x))", "i=0; while [ $i -lt 1 ]; do i='a[$(pwn)]'; done; ((i))", "x='-v a[$(pwn)]'; [ $x ]",
}

// scraps are pieces of shell texts. soup puts them together without sense.
var scraps = []string{
	payload, payload + " 1", " ", " ", "\n", ";", "&", "|", "&&", "||", "|&", ";;", "#", "\\", "\\\n", "\r", "\t", "'", `"`, "`", "$(", ")", "(", "{ ", " }", "}",
	"${v:-", "${v#", "${v}", "${#v}", "${v/", "$v", "$((", "))", "((", "$[", "]", "[", "[[ ", " ]]", "$'", `$"`, "<(", ">(", "<<E", "<<'E'", "<<-E", `<<\E`, "<<$E",
	"\nE\n", "\nE", "E", "<<<", ">", "<", ">&", "<&", "&>", ">/dev/null", "2>&1", "if ", "then ", "fi", "while ", "do ", "done", "for v in ", "case v in ", "v) ", "esac",
	"f() ", "f", "function f ", "! ", "time ", "time -p ", "coproc ", "select v in ", "else ", "until ", "v=", "v=(", "v[", "v+=", "w=1 ", "~", "*", "?", "@(", "!(",
	"-p ", "--", `\"`, `\'`, `\$`, "$", "$@", "$#", "!", "{", "{a,", ",", "declare ", "export ", "let ", "eval ", "local ", "true", "echo ", "command ", "exec ", "builtin ",
	"\\\r\n", "#\\\n", " #", "' ", `" `, "''", `""`, "0", "1", "5>", "\v", "\x01", "\u00a0", "set -- ", "shift", "cd a;", "cd a && ", "unset v", "readonly ", "read v", "x",
	"test ", "-eq ", "-v ", "trap ", "alias ", ". ", "@P}", "${!", "printf ", "-a ", "exit", "return", "break", "continue", "in ", "elif ", "a[0]", "hash ", "wait ",
}

// quiet finds a soup that Read understands and in which it sees no payload
// run: such texts are rare, and tell most.
func (s *shellUnderTest) quiet(r *rand.Rand) string {
	for range 2000 {
		text := soup(r)
		line := Read(text, s.context)
		loud := slices.ContainsFunc(line.Commands, func(c Command) bool {
			return slices.ContainsFunc(c.Words[:min(1, len(c.Words))], func(w Word) bool { return w.Text == payload })
		})
		if len(line.Opaque) == 0 && !loud {
			return text
		}
	}
	return payload
}

func soup(r *rand.Rand) string {
	var b strings.Builder
	n := 2 + r.Intn(9)
	at := r.Intn(n)
	for i := range n {
		if i == at {
			b.WriteString(payload)
			continue
		}
		b.WriteString(scraps[r.Intn(len(scraps))])
	}
	return b.String()
}

// An author writes programs that make sense, so that what is known of words,
// variables and directories is tested too.
type author struct {
	r     *rand.Rand
	bash  bool
	depth int
}

func (a *author) pick(list ...string) string { return list[a.r.Intn(len(list))] }

func (a *author) program() string {
	var b strings.Builder
	for range 1 + a.r.Intn(4) {
		b.WriteString(a.statement() + a.pick("; ", "\n", "\n", " && ", " || "))
	}
	return b.String() + payload + " end " + a.word()
}

func (a *author) words() string {
	var list []string
	for range a.r.Intn(4) {
		list = append(list, a.word())
	}
	return strings.Join(list, " ")
}

func (a *author) word() string {
	w := a.piece()
	for a.r.Intn(3) == 0 {
		w += a.piece()
	}
	return w
}

func (a *author) piece() string {
	common := []string{
		"a", "b-c", "-x", "1", `'q r'`, `"d $v"`, "$v", "${v}", `"$w"`, "${w:-def}", "${u:-$v}", `"${u-}"`, "${v:+alt}", "${#v}", "~", "~/x", `"~"`, `\~`, `\*`, `"*"`, "a*",
		"$1", `"$2"`, `"$@"`, "$*", `"$*"`, "$#", "$HOME", `"$PWD"`, "$TMPDIR", "$(echo o)", "`echo p`", "$((1+2))", "${v%b}", "${v#a}", `'\n'`, `"\\n\$"`, "{}", "x=~", "=",
		"${u:=set}", `"${w:=}"`, "#no", "a#b", `""`, "''", `\\`, "é",
	}
	bash := []string{"{a,b}", "{1..3}", "x{,y}z", "$'t\\tq\\x41'", `${arr[@]}`, `"${arr[@]}"`, "${arr[1]}", "${v/a/b}", "${v:1}", "{a,$v}", "{~,x}", "${v^^}", `"${arr[*]}"`, "v=~/y", "{a..c}", "{a}", "{,}"}
	if a.bash && a.r.Intn(3) == 0 {
		return a.pick(bash...)
	}
	return a.pick(common...)
}

func (a *author) statement() string {
	if a.depth > 3 {
		return payload + " deep " + a.word()
	}
	a.depth++
	defer func() { a.depth-- }()
	one, two := func() string { return payload + " " + a.words() }, a.statement
	v := a.pick("v", "w", "u")
	switch a.r.Intn(24) {
	case 0:
		return v + "=" + a.word()
	case 1:
		return "cd " + a.pick("a", "a/b", "..", "nowhere", "~", "$v", ".")
	case 2:
		return "(" + two() + "; " + one() + ")"
	case 3:
		return "{ " + two() + "; " + one() + "; }"
	case 4:
		return "if " + a.pick("true", "false", two()) + "; then " + two() + "; else " + two() + "; fi"
	case 5:
		return "for " + v + " in " + a.words() + "; do " + two() + "; " + one() + "; done"
	case 6:
		return "for " + v + " in 1 2 3; do " + a.pick("true && break", "false || continue", "cd a", v+"=z") + "; " + one() + "; done"
	case 7:
		return "case " + a.word() + " in a) " + two() + ";; *) " + two() + ";; esac"
	case 8:
		return "f() { " + two() + "; " + one() + a.pick("", "; return; "+v+"=no", "; shift") + "; }; f " + a.words()
	case 9:
		return one() + " | " + one()
	case 10:
		return "echo " + a.pick("a b", "-n x", "'a  b'", "$v") + " | while read " + v + "; do " + one() + "; done"
	case 11:
		return "set -- " + a.words() + a.pick("", "; shift", "; shift 2")
	case 12:
		return "eval '" + payload + " e $v'"
	case 13:
		return a.pick("bash", "sh", "dash") + " -c '" + payload + " in $0 \"$1\" $v' " + a.words()
	case 14:
		return payload + " h <<" + a.pick("E", "'E'", "-E") + "\n\ttext $v\nE\n"
	case 15:
		return v + "=" + a.word() + " " + one()
	case 16:
		return "export " + v + "=" + a.pick("e1", `"$w"`, "$v")
	case 17:
		return "unset " + v
	case 18:
		return one() + " >" + a.pick("out", "/dev/null", "\"$v\"", "nowhere/x")
	case 19:
		return "i=0; while [ $i -lt 2 ]; do i=$((i+1)); " + one() + " $i; done"
	case 20:
		return a.pick("! ", "") + two() + a.pick(" &&", " ||") + " " + two()
	case 21:
		return "command " + one()
	case 22:
		if a.bash {
			return a.pick("arr=(x 'y z' $v)", "pushd a >/dev/null; "+one()+"; popd >/dev/null", "[[ $v == a* ]] && "+one(), "local x=1", "readonly ro=1", v+"+=more", "((i=3)); "+one())
		}
		return "exit"
	}
	return one()
}
