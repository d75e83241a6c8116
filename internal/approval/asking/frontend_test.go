//go:build linux || darwin

package asking

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval/grants"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/terminal"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestMain is also a bawn at a terminal of its own.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "asks" {
		os.Exit(asks(os.Args[2]))
	}
	os.Exit(m.Run())
}

// An order is what the bawn of a test is told: to ask, to take back, or to wait
// until that many questions are open.
type order struct {
	ID       uint64
	Action   *bawn.Action
	Withdraw bool
	Open     int
}

// quickly is how long questions stand in these tests before they can be answered.
const quickly = 50 * time.Millisecond

// A result is an answer.
type result struct {
	ID     uint64
	Answer bawn.Answer
	Err    string
}

// asks is bawn at a terminal of its own: it takes orders from its input, and
// writes the answers.
func asks(state string) int {
	tty, err := terminal.New([3]*os.File{}, nil)
	if err != nil {
		return 3
	}
	d := New(Options{Session: "s", Grants: grants.In(state), Reading: quickly})
	defer d.Close()
	defer d.Sit(tty)()
	var mu sync.Mutex
	var all sync.WaitGroup
	out := json.NewEncoder(os.Stdout)
	waiting := map[uint64]context.CancelFunc{}
	base, end := context.WithTimeout(context.Background(), 5*time.Minute)
	for in := json.NewDecoder(os.Stdin); ; {
		var o order
		if err := in.Decode(&o); err != nil {
			end()
			all.Wait()
			return 0
		}
		if o.Open > 0 {
			for opened := 0; opened < o.Open && base.Err() == nil; time.Sleep(time.Millisecond) {
				d.mu.Lock()
				opened = len(d.open)
				d.mu.Unlock()
			}
			mu.Lock()
			_ = out.Encode(result{Err: "are open"}) // as below
			mu.Unlock()
			continue
		}
		if o.Withdraw {
			if cancel := waiting[o.ID]; cancel != nil {
				cancel()
			}
			continue
		}
		ctx, cancel := context.WithCancel(base)
		waiting[o.ID] = cancel
		entered := make(chan struct{})
		all.Go(func() {
			close(entered)
			a, err := d.Approver(normal).Approve(ctx, *o.Action, bawn.Decision{Reason: "nobody has said", Rule: "builtin:host", Canonical: o.Action.Resource})
			r := result{ID: o.ID, Answer: a}
			if err != nil {
				r.Err = err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			_ = out.Encode(r) // nobody reads it: then the test is over
		})
		<-entered
	}
}

// normal is a zone in normal mode.
var normal = Zone{Question: policy.Question{
	Mode: bawn.ModeNormal, Autonomy: bawn.AutonomyModerate, Workspace: "/srv/app", Home: "/home/u", System: "linux",
}}

// A person is a human in front of a process that asks.
type person struct {
	t       *testing.T
	master  *os.File
	state   string
	orders  *json.Encoder
	answers chan result
	mu      sync.Mutex
	screen  bytes.Buffer
}

func sitDown(t *testing.T) *person {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: 30, Cols: 200}); err != nil {
		t.Fatal(err)
	}
	d := &person{t: t, master: master, state: t.TempDir(), answers: make(chan result, 99)}
	cmd := exec.Command(self, "asks", d.state)
	cmd.ExtraFiles, cmd.Stderr = []*os.File{tty}, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	d.orders = json.NewEncoder(in)
	var all sync.WaitGroup
	all.Go(func() { io.Copy(d, master) })
	all.Go(func() {
		defer close(d.answers)
		for from := json.NewDecoder(out); ; {
			var r result
			if from.Decode(&r) != nil {
				return
			}
			d.answers <- r
		}
	})
	t.Cleanup(func() {
		in.Close() // its end, also in the middle of a conversation
		over := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
		if err := cmd.Wait(); err != nil || !over.Stop() {
			t.Errorf("the process ended with %v", err)
		}
		master.Close()
		all.Wait()
	})
	return d
}

func (d *person) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.screen.Write(b)
}

func (d *person) shown() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.screen.String()
}

func (d *person) sees(text string, times int) {
	d.t.Helper()
	defer d.told()
	testenv.Until(d.t, fmt.Sprintf("%q %d times", text, times), func() bool { return strings.Count(d.shown(), text) >= times })
}

// told says what the screen shows, where the test has failed.
func (d *person) told() {
	if d.t.Failed() {
		d.t.Logf("the screen shows %q", d.shown())
	}
}

// opened waits until that many questions are open.
func (d *person) opened(n int) {
	d.t.Helper()
	d.order(order{Open: n})
	if got := d.answer(); got != "0 are open" {
		d.t.Errorf("answered %q; want %d questions to be open", got, n)
	}
}

const prompt = "allow it for this session? [y/a/n/N/?] "

func (d *person) order(o order) {
	d.t.Helper()
	if err := d.orders.Encode(o); err != nil {
		d.t.Fatal(err)
	}
}

