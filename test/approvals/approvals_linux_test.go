// Package approvals_test tests questions and answers with the real programs: a guest that
// asks, a person who answers at a terminal and elsewhere, and a relay between them, which
// is also killed.
package approvals_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// patience ends a command that hangs.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == testhome.GuestWord {
		os.Exit(guest(os.Args[2], os.Args[3:]))
	}
	os.Exit(testhome.Main("approvals", m.Run))
}

// guest tries to reach each address, and says what came of it.
func guest(network string, addresses []string) int {
	for _, a := range addresses {
		conn, err := net.DialTimeout(network, a, patience)
		if err == nil {
			_ = conn.SetReadDeadline(time.Now().Add(2 * patience)) // later than the test gives up: what is refused is reset
			if strings.HasPrefix(a, "killed.") {                   // allowed, and then looked for by the host's name servers
				_ = conn.SetReadDeadline(time.Now().Add(patience / 2))
			}
			if strings.HasSuffix(a, "relay.sock") { // the API is silent until it is asked
				_, _ = conn.Write([]byte("GET / HTTP/1.1\r\nHost: relay\r\n\r\n"))
			}
			_, err = conn.Read(make([]byte, 1))
		}
		if err == nil {
			fmt.Println("reached", a)
			continue
		}
		fmt.Println("refused", a, err)
	}
	return 0
}

var check = testhome.Check

// An account is the home of a user, with a project.
type account struct {
	t *testing.T
	*testhome.Account
}

func newAccount(t *testing.T) *account {
	t.Helper()
	r := &account{t, testhome.NewAccount(t, patience)}
	r.Env = []string{"HOME=" + r.Home, "PATH=" + r.Bin + ":/usr/bin:/bin", "TERM=xterm", "LANG=C.UTF-8"}
	return r
}

// reach is the command line of a session whose guest tries addresses.
func (r *account) reach(addresses ...string) []string {
	words := []string{"bawn", "run", "--net", "allowlist", "--"}
	return append(words, r.Guest(append([]string{"tcp"}, addresses...)...)...)
}

// run runs one command without a terminal.
func (r *account) run(argv ...string) (code int, out, errs string) {
	r.t.Helper()
	got := r.Run(r.t, argv...)
	return got.Code, got.Out, got.Err
}

// relay starts bawn serve, and returns what kills it.
func (r *account) relay() (kill func()) {
	r.t.Helper()
	cmd := r.Command(context.Background(), "bawn", "serve")
	said, err := cmd.StderrPipe()
	check(r.t, err)
	check(r.t, cmd.Start())
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // -9
		_ = cmd.Wait()
	})
	r.t.Cleanup(kill)
	ready := make(chan struct{}, 1)
	go func() { // a relay that a session has started may answer until this one has taken over
		_, _ = io.ReadFull(said, make([]byte, 1)) // the first line of its log says that it serves
		ready <- struct{}{}
		_, _ = io.Copy(io.Discard, said)
	}()
	testenv.Receive(r.t, "the relay", ready)
	testenv.Until(r.t, "the relay", func() bool {
		code, _, errs := r.run("bawn", "approvals")
		return code == 0 && !strings.Contains(errs, "no relay runs")
	})
	return kill
}

type question struct {
	ID, Resource, State string
	Waiting             int
}

// pending waits for the question about a host.
func (r *account) pending(resource string) question { r.t.Helper(); return r.asked(resource, 1) }

// asked waits until that many ask a question.
func (r *account) asked(resource string, waiting int) (q question) {
	r.t.Helper()
	var last string
	defer func() {
		if r.t.Failed() {
			r.t.Logf("pending: %s", last)
		}
	}()
	testenv.Until(r.t, fmt.Sprintf("a question of %d about %s", waiting, resource), func() bool {
		_, out, errs := r.run("bawn", "approvals", "--json")
		last = out + errs
		for d := json.NewDecoder(strings.NewReader(out)); ; {
			q = question{}
			if err := d.Decode(&q); errors.Is(err, io.EOF) {
				return false
			} else if err != nil {
				r.t.Fatalf("%q: %v", out, err)
			}
			if q.Resource == resource && q.Waiting == waiting {
				return true
			}
		}
	})
	return q
}

// A terminal is a pseudo-terminal with a session in it.
type terminal struct {
	t      *testing.T
	master *os.File
	mu     sync.Mutex
	text   string
	done   chan struct{}
}

func (r *account) openTerminal(argv ...string) *terminal {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := r.Command(ctx, argv...)
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 200})
	check(r.t, err)
	s := &terminal{t: r.t, master: master, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			s.mu.Lock()
			s.text += string(b[:n])
			s.mu.Unlock()
			if err != nil { // EIO once nobody has the other side
				return
			}
		}
	}()
	r.t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed, or has ended
		master.Close()
		<-s.done
	})
	return s
}

func (s *terminal) sees(text string) {
	s.t.Helper()
	s.seesAfter("", text)
}

// seesAfter waits for a text behind another one.
func (s *terminal) seesAfter(first, text string) {
	s.t.Helper()
	defer func() {
		if s.t.Failed() {
			s.t.Logf("the screen shows\n%s", s.shown())
		}
	}()
	testenv.Until(s.t, strconv.Quote(text), func() bool {
		_, rest, found := strings.Cut(s.shown(), first)
		return found && strings.Contains(rest, text)
	})
}

