//go:build linux

package sandboxtest

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A caller is how a user starts commands: a directory, an environment and what is put in
// front of each command.
type caller struct {
	words []string
	dir   string
	env   []string
}

// bare reports that nothing is put in front.
func (d caller) bare() bool { return len(d.words) == 0 }

func (d caller) argv(argv ...string) []string { return slices.Concat(d.words, argv) }

// screen starts a command on a terminal of its own.
func (d caller) screen(t *testing.T, argv ...string) *screen {
	t.Helper()
	return newScreen(t, d.dir, d.env, d.argv(argv...)...)
}

// shell starts an interactive bash, always unsandboxed: the user's own.
func (d caller) shell(t *testing.T) *screen {
	t.Helper()
	s := newScreen(t, d.dir, append(d.env, "TERM=dumb"), "bash", "--norc", "--noprofile", "-i")
	s.expect(`\$ `)
	return s
}

// line is a command line for shell.
func (d caller) line(command string) string {
	return strings.Join(append(slices.Clip(d.words), command), " ")
}

// terminalWork is done unsandboxed, which shows that the test is right, and as a
// guest.
var terminalWork = []struct {
	name  string
	needs []string
	do    func(*testing.T, caller)
}{
	{"is a terminal", nil, isTerminal},
	{"window size", nil, windowSize},
	{"exit codes", nil, terminalCodes},
	{"Ctrl-C ends the command", nil, ctrlC},
	{"Ctrl-C reaches only the foreground", nil, ctrlCInside},
	{"Ctrl-C is caught", nil, ctrlCCaught},
	{`Ctrl-\ and Ctrl-D`, nil, ctrlBackslash},
	{"Ctrl-Z gives the prompt back", nil, ctrlZ},
	{"Ctrl-Z inside", nil, ctrlZInside},
	{"Ctrl-Z of a full-screen program", nil, ctrlZRaw},
	{"in the background", nil, background},
	{"pipelines", nil, terminalPipes},
	{"lines through a pipe", nil, pipedLines},
	{"typing ahead", nil, typeAhead},
	{"the terminal by name", nil, byName},
	{"no echo", nil, noEcho},
	{"raw mode", nil, rawMode},
	{"nothing is lost at the end", nil, allOutput},
	{"pasting", nil, pasting},
	{"settings come back after kill -9", nil, settingsAfterKill},
	{"settings stay where a program leaves them", nil, settingsLeft},
	{"vim", []string{"vim"}, vim},
	{"less", []string{"less"}, less},
	{"tmux", []string{"tmux"}, tmux},
}

func isTerminal(t *testing.T, d caller) {
	s := d.screen(t, "sh", "-c", `test -t 0 && test -t 1 && test -t 2 && tty && ps -o tty= -p $$ && stty -a`)
	s.expect(`/dev/pts/\d+\r\n\S*pts/\d+`)
	s.expect(`24; columns 80;`)
	s.expect(`isig icanon iexten echo `)
	s.mustEnd(0)
}

func windowSize(t *testing.T, d caller) {
	s := d.screen(t, "bash", "-c", `trap 'echo "changed to $(stty size)"' WINCH; stty size; while :; do sleep 0.05; done`)
	s.expect(`24 80`)
	s.resizeUntil(40, 132, `changed to 40 132`)
	s.resizeUntil(5, 20, `changed to 5 20`)
	s.sendUntilEnd("\x03", 130)
}

func terminalCodes(t *testing.T, d caller) {
	for _, code := range []int{0, 1, 42, 255} {
		d.screen(t, "sh", "-c", "exit "+strconv.Itoa(code)).mustEnd(code)
	}
	d.screen(t, "sh", "-c", "kill -9 $$").mustEnd(137)
	d.screen(t, "sh", "-c", "kill -TERM $$").mustEnd(143)
}

