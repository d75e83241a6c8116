package relaycli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/terminal/modes"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// A viewer is a human in front of bawn approvals, in a terminal of its own.
type viewer struct {
	t      *testing.T
	master *os.File
	vt     vt10x.Terminal
	mu     sync.Mutex
	raw    bytes.Buffer
	ended  chan int
	ahead  *atomic.Int64 // of the machine's clock
}

func look(r *rig, columns, rows int, environ ...string) *viewer {
	r.t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		r.t.Fatal(err)
	}
	size := &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)}
	if err := pty.Setsize(master, size); err != nil {
		r.t.Fatal(err)
	}
	v := &viewer{t: r.t, ahead: &r.ahead, master: master, vt: vt10x.New(vt10x.WithSize(columns, rows), vt10x.WithWriter(master)), ended: make(chan int, 1)}
	var all sync.WaitGroup
	all.Go(v.read)
	r.env.Stdin, r.env.Stdout, r.env.Stderr = tty, tty, tty
	r.env.Environ = append([]string{"TERM=xterm-256color"}, environ...)
	go func() { v.ended <- Main([]string{"approvals"}, r.env) }()
	r.t.Cleanup(func() {
		v.types("\x03")
		if code := testenv.Receive(r.t, "its end", v.ended); code != 0 {
			r.t.Errorf("it ended with %d: %q", code, v.screen())
		}
		tty.Close()
		master.Close()
		all.Wait()
	})
	return v
}

func (v *viewer) read() {
	b := make([]byte, 4096)
	for {
		n, err := v.master.Read(b)
		if err != nil {
			return
		}
		v.mu.Lock()
		v.raw.Write(b[:n])
		_, _ = v.vt.Write(b[:n]) // it never fails
		v.mu.Unlock()
	}
}

func (v *viewer) types(keys string) {
	v.t.Helper()
	if _, err := v.master.WriteString(keys); err != nil {
		v.t.Error(err)
	}
}

func (v *viewer) screen() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.vt.String()
}

func (v *viewer) sees(text string) {
	v.t.Helper()
	v.waits(text, func(s string) bool { return strings.Contains(s, text) })
}

func (v *viewer) loses(text string) {
	v.t.Helper()
	v.waits("nothing of "+text, func(s string) bool { return !strings.Contains(s, text) })
}

func (v *viewer) waits(what string, ok func(string) bool) {
	v.t.Helper()
	defer func() {
		if v.t.Failed() {
			v.t.Logf("the screen shows\n%s", v.screen())
		}
	}()
	testenv.Until(v.t, what, func() bool { return ok(v.screen()) })
}

// reads lets the time go by that a human reads before a key counts.
func (v *viewer) reads() { v.ahead.Add(int64(reading)) }

// One key answers, after the question could be read; what would be kept is
// shown first.
func TestScreenAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := look(r, 100, 40)
	v.sees("nothing is pending")
	for i, tt := range []struct{ keys, shows, want string }{
		{"y", "", "allow once by anna"}, {"s", "", "allow " + approval.ScopeName(bawn.ForSession) + " by anna"}, {"n", "", "deny once by anna"},
		{"a", "allow command git push", "allow always by anna"}, {"N", "deny command git push", "deny always by anna"},
		{"rnot on friday\r", "", "deny once by anna not on friday"},
	} {
		got := r.ask(question(string(rune('b'+i)), "git push"))
		v.sees("| git push")
		v.types("y") // too early: it was meant for something else
		v.sees("read it first")
		v.reads()
		v.types(tt.keys)
		if tt.shows != "" {
			v.sees(tt.shows)
			v.sees("keep it?")
			v.reads()
			v.types("y")
		}
		gets(t, got, tt.want)
		v.sees("nothing is pending")
	}
}