func (d *person) ask(id uint64, resource string, args ...string) {
	d.t.Helper()
	d.order(order{ID: id, Action: &bawn.Action{Kind: bawn.Network, Operation: bawn.Connect, Resource: resource, Args: args, Dir: "/srv/app"}})
}

func (d *person) run(id uint64, line string) {
	d.t.Helper()
	d.order(order{ID: id, Action: &bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: line, Dir: "/srv/app"}})
}

// types presses keys, Enter after a moment.
func (d *person) types(keys string) {
	d.t.Helper()
	if line, ok := strings.CutSuffix(keys, "\r"); ok && line != "" {
		from := len(d.shown())
		d.sends(line)
		d.seesAfter(line, from) // on a busy machine Enter would come along otherwise, as in what is pasted
		time.Sleep(4 * apart)
		keys = "\r"
	}
	d.sends(keys)
}

// sends has keys come at once.
func (d *person) sends(keys string) {
	d.t.Helper()
	if _, err := io.WriteString(d.master, keys); err != nil {
		d.t.Fatal(err)
	}
}

var scopes = map[bawn.Scope]string{bawn.Once: "once", bawn.ForSession: "session", bawn.Always: "always"}

// answer is the next one.
func (d *person) answer() string {
	d.t.Helper()
	defer d.told()
	switch r := testenv.Receive(d.t, "an answer", d.answers); {
	case r == result{}:
		return "the end"
	case r.Err != "":
		return fmt.Sprintf("%d %s", r.ID, r.Err)
	default:
		return strings.TrimSpace(fmt.Sprintf("%d %v %s by %s %s", r.ID, r.Answer.Verdict, scopes[r.Answer.Scope], r.Answer.By, r.Answer.Why))
	}
}

// Only known answers count, and a human who leaves has said no.
func TestAnswers(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	for i, tt := range []struct {
		keys []string
		want string
	}{
		{[]string{"y\r"}, "allow session"}, {[]string{" YES \r"}, "allow session"}, {[]string{"n\r"}, "deny session"}, {[]string{"\x03"}, "deny session"}, {[]string{"\x04"}, "deny session"},
		{[]string{"\r", "maybe\r", "yy\r", "y please\r", "n\r"}, "deny session"}, {[]string{"\x1b[200~y\r\x1b[201~", "n\r"}, "deny session"}, // the first is pasted
	} {
		id := uint64(i + 1)
		before := strings.Count(d.shown(), prompt)
		d.ask(id, fmt.Sprintf("host%d.test:443", id))
		d.sees(fmt.Sprintf("connect to host%d.test:443", id), 1)
		for j, keys := range tt.keys {
			d.sees(prompt, before+j+1)
			d.types(keys)
		}
		if got, want := d.answer(), fmt.Sprintf("%d %s by terminal", id, tt.want); got != want {
			t.Errorf("%q: answered %q; want %q", tt.keys, got, want)
		}
	}
}

// Of a command each answer means what it says, and a rule is kept only after
// it was shown and confirmed.
func TestCommandAnswers(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	const once, keep = "allow it once? [y/s/a/n/N/?] ", "keep it? [yes/no] "
	for i, tt := range []struct {
		line, shows string
		keys        []string
		want        string
	}{
		{"git push a", "", []string{once, "y\r"}, "allow once by terminal"},
		{"git push b", "", []string{once, "n use the staging remote \r"}, "deny once by terminal use the staging remote"},
		{"git push c", "allow command git push c", []string{once, "a\r", keep, "no\r", once, "a\r", keep, "yes\r"}, "allow always by terminal"},
		{"git push d", "deny command git push d", []string{once, "N not ever\r", keep, "yes\r"}, "deny always by terminal not ever"},
		{"git push e", "asked because: nobody has said", []string{once, "?\r", once, "s\r"}, "allow session by terminal"},
	} {
		id, from := uint64(i+1), len(d.shown())
		d.run(id, tt.line)
		for at := 0; at < len(tt.keys); at += 2 {
			from = d.seesAfter(tt.keys[at], from)
			d.types(tt.keys[at+1])
		}
		if got, want := d.answer(), fmt.Sprintf("%d %s", id, tt.want); got != want {
			t.Errorf("%s: answered %q; want %q", tt.line, got, want)
		}
		if !strings.Contains(d.shown(), tt.shows) {
			t.Errorf("%s: the screen shows %q; want %q", tt.line, d.shown(), tt.shows)
		}
	}
	rules, err := grants.In(d.state).Rules()
	if err != nil || len(rules) != 2 || rules[0].Pattern != "git push c" || rules[0].Verdict != bawn.Allow || rules[1].Pattern != "git push d" || rules[1].Verdict != bawn.Deny {
		t.Errorf("kept %+v, %v", rules, err)
	}
}