func ctrlC(t *testing.T, d caller) {
	// The one that waits says so itself: a shell that is just starting a program may
	// forget the signal.
	s := d.screen(t, "sh", "-c", `sh -c 'echo ready; exec sleep 100'; echo "went on"`)
	s.expect(`ready`)
	s.send("\x03")
	s.expect(`\^C`) // what is read of the terminal may come after the end
	s.mustEnd(130)
	s.mustShow("went on", 0)
	s.mustShow("^C", 1)
}

func ctrlCInside(t *testing.T, d caller) {
	s := d.screen(t, "bash", "--norc", "--noprofile", "-i")
	s.expect(`\$ `)
	s.send("sh -c 'echo \"g\"o; exec sleep 100'\n") // what is in front says so itself
	s.expect("[\r\n]go\r")
	s.send("\x03")
	s.expect(`\$ `)
	s.send("echo status $? sum $((40+2))\n")
	s.expect(`status 130 sum 42`)
	s.send("exit 7\n")
	s.mustEnd(7)
}

func ctrlCCaught(t *testing.T, d caller) {
	s := d.screen(t, "bash", "-c", `trap 'echo caught' INT; echo ready; read x; read x; echo "got $x"`)
	s.expect(`ready`)
	s.sendUntil("\x03", `caught`) // a shell that is about to read forgets a signal until the next
	s.send("first\nsecond\n")
	s.expect(`got second`)
	s.mustEnd(0)
}

func ctrlBackslash(t *testing.T, d caller) {
	s := d.screen(t, "sh", "-c", `ulimit -c 0; echo ready; exec sleep 100`)
	s.expect(`ready`)
	s.send("\x1c")
	s.mustEnd(131)
	s = d.screen(t, "cat")
	s.send("line\n")
	s.expect(`line\r\nline\r\n`)
	s.send("\x04")
	s.mustEnd(0)
}

func ctrlZ(t *testing.T, d caller) {
	s := d.shell(t)
	s.send("stty -a >before; " + d.line(`sh -c 'echo u""p; exec cat'`) + "\n")
	s.expect(`\nup\r?\n`)
	s.send("hello\n")
	s.expect(`hello\r\nhello\r\n`)
	for range 2 {
		s.send("\x1a")
		s.expect(`Stopped`)
		s.send("echo prompt $((20+2)); jobs; stty -a >now; cmp before now && echo equal\n")
		s.expect(`prompt 22`)
		s.expect(`Stopped.*cat`)
		s.expect(`\nequal`)
		s.send("fg\n")
		s.expect(`fg\r\n.*cat'\r\n`)
		s.send("again\n")
		s.expect(`again\r\nagain\r\n`)
	}
	s.send("\x04")
	s.expect(`\$ `)
	s.send("echo code $?; exit\n")
	s.expect(`code 0`)
	s.mustEnd(0)
}

func ctrlZInside(t *testing.T, d caller) {
	s := d.screen(t, "bash", "--norc", "--noprofile", "-i")
	s.expect(`\$ `)
	s.send("echo go; cat\n")
	s.expect("[\r\n]go\r")
	s.sendUntil("\x1a", `Stopped`)
	s.send("jobs; echo sum $((40+3))\n")
	s.expect(`Stopped\s+cat`)
	s.expect(`sum 43`)
	s.send("fg\n")
	s.expect(`fg\r\n.*cat\r\n`)
	s.send("typed\n")
	s.expect(`typed\r\ntyped\r\n`)
	s.send("\x1a")
	s.expect(`Stopped`)
	s.send("kill %1; wait %1; echo; sleep 0.1 & wait; echo code $?\n")
	s.expect(`code 0`)
	s.send("exit 3\nexit 3\n") // the first may only say that there are jobs
	s.mustEnd(3)
}