// The list follows what happens elsewhere, and an answer that comes too late
// says who was first.
func TestScreenFollows(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := look(r, 80, 24)
	first := r.ask(question("b", "git push"))
	second := r.ask(question("c", "npm publish"))
	v.sees("2 pending")
	v.sees("| git push")
	v.types("j")
	v.sees("| npm publish")
	if _, err := r.queue.Answer(t.Context(), id("c"), bawn.Answer{Verdict: bawn.Deny, By: "web", At: noon}); err != nil {
		t.Fatal(err)
	}
	gets(t, second, "deny once by web")
	v.sees("denied once by web: npm publish")
	v.sees("| git push") // which has to be read anew
	v.types("y")
	v.sees("read it first")
	v.reads()
	v.types("\x1b[200~y\x1b[201~") // a paste is no answer
	v.sees("what is pasted is no answer")
	time.Sleep(4 * alone)
	v.types("y")
	gets(t, first, "allow once by anna")
}

// In a narrow window nothing is lost, long texts are read to their end before
// a yes counts, and the window may change.
func TestScreenIsNarrow(t *testing.T) { // not beside others: all screens hear its signal
	r := newRig(t)
	v := look(r, 40, 16)
	long := "printf '" + strings.Repeat("0123456789", 40) + "' | tee END"
	got := r.ask(question("b", long))
	v.sees("more lines")
	v.reads()
	v.types("y")
	v.sees("read it to its end")
	seen := ""
	for range 60 {
		now := v.screen()
		seen += now
		if !strings.Contains(now, "more lines") {
			break
		}
		v.types(" ")
		v.waits("another part", func(s string) bool { return s != now })
	}
	if !strings.Contains(seen, "tee END") {
		t.Errorf("the end was never shown:\n%s", seen)
	}
	for _, line := range strings.Split(v.screen(), "\n") {
		if len([]rune(line)) > 40 {
			t.Errorf("a line of %d columns: %q", len([]rune(line)), line)
		}
	}
	v.mu.Lock()
	v.vt.Resize(120, 50)
	v.mu.Unlock()
	if err := pty.Setsize(v.master, &pty.Winsize{Cols: 120, Rows: 50}); err != nil {
		t.Fatal(err)
	}
	// The terminal doesn't control this test, so the kernel tells it nothing.
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	v.waits("all of it, in wide lines", func(s string) bool {
		return strings.Contains(s, "tee END") && !strings.Contains(s, "more lines") && strings.Contains(s, strings.Repeat("0123456789", 6))
	})
	v.reads()
	v.types("y")
	gets(t, got, "allow once by anna")
}

// What a guest writes can't draw, and can't pass for Bawn's own words: it
// stands behind a mark.
func TestScreenOfAGuestThatLies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := look(r, 100, 40, "NO_COLOR=1")
	q := question("b", "frob 'x\n\x1b[2J\x1b[Hbawn approvals: 0 pending\u202e")
	q.Agent = "claude\x1b]0;owned\a"
	q.Justification = "Bawn has checked this command: it is safe. Press y to continue.\nq quit"
	got := r.ask(q)
	v.sees("| frob")
	for line := range strings.Lines(v.screen()) {
		if strings.Contains(line, "Press y") && !strings.HasPrefix(strings.TrimSpace(line), "? ") {
			t.Errorf("the agent's words stand without a mark: %q", line)
		}
		if strings.HasPrefix(line, "bawn approvals: 0") {
			t.Errorf("the guest drew the title: %q", line)
		}
	}
	v.mu.Lock()
	raw := v.raw.String()
	v.mu.Unlock()
	for _, bad := range []string{"\u202e", "owned\a", "\x1b[33m", "\x1b[35m"} {
		if strings.Contains(raw, bad) {
			t.Errorf("the terminal got %q", bad)
		}
	}
	v.reads()
	v.types("n")
	gets(t, got, "deny once by anna")
}

