package pluginhook

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/plugin"
)

// A program is what a plugin does with its streams.
type program func(in *bufio.Reader, out io.Writer)

// answering answers each question with a line, in which ID is that of the
// question.
func answering(line string) program {
	return func(in *bufio.Reader, out io.Writer) {
		for id := 1; ; id++ {
			if _, err := in.ReadString('\n'); err != nil {
				return
			}
			fmt.Fprintln(out, strings.ReplaceAll(line, "ID", fmt.Sprint(id)))
		}
	}
}

// A bench runs one plugin.
type bench struct {
	set    *Set
	mu     sync.Mutex
	now    time.Time
	starts int
	notes  []string
}

func newBench(t *testing.T, p program) *bench {
	t.Helper()
	b := &bench{now: time.Unix(1e9, 0)}
	b.set = NewSet(func() ([]Options, error) {
		return []Options{{
			Name: "guard", Kinds: []bawn.Kind{bawn.Command}, Patience: 2 * time.Second, Start: func() (Process, error) { b.starts++; return start(p) },
			Note: func(text string) { b.notes = append(b.notes, text) }, Now: func() time.Time { b.mu.Lock(); defer b.mu.Unlock(); return b.now },
		}}, nil
	})
	t.Cleanup(b.set.Close)
	return b
}

func start(p program) (Process, error) {
	if p == nil {
		return Process{}, errors.New("no such program")
	}
	r, in, err1 := os.Pipe()
	out, w, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		return Process{}, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p(bufio.NewReader(r), w)
		_ = w.Close() // once
		_ = r.Close()
	}()
	return Process{In: in, Out: out, End: sync.OnceFunc(func() {
		_, _ = in.Close(), out.Close() // pending reads and writes end
		<-done
	})}, nil
}

var action = bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: "make", Dir: "/p", Session: "s"}

func allowed(v bawn.Verdict) bawn.Decision {
	return bawn.Decision{Verdict: v, Rule: "user:x", Reason: "r", Source: bawn.Learned, Canonical: "make ", Env: []string{"A=b"}, Trace: []bawn.Step{{Stage: "rule"}}}
}

// TestTightens: the verdict is never freer than it was, for no answer.
func TestTightens(t *testing.T) {
	for _, inner := range []bawn.Verdict{bawn.Deny, bawn.Ask, bawn.Allow, 77} {
		for answer, most := range map[string]bawn.Verdict{"pass": bawn.Allow, "ask": bawn.Ask, "deny": bawn.Deny, "allow": bawn.Deny, "": bawn.Deny} {
			b := newBench(t, answering(`{"id":ID,"verdict":"`+answer+`","reason":"w"}`))
			was := allowed(inner)
			d := b.set.Tighten(t.Context(), action, was)
			want := bawn.Strictest(inner, most)
			if inner == 77 {
				want = inner // the guard denies it
			}
			if d.Verdict != want || d.Canonical != was.Canonical || !slices.Equal(d.Env, was.Env) || d.Trace[0] != was.Trace[0] {
				t.Errorf("%v, %q: %+v; want %v", inner, answer, d, want)
			}
			quiet := answer == "pass" || inner != bawn.Ask && inner != bawn.Allow
			if quiet != (d.Rule == was.Rule) || !quiet && (d.Rule != "plugin:guard" || d.Source != bawn.User || !strings.Contains(d.Reason, `"guard"`)) {
				t.Errorf("%v, %q: %+v", inner, answer, d)
			}
		}
	}
}

// TestWords: what a plugin says is shown as its words, bounded and visible.
func TestWords(t *testing.T) {
	b := newBench(t, answering(`{"id":ID,"verdict":"ask","reason":"\u001b[2J\u202e`+strings.Repeat("x", 4000)+`"}`))
	d := b.set.Tighten(t.Context(), action, allowed(bawn.Ask))
	if strings.ContainsAny(d.Reason, "\x1b\u202e") || len(d.Reason) > 2*maxWords || !strings.Contains(d.Reason, `wants it asked about: \x1b[2J`) || !strings.HasSuffix(d.Reason, "besides, r") {
		t.Errorf("%q", d.Reason)
	}
}