func (s *terminal) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text
}

// answers types a key, once the prompt of a question is there, and then Enter:
// both at once would be a paste.
func (s *terminal) answers(question, key string) {
	s.t.Helper()
	const prompt = "[y/a/n/N/?] "
	s.seesAfter(question, prompt)
	_, err := s.master.WriteString(key)
	check(s.t, err)
	s.seesAfter(question, prompt+key)
	time.Sleep(120 * time.Millisecond) // no finger is faster
	_, err = s.master.WriteString("\r")
	check(s.t, err)
}

// me is how the relay calls the person who answers at its socket.
func me() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "the user"
}

// answer runs a verb that answers, and wants it to count.
func (r *account) answer(argv ...string) {
	r.t.Helper()
	if code, out, errs := r.run(argv...); code != 0 {
		r.t.Fatalf("%q: %d %s%s", argv, code, out, errs)
	}
}

// The human answers elsewhere, and the terminal shows it. The relay is killed with a
// pending question and has it when it returns. Without the relay the terminal answers
// alone. Answers "always" hold in later sessions.
func TestAnsweredElsewhere(t *testing.T) {
	r := newAccount(t)
	kill := r.relay()
	s := r.openTerminal(r.reach("never.test:443", "killed.test:443", "alone.test:443")...)
	s.sees("connect to never.test:443")
	q := r.pending("never.test:443")
	r.answer("bawn", "deny", q.ID[:8], "--never", "--why", "not\x1b[2J here")
	s.sees("answered by " + me() + ": denied always (not\\x1b[2J here)")
	s.sees("refused never.test:443")
	if code, _, errs := r.run("bawn", "approve", q.ID); code != 1 || !strings.Contains(errs, "too late, denied always by "+me()) {
		t.Errorf("the second answer: %d %s", code, errs)
	}
	s.sees("connect to killed.test:443")
	before := r.pending("killed.test:443")
	kill()
	kill = r.relay()
	if after := r.pending("killed.test:443"); after.ID != before.ID {
		t.Errorf("the question came back as %s; want %s", after.ID, before.ID)
	}
	r.answer("bawn", "approve", before.ID[:8], "--always")
	s.sees("answered by " + me() + ": allowed always")
	s.sees("connect to alone.test:443")
	kill()
	s.answers("connect to alone.test:443", "n")
	s.sees("refused alone.test:443")

	_, rules, _ := r.run("bawn", "policy", "approved")
	if !strings.Contains(rules, "never.test:443") || !strings.Contains(rules, "killed.test:443") {
		t.Errorf("kept:\n%s", rules)
	}
	_, shown, _ := r.run("bawn", "policy", "show", "--source", "user")
	if !strings.Contains(shown, `answered "never" by `+me()) {
		t.Errorf("bawn policy show:\n%s", shown)
	}
	if _, out, _ := r.run(r.reach("never.test:443")...); !strings.Contains(out, "refused never.test:443") {
		t.Errorf("a later session: %s", out)
	}
}

// A guest that can see the relay's sockets, since somebody has put them into
// its workspace, is not let in, and can't answer for its human by any way that
// Bawn has.
func TestGuestAnswersNothing(t *testing.T) {
	r := newAccount(t)
	r.Env = append(r.Env, "XDG_RUNTIME_DIR="+filepath.Join(r.Work, "run"))
	check(t, os.Mkdir(filepath.Join(r.Work, "run"), 0o700))
	r.relay()
	sockets := []string{filepath.Join(r.Work, "run/bawn/relay.sock"), filepath.Join(r.Work, "run/bawn/hosts.sock")}
	dial := r.Guest(append([]string{"unix"}, sockets...)...)
	out, err := exec.Command(dial[0], dial[1:]...).Output()
	if err != nil || strings.Count(string(out), "reached") != 2 {
		t.Fatalf("control: %s %v", out, err)
	}
	_, inside, _ := r.run(append([]string{"bawn", "run", "--net", "none", "--"}, dial...)...)
	if strings.Contains(inside, "reached") || strings.Count(inside, "refused") != 2 {
		t.Errorf("from inside: %s", inside)
	}
	s := r.openTerminal(r.reach("some.test:443")...)
	s.sees("connect to some.test:443")
	q := r.pending("some.test:443")
	for _, way := range [][]string{
		{filepath.Join(r.Bin, "bawn"), "approve", q.ID}, {"env", "-u", "BAWN_SESSION", filepath.Join(r.Bin, "bawn"), "approve", q.ID},
		{"env", "-u", "BAWN_SESSION", filepath.Join(r.Bin, "bawnd"), "approve", q.ID, "--always"},
	} {
		code, out, errs := r.run(append([]string{"bawn", "run", "--net", "none", "--"}, way...)...)
		if code == 0 {
			t.Errorf("%q: %s%s", way, out, errs)
		}
		if way[0] != "env" && (code != 126 || !strings.Contains(errs, "only the human may answer")) {
			t.Errorf("%q: %d %s", way, code, errs)
		}
	}
	if again := r.pending("some.test:443"); again.State != "pending" {
		t.Errorf("the question is %s", again.State)
	}
	r.answer("bawn", "deny", q.ID) // control: from outside
	s.sees("refused some.test:443")
}
