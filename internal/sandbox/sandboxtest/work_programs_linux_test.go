package sandboxtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

func vim(t *testing.T, d caller) {
	s := d.screen(t, "vim", "-u", "NONE", "-i", "NONE", "-N", "-n", "new.txt")
	s.expect(`~`)
	s.send("ihello from vim\x1b:wq\r")
	s.mustEnd(0)
	got, err := os.ReadFile(filepath.Join(d.dir, "new.txt"))
	if err != nil || string(got) != "hello from vim\n" {
		t.Errorf("vim wrote %q, %v", got, err)
	}
	s = d.screen(t, "vim", "-u", "NONE", "-i", "NONE", "-N", "new.txt")
	s.expect(`hello from vim`)
	s.resize(30, 100)
	s.expect("\x1b\\[29;1H~") // a command that starts before that loses its output to the redraw
	s.send(":s/hello/bye/|w|!echo from $((40+6)) shells\r")
	s.expect(`from 46 shells`)
	s.send("\r:q\r")
	s.mustEnd(0)
}

func less(t *testing.T, d caller) {
	var lines strings.Builder
	for i := range 200 {
		fmt.Fprintf(&lines, "line-%d-\n", i)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "long.txt"), []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	s := d.screen(t, "less", "long.txt")
	s.expect(`line-22-`)
	s.mustShow("line-30-", 0)
	s.send(" ")
	s.expect(`line-45-`)
	s.send("/line-150-\r")
	s.expect(`line-160-`)
	s.send("q")
	s.mustEnd(0)
}

func tmux(t *testing.T, d caller) {
	socket := filepath.Join(t.TempDir(), "tmux")
	control := func(args ...string) string {
		cmd := exec.Command("tmux", append([]string{"-S", socket, "-f", "/dev/null"}, args...)...)
		cmd.Dir, cmd.Env = d.dir, d.env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Logf("tmux %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	control("new-session", "-d", "-x", "80", "-y", "24", "-s", "work", d.line("bash --norc --noprofile")+"; echo left with $?; sleep 20")
	defer control("kill-server")
	shows := func(text string) {
		t.Helper()
		defer func() {
			if t.Failed() {
				t.Logf("tmux shows\n%s", control("capture-pane", "-p", "-t", "work"))
			}
		}()
		testenv.Until(t, strconv.Quote(text), func() bool { return strings.Contains(control("capture-pane", "-p", "-t", "work"), text) })
	}
	testenv.Until(t, "a prompt", func() bool { return strings.ContainsAny(control("capture-pane", "-p", "-t", "work"), "$#") })
	control("send-keys", "-t", "work", "echo sum $((40+4)) $(stty size)", "Enter")
	shows("sum 44 24 80")
	control("send-keys", "-t", "work", `sh -c 'echo "g"o; exec sleep 100'`, "Enter")
	shows("\ngo\n")
	control("send-keys", "-t", "work", "C-c")
	control("send-keys", "-t", "work", "echo on $((40+5))", "Enter")
	shows("on 45")
	control("resize-window", "-t", "work", "-x", "100", "-y", "30")
	control("send-keys", "-t", "work", "echo now $(stty size)", "Enter")
	shows("now 30 100")
	control("send-keys", "-t", "work", "exit 9", "Enter")
	shows("left with 9")
}