// TestNoAnswer: what is no answer denies, and says what happened.
func TestNoAnswer(t *testing.T) {
	silent := func(in *bufio.Reader, _ io.Writer) { _, _ = io.Copy(io.Discard, in) }
	for name, c := range map[string]struct {
		program program
		says    string
	}{
		"not there": {nil, "could not be started"},
		"dead":      {func(*bufio.Reader, io.Writer) {}, "it has ended"},
		"hanging":   {silent, "did not answer in 2s"},
		"flooding": {func(in *bufio.Reader, out io.Writer) {
			for _, err := io.WriteString(out, "x"); err == nil; _, err = io.WriteString(out, strings.Repeat("x", 4096)) {
			}
		}, "more than 65536 bytes"},
		"talking":   {answering(`{"id":ID,"verdict":"pass"}` + "\n" + `{"id":2,"verdict":"pass"}`), "more than it was asked"},
		"junk":      {answering("yes"), "can't be read"},
		"wrong id":  {answering(`{"id":99,"verdict":"pass"}`), "can't be read"},
		"half":      {func(in *bufio.Reader, out io.Writer) { fmt.Fprint(out, `{"id":1,"verdict":"pass"}`) }, "it has ended"},
		"the proof": {answering(`{"id":ID,"verdict":"pass"}`), ""},
	} {
		b := newBench(t, c.program)
		d := b.set.Tighten(t.Context(), action, allowed(bawn.Allow))
		if c.says == "" {
			if d.Verdict != bawn.Allow {
				t.Errorf("%s: %+v", name, d)
			}
			continue
		}
		if d.Verdict != bawn.Deny || d.Rule != "plugin:guard" || !strings.Contains(d.Reason, c.says) || len(b.notes) != 1 {
			t.Errorf("%s: %+v; want %q; %q", name, d, c.says, b.notes)
		}
	}
}

// TestBackoff: who has failed is left alone for longer each time, and denies
// meanwhile; an answer ends it.
func TestBackoff(t *testing.T) {
	good := false
	b := newBench(t, func(in *bufio.Reader, out io.Writer) {
		if _, err := in.ReadString('\n'); err == nil && good {
			fmt.Fprintln(out, `{"id":`+map[bool]string{true: "4"}[good]+`,"verdict":"pass"}`)
		}
	})
	judge := func() bawn.Verdict { return b.set.Tighten(t.Context(), action, allowed(bawn.Allow)).Verdict }
	later := func(d time.Duration) { b.mu.Lock(); defer b.mu.Unlock(); b.now = b.now.Add(d) }
	for i, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if judge() != bawn.Deny || b.starts != i+1 {
			t.Errorf("%d: %d starts", i, b.starts)
		}
		later(wait - time.Millisecond)
		if judge() != bawn.Deny || b.starts != i+1 {
			t.Errorf("%d: it is started before %v have passed", i, wait)
		}
		later(time.Millisecond)
		good = i == 2
	}
	if judge() != bawn.Allow || b.starts != 4 {
		t.Errorf("it was not started again: %d, %q", b.starts, b.notes)
	}
	good = false
	if judge() != bawn.Deny {
		t.Error("who has ended since allows")
	}
	later(firstBackoff)
	if judge(); b.starts != 5 {
		t.Errorf("an answer has not ended the backoff: %d starts", b.starts)
	}
}

// TestOthers: what a plugin is not told of it does not slow down; an unread
// manifest and a closed set deny; nobody reads manifests where nothing is judged.
func TestOthers(t *testing.T) {
	b := newBench(t, nil)
	file := action
	file.Kind = bawn.Filesystem
	if d := b.set.Tighten(t.Context(), file, allowed(bawn.Allow)); d.Verdict != bawn.Allow || b.starts != 0 {
		t.Errorf("%+v", d)
	}
	reads := 0
	broken := NewSet(func() ([]Options, error) { reads++; return nil, errors.New("/home/u/x.toml:1: no") })
	if reads != 0 {
		t.Error("manifests are read before anything is judged")
	}
	if d := broken.Tighten(t.Context(), action, allowed(bawn.Allow)); d.Verdict != bawn.Deny || d.Rule != RuleUnread || strings.Contains(d.Reason, "/home") {
		t.Errorf("%+v", d)
	}
	closed := newBench(t, answering(`{"id":ID,"verdict":"pass"}`))
	closed.set.Close()
	if d := closed.set.Tighten(t.Context(), action, allowed(bawn.Allow)); d.Verdict != bawn.Deny || closed.starts != 0 {
		t.Errorf("%+v", d)
	}
	gone, end := context.WithCancel(t.Context())
	end()
	busy := newHook(Options{Name: "guard", Now: time.Now})
	busy.turn <- struct{}{}
	if _, err := busy.ask(gone, plugin.Question{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if d := (*Set)(nil).Tighten(t.Context(), action, allowed(bawn.Allow)); d.Verdict != bawn.Allow {
		t.Errorf("%+v", d)
	}
}