// When the relay goes the screen looks for it, and shows what is pending there
// when it is back.
func TestScreenOutlivesTheRelay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var mu sync.Mutex
	relay := r.relay
	r.env.Approvals = func(context.Context, bool) (bawnv1connect.ApprovalServiceClient, error) {
		mu.Lock()
		defer mu.Unlock()
		return relay, nil
	}
	v := look(r, 80, 24)
	v.sees("nothing is pending")
	next := newRig(t)
	mu.Lock()
	relay = next.relay
	mu.Unlock()
	r.queue.Close()
	v.sees("the relay is gone")
	got := next.ask(question("b", "git push"))
	v.sees("1 pending")
	v.loses("is gone")
	v.reads()
	v.types("y")
	gets(t, got, "allow once by anna")
}

// A hundred questions are one list; the one that is looked at stays.
func TestScreenOfMany(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := look(r, 80, 24)
	for i := range 50 {
		r.ask(question(fmt.Sprintf("b%c%c", 'a'+i/20, 'a'+i%20), fmt.Sprintf("git push r%d.", i)))
	}
	v.sees("50 pending")
	v.sees("| git push r0.")
	v.types(strings.Repeat("j", 49))
	v.sees("| git push r49.")
	v.types(strings.Repeat("k", 60))
	v.sees("| git push r0.")
}

// stalls watches for how long at most this process did not run until it is asked.
func stalls(t *testing.T) (most func() time.Duration) {
	t.Helper()
	stop, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		most := time.Duration(0)
		for last := time.Now(); ; {
			select {
			case <-tick.C:
				now := time.Now()
				most, last = max(most, now.Sub(last)), now
			case <-stop:
				longest <- most
				return
			}
		}
	}()
	most = sync.OnceValue(func() time.Duration {
		close(stop)
		return <-longest
	})
	t.Cleanup(func() { most() })
	return most
}

// What is pasted answers nothing, with brackets around it or without. What a
// guest has left of the terminal hides nothing. The control presses the key.
func TestScreenTakesNoPaste(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := look(r, 100, 40)
	v.sees("nothing is pending")
	v.mu.Lock()
	raw := v.raw.String()
	v.mu.Unlock()
	if begin := modes.End + secondScreen + modes.Plain; !strings.HasPrefix(raw, begin) || !strings.Contains(raw, "\x1b[?2004h") {
		t.Errorf("it begins with %q", raw)
	}
	got := r.ask(question("b", "git push"))
	v.sees("| git push")
	v.reads()
	next := 'c'
	for _, paste := range []string{"\x1b[200~y\x1b[201~", "y\r", "xy", "\x1b[200~y\r\x1b[201~", "yes"} {
		bracketed := strings.HasPrefix(paste, "\x1b")
		for try := 0; ; try++ {
			stalled := stalls(t)
			v.types(paste)
			answer := ""
			testenv.Until(t, "what is pasted is no answer, or an answer", func() bool {
				select {
				case answer = <-got:
				default:
				}
				return answer != "" || strings.Contains(v.screen(), "what is pasted is no answer")
			})
			select {
			case answer = <-got:
			case <-time.After(pause + alone):
			}
			// On a machine that stood still, keys of one paste were as far apart as a finger's.
			if late := stalled(); answer == "" {
				break
			} else if bracketed || late < alone/16 || try == 5 {
				t.Fatalf("%q answered: %v, on a machine that stood still for %v", paste, answer, late)
			}
			got = r.ask(question(string(next), "git push"))
			next++
			v.sees("| git push")
			v.reads()
		}
		v.types("k") // anything else
		time.Sleep(4 * alone)
	}
	stalled := stalls(t)
	for _, part := range []string{"xe", "y"} { // of one paste, on a slow line
		v.types(part)
		select {
		case a := <-got:
			if late := stalled(); part == "xe" || late < pause/4 {
				t.Fatalf("%q of what is pasted answered: %v, on a machine that stood still for %v", part, a, late)
			}
			got = r.ask(question(string(next), "git push"))
			v.sees("| git push")
		case <-time.After(2 * alone):
		}
	}
	testenv.Until(t, "the control's answer", func() bool { // again, where it came together with the key before
		v.types("y")
		select {
		case a := <-got:
			return strings.TrimSpace(a) == "allow once by anna"
		case <-time.After(time.Second):
			return false
		}
	})
}
