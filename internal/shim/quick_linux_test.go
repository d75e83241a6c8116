package shim

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/shim/quick"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestQuickIsNotOwn shows that no line of bawn's own goes the short way.
func TestQuickIsNotOwn(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"bawn", "b", "a", "w", "n", "ba", "wn", "request", "run", " ", " -- ", "make", "'", "\"", "\\", "\n", "\t", ";", "#", "$", "x", "2>&1", "(", ")", "{", "}", "!", "hook",
		" hook ", " || exit 2", "/", "=", ":", "&", "|",
	})
	own := 0
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "bawn request ", "b'awn' run ", "bawn hook "}).Draw(t, "begin")
		for range rapid.IntRange(0, 6).Draw(t, "pieces") {
			text += piece.Draw(t, "piece")
		}
		argv := []string{"sh", "-c", text}
		args, _ := Own(argv)
		if args == nil {
			return
		}
		if own++; quick.Fits(argv) {
			t.Errorf("%q is %q", text, args)
		}
	})
	if own == 0 {
		t.Error("control: there was no line of bawn's own")
	}
}

// TestWays runs commands in the short way and in the long one: nobody sees a
// difference.
func TestWays(t *testing.T) {
	r := newRig(t)
	for _, tt := range []struct {
		argv  []string
		short bool
		want  result
	}{
		{[]string{"sh", "-c", "echo out; echo err >&2; exit 7"}, true, result{Out: "out\n", Err: "err\n", Code: 7}},
		{[]string{"sh", "-c", "cat"}, true, result{Out: "in"}},
		{[]string{"bash", "-lc", `printf '%s\n' "$0" "$1"`, "é\"\\\n", "b"}, true, result{Out: "é\"\\\n\nb\n"}},
		{[]string{"sh", "-c", "kill -TERM $$"}, false, result{Code: -1, Signal: syscall.SIGTERM}},
		{[]string{"sh", "-c", "cat", "\xff"}, false, result{Out: "in"}},
	} {
		for way, want := range map[string]result{"": tt.want, "no": tt.want, "only": tt.want} {
			r.human.set(always(bawn.Allow))
			cmd := r.shell(tt.argv...)
			cmd.Env = append(cmd.Env, quickVariable+"="+way)
			got := finish(t, cmd, "in")
			if way == "only" && !tt.short {
				want = result{Code: 99}
				got.Out, got.Err = "", ""
			}
			if got != want {
				t.Errorf("%q, %q: got %+v, want %+v", tt.argv, way, got, want)
			}
		}
	}
}

// TestQuickRefused shows that a refusal is told in the same words in both ways.
func TestQuickRefused(t *testing.T) {
	r := newRig(t)
	var said [2]result
	for i, way := range []string{"", "no"} {
		cmd := r.shell("sh", "-c", "rm -rf /usr")
		cmd.Env = append(cmd.Env, quickVariable+"="+way)
		said[i] = finish(t, cmd, "")
	}
	if said[0] != said[1] || said[0].Code != codeDenied || said[0].Err == "" {
		t.Errorf("got %+v and %+v", said[0], said[1])
	}
}

// TestQuickPassesSignalsOn interrupts a command that has been asked for in the
// short way: what is between the two ways loses no signal.
func TestQuickPassesSignalsOn(t *testing.T) {
	r := newRig(t)
	r.human.set(always(bawn.Allow))
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1} {
		var last string
		if !heard(func(pause time.Duration) bool {
			cmd := r.shell("sh", "-c", "trap 'echo caught; exit 3' INT TERM USR1; echo ready; while :; do sleep 0.01; done")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			lines.Scan()
			said := lines.Text()
			for range 2 { // the second is one for the way that goes on: it may have ended
				time.Sleep(pause)
				_ = cmd.Process.Signal(sig)
			}
			lines.Scan()
			said += " " + lines.Text()
			_ = cmd.Wait()
			last = fmt.Sprintf("%q, %v", said, cmd.ProcessState)
			return said == "ready caught" && cmd.ProcessState.ExitCode() == 3
		}) {
			t.Errorf("%v: %s", sig, last)
		}
	}
}

// TestQuickSignalWhileAsked ends a shim whose command waits for a human, by the
// signal itself.
func TestQuickSignalWhileAsked(t *testing.T) {
	r := newRig(t)
	asked := make(chan bool, 1)
	r.human.set(func(ctx context.Context, _ bawn.Action) (bawn.Answer, error) {
		asked <- true
		<-ctx.Done()
		return bawn.Answer{}, ctx.Err()
	})
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR2} {
		var cmd *exec.Cmd
		if !heard(func(pause time.Duration) bool {
			cmd = r.shell("sh", "-c", "git push origin main")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			testenv.Receive(t, "the question", asked)
			time.Sleep(pause)
			_ = cmd.Process.Signal(sig)
			_ = cmd.Wait()
			ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
			return ws.Signaled() && ws.Signal() == sig
		}) {
			t.Errorf("%v: %v", sig, cmd.ProcessState)
		}
	}
}