func ctrlZRaw(t *testing.T, d caller) {
	s := d.shell(t)
	s.send("stty -a >before; " + d.line(`bash -c 'stty raw -echo; trap "stty sane; kill -STOP \$\$; stty raw -echo; echo resumed" USR1; kill -USR1 $$; stty sane; echo end'`) + "\n")
	s.expect(`Stopped`)
	s.send("stty -a >now; cmp before now && echo equal\n")
	s.expect(`\nequal`)
	s.send("fg\n")
	s.expect(`\nresumed`)
	s.expect(`\nend\s+\$ `) // the prompt: keys before it are the guest's
	s.send("stty -a >now; cmp before now && echo equal; exit\n")
	s.expect(`\nequal`)
	s.mustEnd(0)
}

func background(t *testing.T, d caller) {
	s := d.shell(t)
	s.send(d.line("true") + " & wait $!; echo code $?\n")
	s.expect(`code 0`)
	s.send(d.line(`sh -c 'sleep 0.2; echo late $((1+1))'`) + " & wait; echo code $?\n")
	s.expect(`late 2\r\n(?s:.*)code 0`)
	s.send(d.line("cat") + " &\n")
	s.sendUntil("jobs\n", `Stopped`)
	s.send("fg\n")
	s.expect(`fg\r\n.*cat\r\n`)
	s.send("typed\n")
	s.expect(`typed\r\ntyped\r\n`)
	s.send("\x04")
	s.expect(`\$ `)
	s.send("echo code $?; " + d.line("sleep 100") + " &\n")
	s.expect(`code 0`)
	s.send("sleep 0.2; kill %1; wait %1; echo code $?; exit\n")
	s.expect(`code 143`)
	s.mustEnd(0)
}

func terminalPipes(t *testing.T, d caller) {
	s := d.shell(t)
	s.send("touch here; " + d.line("ls") + ` | cat; echo "codes ${PIPESTATUS[*]}"` + "\n")
	s.expect(`here\r\n(?s:.*)codes 0 0`)
	s.expect(`\$ `)
	s.send("echo data | " + d.line(`sh -c 'cat; test -t 0; echo in $?; test -t 1; echo out $?; test -t 2; echo err $?'`) + "\n")
	s.expect(`data\r\nin 1\r\nout 0\r\nerr 0`)
	s.expect(`\$ `)
	s.send(d.line(`sh -c 'echo u""p; read x; test -t 1; echo got $x out $?'`) + " | cat\n")
	s.expect(`\nup\r?\n`)
	s.send("typed\n")
	s.expect(`got typed out 1`)
	s.expect(`\$ `)
	s.send(d.line(`sh -c 'echo to file; echo to screen >&2'`) + " >file; cat file | tr a-z A-Z\n")
	s.expect(`to screen\r\n(?s:.*)TO FILE`)
	s.expect(`\$ `)
	s.send(d.line(`yes`) + ` | head -1; echo "codes ${PIPESTATUS[*]}"` + "\n")
	s.expect(`y\r\n(?s:.*)codes 141 0`)
	s.expect(`\$ `)
	s.send(d.line("cat") + " </dev/null; echo code $?; echo $((50+5)); exit\n")
	s.expect(`code 0\r\n55`)
	s.mustEnd(0)
}

// pipedLines: what comes through another program, which writes to the terminal
// itself, has whole line ends even while the guest reads keys.
func pipedLines(t *testing.T, d caller) {
	s := d.shell(t)
	s.send(d.line(`sh -c 'for i in 1 2 3 4 5; do echo line $i; sleep 0.1; done; read x; echo got $x'`) + " | cat; echo now $((30+3))\n")
	s.expect(`line 1\r\nline 2\r\nline 3\r\nline 4\r\nline 5\r\n`)
	s.send("typed\n")
	s.expect(`got typed\r\n(?s:.*)now 33`)
	s.expect(`\$ `)
	s.send("exit\n")
	s.mustEnd(0)
}

