package executor

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/ticket"
)

// leaves is a command that leaves a mark. It ends once the mark is there.
func leaves(mark string) Do { return command("touch", mark) }

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

// refusedWith does d and wants a refusal by a rule, and no mark.
func (l *lab) refusedWith(t *testing.T, d Do, rule, mark string) {
	t.Helper()
	p, err := l.Do(testenv.Context(t), d, [3]*os.File{})
	var no *RefusedError
	if !errors.As(err, &no) || no.Rule != rule {
		t.Errorf("got %v, want a refusal by %s", err, rule)
	}
	if p != nil {
		last(t, p)
	}
	if _, end := l.run(t, command("true")); end.Status != 0 { // whatever was started before has been by now
		t.Errorf("a command after it: %v", end)
	}
	if exists(mark) {
		t.Error("the command ran all the same")
	}
}

// TestOnlyWhatTheTicketSaysIsStarted takes a good ticket and changes one thing.
func TestOnlyWhatTheTicketSaysIsStarted(t *testing.T) {
	l := start(t)
	other := ticket.NewIssuer(time.Now)
	issued := func(i *ticket.Issuer, s string, plan [32]byte) func(*Do) {
		return func(d *Do) {
			digest, err := d.Digest(s, plan)
			if err != nil {
				t.Fatal(err)
			}
			if d.Ticket, err = i.Issue(s, digest, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
	}
	otherPlan := plan
	otherPlan[0]++
	for name, tt := range map[string]struct {
		change func(d *Do)
		rule   ticket.Rule
	}{
		"no ticket at all":        {func(d *Do) { d.Ticket = nil }, ticket.RuleMalformed},
		"forged with an own key":  {issued(other, session, plan), ticket.RuleKey},
		"of another session":      {issued(l.issuer, "s2", plan), ticket.RuleSession},
		"of another plan":         {issued(l.issuer, session, otherPlan), ticket.RuleDigest},
		"another word":            {func(d *Do) { d.Argv[1] += "x" }, ticket.RuleDigest},
		"a word more":             {func(d *Do) { d.Argv = append(d.Argv, "/tmp") }, ticket.RuleDigest},
		"another directory":       {func(d *Do) { d.Dir = "/usr" }, ticket.RuleDigest},
		"another value":           {func(d *Do) { d.Env[0] = "PATH=/tmp:/usr/bin" }, ticket.RuleDigest},
		"a variable more":         {func(d *Do) { d.Env = append(d.Env, "LD_PRELOAD=/tmp/x.so") }, ticket.RuleDigest},
		"in the background":       {func(d *Do) { d.Background = true }, ticket.RuleDigest},
		"without its time limit":  {func(d *Do) { d.Limits.Timeout = 0 }, ticket.RuleDigest},
		"with another file limit": {func(d *Do) { d.Limits.OpenFiles = 1000 }, ticket.RuleDigest},
		"a bit of the signature":  {func(d *Do) { d.Ticket = flip(t, d.Ticket) }, ticket.RuleForged},
		"not base64 any more":     {func(d *Do) { d.Ticket[20] = '!' }, ticket.RuleMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			mark := filepath.Join(t.TempDir(), "mark")
			d := leaves(mark)
			d.Limits.Timeout = time.Minute
			d = l.signed(t, d)
			tt.change(&d)
			l.refusedWith(t, d, string(tt.rule), mark)
			if d := l.signed(t, leaves(mark)); l.does(t, d) != nil || !exists(mark) {
				t.Error("control: what has a ticket was not started")
			}
		})
	}
}

// flip changes one bit of a ticket's signature.
func flip(t *testing.T, ticket []byte) []byte {
	t.Helper()
	head, rest, found := strings.Cut(string(ticket), `"sig":"`)
	text, tail, _ := strings.Cut(rest, `"`)
	sig, err := base64.StdEncoding.DecodeString(text)
	if !found || err != nil {
		t.Fatalf("%q has no signature: %v", ticket, err)
	}
	sig[3] ^= 1
	return []byte(head + `"sig":"` + base64.StdEncoding.EncodeToString(sig) + `"` + tail)
}

// does does d and waits for its end.
func (l *lab) does(t *testing.T, d Do) error {
	t.Helper()
	p, err := l.Do(testenv.Context(t), d, [3]*os.File{})
	if err == nil {
		last(t, p)
	}
	return err
}

func TestStandardInputCounts(t *testing.T) {
	l := start(t)
	mark := filepath.Join(t.TempDir(), "mark")
	d := l.signed(t, leaves(mark))
	d.Stdio[0] = true
	r, w, _ := os.Pipe()
	defer r.Close()
	defer w.Close()
	var no *RefusedError
	if _, err := l.Do(testenv.Context(t), d, [3]*os.File{r}); !errors.As(err, &no) || no.Rule != string(ticket.RuleDigest) {
		t.Errorf("got %v", err)
	}
	if exists(mark) {
		t.Error("it ran")
	}
}

// TestExecWithoutAStart is PocketCoder's /exec, which ran any command for every
// client that reached the executor's port.
func TestExecWithoutAStart(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	l := launch(t)
	var no *RefusedError
	if _, err := l.Do(testenv.Context(t), l.signed(t, leaves(mark)), [3]*os.File{}); !errors.As(err, &no) || no.Rule != RuleEarly {
		t.Errorf("got %v", err)
	}
	if _, err := l.Start(testenv.Context(t), Start{Keys: l.issuer.Keys(), Session: session, Plan: plan}); err != nil {
		t.Fatal(err)
	}
	if exists(mark) {
		t.Error("it ran")
	}
	if err := l.does(t, l.signed(t, leaves(mark))); err != nil || !exists(mark) {
		t.Errorf("control: %v", err)
	}
}

func TestReplayed(t *testing.T) {
	l := start(t)
	mark := filepath.Join(t.TempDir(), "mark")
	d := l.signed(t, leaves(mark))
	if err := l.does(t, d); err != nil || !exists(mark) {
		t.Fatalf("control: %v", err)
	}
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	l.refusedWith(t, d, string(ticket.RuleReplayed), mark)
}

// TestOneTicketTwiceAtOnce: exactly one runs.
func TestOneTicketTwiceAtOnce(t *testing.T) {
	l := start(t)
	dir := t.TempDir()
	for range 10 {
		d := l.signed(t, command("mktemp", "-p", dir))
		var ran atomic.Int32
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if l.does(t, d) == nil {
					ran.Add(1)
				}
			})
		}
		all.Wait()
		if ran.Load() != 1 {
			t.Errorf("it was started %d times", ran.Load())
		}
	}
	if list, _ := os.ReadDir(dir); len(list) != 10 {
		t.Errorf("%d marks; want 10", len(list))
	}
}

