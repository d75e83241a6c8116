package tree_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

var none = []string{"--net", "none"}

// TestAsACommand: what a shell sees of a session below its own is what it sees
// of the plain command.
func TestAsACommand(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	check(t, syscall.Mkfifo(r.Work+"/fifo", 0o600))
	r.put(t, "text", "of a file\n")
	for _, line := range []string{
		"%s sh -c 'exit 7'; echo $?", "%s sh -c 'kill -TERM $$'; echo $?", "echo in | %s cat | tr a-z A-Z", "%s cat <text", "%s sh -c 'echo out; echo err >&2' 2>&1",
		"%s pwd", "mkdir -p sub; cd sub; %s pwd", "%s sh -c 'cat; echo $?' </dev/null", "%s true <&-; echo $?", "%s sh -c 'echo x' 2>&-", "%s true >&- 2>&-; echo $?",
		"%s sh -c 'echo x >&3' 3>/dev/null 2>/dev/null; echo $?", "%s sh -c 'until test -e said; do sleep 0.1; done; echo late' & echo early; touch said; wait",
		"%s sh -c 'kill -STOP $$; echo on; touch on' & until test -e on; do sleep 0.1; kill -CONT $!; done; wait $!; echo $?",
		"%s sh -c 'trap \"echo got; exit 5\" TERM; touch up; while :; do sleep 0.1; done' & until test -e up; do sleep 0.1; done; kill -TERM $!; wait $!; echo $?", "yes | %s head -n 1", "%s sh -c 'seq 1 20000 | md5sum'", "%s true <>fifo; echo $?",
	} {
		plain := r.sh(t, none, "rm -f said on up; "+fmt.Sprintf(line, ""))
		below := r.sh(t, none, "rm -f said on up; "+fmt.Sprintf(line, "bawn run -q --"))
		if strings.Contains(line, ">&3") { // no other descriptor comes along
			plain.Out = "2\n"
		}
		if plain.Out != below.Out || plain.Code != below.Code {
			t.Errorf("%s: %+v\nbut %+v", line, plain, below)
		}
	}
	if got := r.sh(t, none, "bawn run -- true <."); got.Code == 0 || !strings.Contains(got.Err, "no file, pipe, terminal or socket") {
		t.Errorf("a directory: %+v", got)
	}
}