// TestOnceForOne: of several that ask the same each yes is for one, and how many
// there are is shown. The control is a yes for the session.
func TestOnceForOne(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	from := 0
	for id := range uint64(5) {
		d.run(id+1, "git push x")
		if id == 0 {
			from = d.seesAfter("once? [", 0)
		}
	}
	d.opened(5)
	for _, left := range []int{4, 3} {
		d.types("y\r")
		if got := d.answer(); !strings.HasSuffix(got, "allow once by terminal") {
			t.Errorf("answered %q", got)
		}
		from = d.seesAfter(fmt.Sprintf("bawn: %d ask for it; \"once\" is for one of them", left), from)
		from = d.seesAfter("once? [", from)
	}
	select {
	case r := <-d.answers:
		t.Errorf("%+v without an answer of its own", r)
	case <-time.After(quickly + 100*time.Millisecond):
	}
	d.types("s\r")
	for range 3 {
		if got := d.answer(); !strings.HasSuffix(got, "allow session by terminal") {
			t.Errorf("answered %q", got)
		}
	}
}

// seesAfter waits for text behind a place of the screen, and returns where it
// ends.
func (d *person) seesAfter(text string, from int) int {
	d.t.Helper()
	defer d.told()
	var end int
	testenv.Until(d.t, fmt.Sprintf("%q after %d", text, from), func() bool {
		s := d.shown()
		i := strings.Index(s[min(from, len(s)):], text)
		end = from + i + len(text)
		return i >= 0
	})
	return end
}

// A question that is taken back leaves the screen to the next, unanswered; one
// that waits for its turn is never shown.
func TestWithdrawn(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	d.ask(1, "first.test:443")
	d.sees(prompt, 1)
	d.ask(2, "second.test:443")
	d.ask(3, "third.test:443")
	d.opened(3)
	for _, id := range []uint64{99, 2, 1} {
		if d.order(order{ID: id, Withdraw: true}); id == 99 {
			continue
		}
		if got := d.answer(); got != fmt.Sprintf("%d context canceled", id) {
			t.Errorf("a question that was taken back: %q", got)
		}
	}
	d.sees("nobody waits for the answer any more", 1)
	d.sees("third.test", 1)
	d.sees(prompt, 2)
	d.types("y\r")
	if got := d.answer(); got != "3 allow session by terminal" || strings.Contains(d.shown(), "second") {
		t.Errorf("answered %q; the screen shows %q", got, d.shown())
	}
	d.ask(4, "fourth.test:443") // it ends in the middle of this one
	d.sees("fourth.test", 1)
}

// What a guest has chosen is shown as it is, and can't draw.
func TestShownAsItIs(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	d.ask(1, "https://a.test/\x1b[2J\u202etset.b\r\nbawn: fine\u200b", "GET")
	d.sees(`GET https://a.test/\x1b[2J\u202etset.b\r\nbawn:\x20fine\u200b`, 1)
	d.sees("for this session? [", 1)
	d.types("n\r")
	d.answer()
	d.run(2, "frob 'x\nbawn: allowed\nbawn: allow it? [y] '\x1b[2J\u202e")
	d.sees("once? [", 1)
	d.types("n\r")
	d.answer()
	s := d.shown()
	if strings.Contains(s, "/\x1b[2J") || strings.Contains(s, "'\x1b[2J") || strings.Contains(s, "\u202e") {
		t.Errorf("the screen got %q", s)
	}
	for line := range strings.Lines(s) {
		if strings.HasPrefix(strings.TrimLeft(line, "\r"), "bawn: allowed") {
			t.Errorf("a guest wrote a line of Bawn's: %q in %q", line, s)
		}
	}
}

// TestNothingScrollsAway: a command of which the beginning would be out of
// sight when the question comes is not asked about here. The control is the
// same command with fewer rows.
func TestNothingScrollsAway(t *testing.T) {
	t.Parallel()
	d := sitDown(t) // of 30 rows
	text := func(rows int) string {
		return "git push --force; cat >/dev/null <<'X'\n" + strings.Repeat("\n", rows) + "X"
	}
	d.run(1, text(5))
	d.sees("once? [", 1)
	d.types("n\r")
	if got, want := d.answer(), "1 deny once by terminal"; got != want {
		t.Errorf("answered %q; want %q", got, want)
	}
	d.run(2, text(40))
	if got, want := d.answer(), "2 deny once by terminal it is too long to be shown to a human"; got != want {
		t.Errorf("answered %q; want %q", got, want)
	}
	if err := pty.Setsize(d.master, &pty.Winsize{Rows: 30, Cols: 40}); err != nil {
		t.Fatal(err)
	}
	d.run(3, "frob "+strings.Repeat("x", 1500)) // 38 rows now, 8 before
	if got, want := d.answer(), "3 deny once by terminal it is too long to be shown to a human"; got != want {
		t.Errorf("answered %q; want %q", got, want)
	}
}