// typeAhead: what is typed while a command that reads nothing runs is for the
// shell afterwards.
func typeAhead(t *testing.T, d caller) {
	s := d.shell(t)
	s.send(d.line("sleep 0.5") + "\n")
	time.Sleep(250 * time.Millisecond)
	s.send("echo sum $((20+9))\n")
	s.expect(`sum 29`)
	s.send("exit\n")
	s.mustEnd(0)
}

func byName(t *testing.T, d caller) {
	s := d.screen(t, "sh", "-c", `echo named >/dev/tty; read x </dev/tty; echo "got $x"; exec </dev/null >file 2>&1; echo "still named" >/dev/tty`)
	s.expect(`named`)
	s.send("typed\n")
	s.expect(`got typed`)
	s.expect(`still named`)
	s.mustEnd(0)
	s = d.shell(t)
	s.send("echo data | " + d.line(`sh -c 'cat; echo asking >/dev/tty; read x </dev/tty; echo answered $x'`) + " | tr a-z A-Z\n")
	s.expect(`\nasking`)
	s.send("yes\n")
	s.expect(`ANSWERED YES\s+(yes\s+)?\$ `) // the echo of what was typed may come late
	s.send("exit\n")
	s.mustEnd(0)
}

func noEcho(t *testing.T, d caller) {
	s := d.screen(t, "bash", "-c", `stty -echo; echo -n "password: "; read x; stty echo; echo; echo "length ${#x}"`)
	s.expect(`password: `)
	s.send("hidden\n")
	s.expect(`length 6`)
	s.mustEnd(0)
	s.mustShow("hidden", 0)
}

func rawMode(t *testing.T, d caller) {
	s := d.screen(t, "bash", "-c", `stty raw -echo; echo ready; head -c 6 | od -An -tx1; stty sane; echo back`)
	s.expect(`ready`)
	s.send("\x03\x1a\x1c\r\n\x7f")
	s.expect(`03 1a 1c 0d 0a 7f`)
	s.expect(`back`)
	if got := s.wait(); got != 0 {
		t.Errorf("exit code %d, want 0", got)
	}
}

func allOutput(t *testing.T, d caller) {
	for i := range 5 {
		s := d.screen(t, "sh", "-c", "seq 20000; printf the-end")
		s.mustEnd(0)
		s.expect(`the-end`)
		if got := strings.Count(s.all(), "\r\n"); got != 20000 {
			t.Fatalf("run %d: %d lines came, want 20000", i, got)
		}
	}
}

func pasting(t *testing.T, d caller) {
	s := d.screen(t, "sh", "-c", "stty -echo; echo ready; cat | md5sum; stty echo; echo end")
	s.expect(`ready`)
	text := strings.Repeat(strings.Repeat("paste ", 20)+"\n", 2000)
	go func() { _, _ = s.master.WriteString(text + "\x04") }() // what is missing shows in the sum
	want := string(must(pipe(text, "md5sum")))
	s.expect(strings.Fields(want)[0])
	s.expect(`end`)
	s.mustEnd(0)
}

// pipe gives a program its input and returns its output.
func pipe(input, name string) ([]byte, error) {
	cmd := exec.Command(name)
	cmd.Stdin = strings.NewReader(input)
	return cmd.Output()
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func settingsAfterKill(t *testing.T, d caller) {
	s := d.shell(t)
	s.send("stty -a >before; " + d.line(`sh -c 'stty raw -echo; kill -9 $$'`) + "; echo code $?; stty -a >after; cmp before after && echo equal; exit\n")
	s.expect(`code 137`)
	s.expect(`\nequal`)
	s.mustEnd(0)
}

// settingsLeft is for programs such as stty and reset, whose whole purpose is
// to change the terminal.
func settingsLeft(t *testing.T, d caller) {
	s := d.screen(t, "stty", "-echo")
	s.wait()
	if !d.bare() {
		return // the guest has a terminal of its own: the user's stays as it was
	}
	if s.settings() == s.before {
		t.Error("stty changed nothing")
	}
}