// TestTerminal: a child has a terminal of its own, of the guest's size.
func TestTerminal(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	cmd := r.Command(t.Context(), r.bawn(none, r.bawn([]string{"-q"}, "/bin/sh", "-c", "stty size; trap 'stty size; exit 4' WINCH; echo --up--; while :; do sleep 0.1; done")...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 33, Cols: 77})
	check(t, err)
	defer tty.Close()
	timer := time.AfterFunc(patience/2, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	text := make(chan string)
	go func() {
		text <- answered(tty, "--up--", func() { _ = pty.Setsize(tty, &pty.Winsize{Rows: 20, Cols: 60}) })
	}()
	_ = cmd.Wait() // the code says it
	if got := <-text; !strings.Contains(got, "33 77") || !strings.Contains(got, "20 60") || cmd.ProcessState.ExitCode() != 4 {
		t.Errorf("%d %q", cmd.ProcessState.ExitCode(), got)
	}
}

// answered reads a terminal to its end, and answers a word once.
func answered(tty *os.File, word string, answer func()) string {
	var all []byte
	for buf := make([]byte, 512); ; {
		n, err := tty.Read(buf)
		before := strings.Contains(string(all), word)
		all = append(all, buf[:n]...)
		if !before && strings.Contains(string(all), word) {
			answer()
		}
		if err != nil { // EIO
			return string(all)
		}
	}
}

// TestKeys: what a guest types is its child's, which is interrupted, stopped and
// continued by it as any job of its shell, also where only its input is the
// terminal.
func TestKeys(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	for what, pipe := range map[string]string{"a terminal": "", "a pipe behind": " | cat"} {
		line := "bawn run -q -- sh -c 'trap \"echo got; exit 3\" INT; echo --up--; while :; do sleep 0.1; done'" + pipe
		cmd := r.Command(t.Context(), r.bawn(none, "/bin/sh", "-c", line)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		tty, err := pty.Start(cmd)
		check(t, err)
		timer := time.AfterFunc(patience/2, func() { _ = cmd.Process.Kill() })
		all := answered(tty, "--up--", func() { _, _ = tty.WriteString("\x03") })
		_ = cmd.Wait() // the screen says it
		timer.Stop()
		tty.Close()
		if !strings.Contains(all, "got") {
			t.Errorf("%s: %q", what, all)
		}
	}
}

// beat is what a child writes as long as it lives.
const beat = "echo x >beat; touch up; while :; do echo x >>beat; sleep 0.05; done"

// still reports whether nothing beats any more.
func (r *account) still(t *testing.T) bool {
	t.Helper()
	size := func() int64 {
		info, err := os.Stat(r.Work + "/beat")
		check(t, err)
		return info.Size()
	}
	before := size()
	time.Sleep(300 * time.Millisecond)
	return size() == before
}

// TestChildDiesWithItsParent: also where that is killed, and where the child
// has been stopped.
func TestChildDiesWithItsParent(t *testing.T) {
	t.Parallel()
	for _, stopped := range []bool{false, true} {
		r := newAccount(t)
		end := r.start(t, r.bawn(none, r.bawn(nil, r.bawn(nil, "/bin/sh", "-c", beat)...)...)...)
		testhome.Until(t, patience/2, "the child", func() bool { return exists(r.Work+"/up") && len(r.sessions(t)) == 3 })
		var first, all []int
		for _, s := range r.sessions(t) {
			all = append(all, s.PID)
			switch {
			case s.Parent == "":
				first = append(first, s.PID)
			case stopped:
				check(t, syscall.Kill(s.PID, syscall.SIGSTOP))
			}
		}
		if !stopped {
			testhome.Until(t, patience/2, "control: a beat", func() bool { return !r.still(t) })
		}
		check(t, syscall.Kill(first[0], syscall.SIGKILL))
		end()
		for _, pid := range all {
			testhome.Until(t, patience/2, fmt.Sprintf("the end of bawn (stopped: %t)", stopped), func() bool { return syscall.Kill(pid, 0) != nil })
		}
		testhome.Until(t, patience/2, "the end of its guest", func() bool { return r.still(t) })
	}
}

// TestChildDiesWithItsClient: the guest's own bawn is the child's lease.
func TestChildDiesWithItsClient(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	line := "bawn run -- sh -c '" + beat + "' & until test -e kill; do sleep 0.1; done; kill -9 $!; " +
		"touch killed; until test -e go; do sleep 0.1; done; bawn run -- echo after"
	end := r.start(t, r.bawn(none, "/bin/sh", "-c", line)...)
	testhome.Until(t, patience/2, "the child", func() bool { return exists(r.Work+"/up") && len(r.sessions(t)) == 2 })
	testhome.Until(t, patience/2, "control: a beat", func() bool { return !r.still(t) })
	r.put(t, "kill", "")
	testhome.Until(t, patience/2, "the end of the child", func() bool { return exists(r.Work+"/killed") && len(r.sessions(t)) == 1 })
	testhome.Until(t, patience/2, "the end of its guest", func() bool { return r.still(t) })
	r.put(t, "go", "")
	if got := end(); got.Code != 0 || got.Out != "after\n" {
		t.Errorf("%+v", got)
	}
	if !r.still(t) {
		t.Error("its guest goes on")
	}
}

// TestSwappedDirectory starts children in a directory that becomes a link to
// what is hidden, and back, all the time: there is no moment at which it shows.
func TestSwappedDirectory(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	check(t, os.Mkdir(r.Work+"/dir", 0o700))
	check(t, os.Mkdir(r.Work+"/dir/.git", 0o700))
	check(t, os.Symlink(r.Home+"/.ssh", r.Work+"/link"))
	control := r.sh(t, []string{"--net", "none", "--open", "ssh"}, "cat "+r.Home+"/.ssh/id")
	if !strings.Contains(control.Out, key) {
		t.Errorf("control: %+v", control)
	}
	bawn := filepath.Join(r.Bin, "bawn") + " run -q "
	line := strings.Join(r.Guest("swap", "dir", "link", "end"), " ") + " >swaps & for i in $(seq 12); do " +
		bawn + "--profile readonly --cwd dir -- sh -c 'cat id; echo ran' & " + bawn + "--rw dir -- sh -c 'cat dir/id; echo written >dir/planted' & " +
		bawn + "--ro dir -- cat dir/id & (cd -P dir 2>/dev/null && " + bawn + "-- cat id) & wait $! ; done; sleep 1; touch end; wait; " + bawn + "-- echo ran"
	got := r.sh(t, none, line)
	if strings.Contains(got.Out, key) || exists(r.Home+"/.ssh/planted") {
		t.Errorf("it shows: %+v", got)
	}
	if !strings.Contains(got.Out, "ran") || !strings.Contains(strings.ToLower(got.Err), "permission denied") && !strings.Contains(got.Err, "holds credentials") {
		t.Errorf("no child ran, or none was ever misled: %+v", got)
	}
}

// atTerminal runs a line as a guest of somebody at a terminal, who gives every
// question the same answer. It returns the screen and how often it was asked.
func (r *account) atTerminal(t *testing.T, line, answer string) (screen string, asked int) {
	t.Helper()
	cmd := r.Command(t.Context(), r.bawn([]string{"--ask-timeout", "20s"}, "/bin/sh", "-c", line)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 200})
	check(t, err)
	defer tty.Close()
	const prompt = "[y/a/n/N/?] "
	var all []byte
	for buf, err := make([]byte, 4096), error(nil); err == nil; { // ends with EIO
		var n int
		n, err = tty.Read(buf)
		all = append(all, buf[:n]...)
		switch screen := string(all); { // as a human does: reads, types, and then presses Enter
		case n > 0 && strings.HasSuffix(screen, prompt):
			asked++
			_, _ = io.WriteString(tty, answer)
		case n > 0 && strings.HasSuffix(screen, prompt+answer):
			time.Sleep(100 * time.Millisecond)
			_, _ = io.WriteString(tty, "\n")
		}
	}
	_ = cmd.Wait() // what it has said counts
	return string(all), asked
}

// TestQuestions: a child's question comes to the human of the first session,
// once, and what the child's guest writes is no answer.
func TestQuestions(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	line := "printf 'y\ny\ny\n' | " + strings.Join(r.bawn([]string{"--ask-timeout", "20s"}, r.Guest("proxy", "unknown.test:443")...), " ")
	for answer, refused := range map[string]bool{"n": true, "y": false} {
		screen, asked := r.atTerminal(t, line, answer)
		if asked != 1 || !strings.Contains(screen, "HTTP/1.1 ") || strings.Contains(screen, "HTTP/1.1 403") != refused {
			t.Errorf("%s: asked %d times: %s", answer, asked, screen)
		}
	}
}

// TestRequest: a guest asks ahead, in its own words, which are shown as such; a
// no is one, and asking again at once does not come to the human.
func TestRequest(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	request := "bawn request --allow unknown.test --why 'the tests need it'; echo code $?; "
	connect := strings.Join(r.Guest("proxy", "unknown.test:443"), " ")
	screen, asked := r.atTerminal(t, request+connect, "y")
	if asked != 1 || !strings.Contains(screen, "code 0") || !strings.Contains(screen, "the tests need it") || strings.Contains(screen, "HTTP/1.1 403") {
		t.Errorf("yes: asked %d times: %s", asked, screen)
	}
	screen, asked = r.atTerminal(t, request+request+"for i in 1 2 3 4 5; do bawn request --allow h$i.test 2>&1 | head -n 1; done", "n")
	if asked != 3 || strings.Count(screen, "code 126") != 2 || !strings.Contains(screen, `"denied":true`) || !strings.Contains(screen, "less than 1m0s ago") || !strings.Contains(screen, "3 requests were not allowed") {
		t.Errorf("no: asked %d times: %s", asked, screen)
	}
	screen, asked = r.atTerminal(t, strings.Join(r.bawn([]string{"-q", "--ask-timeout", "20s"}, "bawn", "request", "--allow", "unknown.test"), " ")+"; echo code $?", "y")
	if asked != 1 || !strings.Contains(screen, "code 0") {
		t.Errorf("from a child: asked %d times: %s", asked, screen)
	}
}