func TestExpired(t *testing.T) {
	l := start(t)
	mark := filepath.Join(t.TempDir(), "mark")
	d := leaves(mark)
	digest, err := d.Digest(session, plan)
	if err != nil {
		t.Fatal(err)
	}
	if d.Ticket, err = l.issuer.Issue(session, digest, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Millisecond)
	l.refusedWith(t, d, string(ticket.RuleExpired), mark)
}

// TestRotatedKey: a ticket of a key that is trusted no more, one of a key that
// is not trusted yet, and one of a key that still is.
func TestRotatedKey(t *testing.T) {
	l := start(t)
	mark := filepath.Join(t.TempDir(), "mark")
	old := l.signed(t, leaves(mark))
	keys := l.issuer.Rotate()
	early := l.signed(t, leaves(mark))
	l.refusedWithout(t, early, mark)
	if err := l.Trust(keys); err != nil {
		t.Fatal(err)
	}
	if err := l.does(t, old); err != nil || !exists(mark) {
		t.Errorf("control: a ticket from before the rotation: %v", err)
	}
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	if err := l.does(t, early); err != nil || !exists(mark) { // it was refused, and not used up
		t.Errorf("control: %v", err)
	}
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	next := l.signed(t, leaves(mark))
	if err := l.Trust(nil); err != nil {
		t.Fatal(err)
	}
	l.refusedWithout(t, next, mark)
}

// refusedWithout wants d to be refused for its key.
func (l *lab) refusedWithout(t *testing.T, d Do, mark string) {
	t.Helper()
	var no *RefusedError
	if err := l.does(t, d); !errors.As(err, &no) || no.Rule != string(ticket.RuleKey) || exists(mark) {
		t.Errorf("got %v", err)
	}
}

func TestWhatHasNoMeaning(t *testing.T) {
	l := start(t)
	for name, change := range map[string]func(d *Do){
		"a relative directory": func(d *Do) { d.Dir = "tmp" },
		"a variable twice":     func(d *Do) { d.Env = append(d.Env, "PATH=/tmp") },
		"no words":             func(d *Do) { d.Argv = nil },
		"a NUL":                func(d *Do) { d.Argv[0] = "true\x00x" },
	} {
		d := l.signed(t, command("true"))
		change(&d)
		var no *RefusedError
		if err := l.does(t, d); !errors.As(err, &no) || no.Rule != RuleMeaning {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestLimitsOfTheZoneAreRefused: what can't be enforced for one command is not
// ignored.
func TestLimitsOfTheZoneAreRefused(t *testing.T) {
	l := start(t)
	for _, limits := range []bawn.Resources{{MemoryMB: 1}, {CPUs: 1}, {CPUShares: 2}, {PIDs: 1}, {TmpMB: 1}} {
		d := command("true")
		d.Limits = Limits(limits)
		var no *RefusedError
		if err := l.does(t, l.signed(t, d)); !errors.As(err, &no) || no.Rule != RuleLimits {
			t.Errorf("%+v: got %v", limits, err)
		}
	}
}

// TestNonsenseEndsTheExecutor: the host never writes such orders, so the executor
// ends.
func TestNonsenseEndsTheExecutor(t *testing.T) {
	for name, say := range map[string]func(l *lab) error{
		"a second start":          func(l *lab) error { return l.send(&order{Start: &Start{Keys: l.issuer.Keys()}}) },
		"an unknown member":       func(l *lab) error { return l.conn.Send(map[string]any{"Signal": map[string]int{"Id2": 3}}) },
		"a file with a signal":    func(l *lab) error { return l.conn.Send(&order{Signal: &signal{1, 1}}, os.Stderr) },
		"fewer files than stated": func(l *lab) error { return l.send(&order{Do: &wireDo{Do: Do{ID: 9, Stdio: [3]bool{true}}}}) },
	} {
		t.Run(name, func(t *testing.T) {
			l := start(t)
			p, err := l.Do(testenv.Context(t), l.signed(t, command("sleep", "100")), [3]*os.File{})
			if err != nil {
				t.Fatal(err)
			}
			if err := say(l); err != nil {
				t.Fatal(err)
			}
			if end := last(t, p); !end.Status.Signaled() {
				t.Errorf("the command's end: %v", end)
			}
			if _, err := l.Do(context.Background(), l.signed(t, command("true")), [3]*os.File{}); !errors.Is(err, ErrGone) {
				t.Errorf("got %v, want ErrGone", err)
			}
		})
	}
}
