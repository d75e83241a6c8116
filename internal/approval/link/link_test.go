package link

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/strictjson"
	"github.com/bawn-dev/bawn/internal/testenv"
)

func about(session, resource string) approval.Question {
	return approval.Question{
		ID: approval.NewID(), Session: session, Agent: "test", Expires: time.Now().Add(time.Minute),
		Action: bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: resource, Dir: "/w"},
	}
}

var yes, no = bawn.Answer{Verdict: bawn.Allow, By: "yes"}, bawn.Answer{Verdict: bawn.Deny, By: "no"}

// A rig is a relay in this process that can go away and come back.
type rig struct {
	*testing.T
	path  string
	store approval.Memory
	queue *approval.Queue
	l     net.Listener
	done  chan struct{}
	// keyless counts who was refused for want of the key.
	keyless atomic.Int32
}

func newRig(t *testing.T) *rig {
	r := &rig{T: t, path: filepath.Join(t.TempDir(), "s")}
	r.up(func(net.Conn) error { return nil })
	t.Cleanup(r.down)
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r *rig) up(admit func(net.Conn) error) {
	var err error
	r.queue, err = approval.NewQueue(context.Background(), approval.Options{Store: &r.store})
	must(r.T, err)
	r.l, err = net.Listen("unix", r.path)
	must(r.T, err)
	s := &Server{Prompter: r.queue, Admit: admit, Keyless: func(error) { r.keyless.Add(1) }}
	done := make(chan struct{})
	r.done = done
	l := r.l
	go func() {
		defer close(done)
		if err := s.Serve(l); err != nil {
			r.T.Error(err)
		}
	}()
}

func lineTo(t testing.TB, conn net.Conn) *line {
	t.Helper()
	l, err := newLine(conn)
	must(t, err)
	return l
}

// framed is a message as package ipc writes it.
func framed(text string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) + text
}

// key reads the key, as soon as it is there.
func (r *rig) key() string {
	r.Helper()
	conn, err := net.Dial("unix", r.path)
	must(r.T, err)
	defer conn.Close()
	var ready reply
	must(r.T, lineTo(r.T, conn).receive(&ready))
	key, err := os.ReadFile(KeyOf(r.path))
	must(r.T, err)
	return string(key)
}

func (r *rig) down() {
	r.l.Close()
	r.queue.Close()
	<-r.done
}

func (r *rig) dial(o Options) *Client {
	r.Helper()
	o.Path = r.path
	if o.Secret == "" { // each is a host of its own
		o.Secret = rand.Text()
	}
	c, err := Dial(r.Context(), o)
	must(r.T, err)
	r.Cleanup(func() { c.Close() })
	return c
}

// pending waits until n questions are.
func (r *rig) pending(n int) []approval.Record {
	r.Helper()
	var list []approval.Record
	testenv.Until(r, fmt.Sprint(n, " questions"), func() bool { list, _ = r.queue.List(r.Context()); return len(list) == n })
	return list
}

type result struct {
	bawn.Answer
	err error
}

func begin(ctx context.Context, d approval.Prompter, q approval.Question) <-chan result {
	out := make(chan result, 1)
	go func() {
		a, err := d.Ask(ctx, q)
		out <- result{a, err}
	}()
	return out
}

func TestAskAndAnswer(t *testing.T) {
	r := newRig(t)
	c := r.dial(Options{Session: "s"})
	q := about("s", "ls \x1b \u2028 <>& \u00e9")
	q.Always = []bawn.Rule{{ID: "x", Kind: bawn.Command, Pattern: "ls", Verdict: bawn.Allow, Source: bawn.User}}
	got := begin(t.Context(), c, q)
	list := r.pending(1)
	if list[0].Action.Resource != q.Action.Resource {
		t.Errorf("the relay has %q; want %q", list[0].Action.Resource, q.Action.Resource)
	}
	if _, err := c.Answer(t.Context(), q.ID, bawn.Answer{Verdict: bawn.Ask, By: "x"}); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("what is no answer: %v", err)
	}
	rec, err := c.Answer(t.Context(), q.ID, yes)
	if err != nil || rec.State != approval.Answered {
		t.Errorf("answer: %+v, %v", rec, err)
	}
	if a := testenv.Receive(t, "an answer", got); a.By != "yes" || a.err != nil {
		t.Errorf("asker: %+v", a)
	}
	_, err = c.Answer(t.Context(), q.ID, no)
	var answered *approval.AnsweredError
	if !errors.As(err, &answered) || answered.Record.Answer.By != "yes" {
		t.Errorf("second answer: %v", err)
	}
	for name, q := range map[string]approval.Question{"not UTF-8": about("s", "\xff"), "nothing": about("s", ""), "no session": about("", "x")} {
		if _, err := c.Ask(t.Context(), q); err == nil {
			t.Errorf("%s: asked", name)
		}
	}
}

// TestHostAnswersItsOwnOnly keeps a host from answering for others.
func TestHostAnswersItsOwnOnly(t *testing.T) {
	r := newRig(t)
	a, b := r.dial(Options{Session: "a"}), r.dial(Options{Session: "b"})
	q := about("a", "ls")
	got := begin(t.Context(), a, q)
	r.pending(1)
	if _, err := b.Answer(t.Context(), q.ID, yes); !errors.Is(err, approval.ErrUnknown) {
		t.Errorf("another host's answer: %v", err)
	}
	_, err := a.Answer(t.Context(), q.ID, no) // the control
	must(t, err)
	if r := testenv.Receive(t, "an answer", got); r.By != "no" {
		t.Errorf("asker: %+v", r)
	}
}

func TestWithdrawn(t *testing.T) {
	r := newRig(t)
	c := r.dial(Options{Session: "s"})
	ctx, cancel := context.WithCancel(t.Context())
	got := begin(ctx, c, about("s", "ls"))
	r.pending(1)
	cancel()
	if a := testenv.Receive(t, "an answer", got); !errors.Is(a.err, context.Canceled) {
		t.Errorf("asker: %+v", a)
	}
	r.pending(0)
	got = begin(t.Context(), c, about("s", "ls"))
	r.pending(1)
	c.Close()
	if a := testenv.Receive(t, "an answer", got); !errors.Is(a.err, approval.ErrClosed) {
		t.Errorf("asker: %+v", a)
	}
	r.pending(1) // it may come back
}

// TestRelayComesBack has questions asked before, while and after it is away.
func TestRelayComesBack(t *testing.T) {
	r := newRig(t)
	c := r.dial(Options{Session: "s", Parent: "p"})
	c.Register("t", "p")
	before, child := about("s", "before"), about("t", "before") // the same in p's tree
	first, second := begin(t.Context(), c, before), begin(t.Context(), c, child)
	testenv.Until(t, "both of them", func() bool { return r.pending(1)[0].Waiting == 2 })
	r.down()
	between := about("s", "between")
	ctx, cancel := context.WithCancel(t.Context())
	third, fourth := begin(t.Context(), c, between), begin(ctx, c, about("s", "changed my mind"))
	time.Sleep(10 * time.Millisecond)
	cancel()
	<-fourth
	short, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if _, err := c.Answer(short, before.ID, yes); err == nil {
		t.Error("answered while there is no relay")
	}
	r.up(func(net.Conn) error { return nil })
	r.pending(2)
	for _, q := range []approval.Question{child, between} {
		testenv.Until(t, "an answer", func() bool { _, err := r.queue.Answer(t.Context(), q.ID, no); return err == nil })
	}
	for _, got := range []<-chan result{first, second, third} {
		if a := testenv.Receive(t, "an answer", got); a.By != "no" || a.err != nil {
			t.Errorf("asker: %+v", a)
		}
	}
}

// TestTakenBack withdraws as many questions as a session may have pending, some
// while the relay is away. The next relay shows none of them and has room for
// others at once.
func TestTakenBack(t *testing.T) {
	r := newRig(t)
	c := r.dial(Options{Session: "s"})
	ctx, cancel := context.WithCancel(t.Context())
	var questions []approval.Question
	var outcomes []<-chan result
	ask := func(n int) {
		for range n {
			q := about("s", fmt.Sprint(len(questions)))
			questions, outcomes = append(questions, q), append(outcomes, begin(ctx, c, q))
		}
	}
	half := approval.MaxPerSession / 2
	ask(half)
	r.pending(half)
	r.down()
	ask(half)
	time.Sleep(10 * time.Millisecond)
	cancel()
	for _, o := range outcomes {
		if a := testenv.Receive(t, "an answer", o); !errors.Is(a.err, context.Canceled) {
			t.Errorf("asker: %+v", a)
		}
	}
	after := begin(t.Context(), c, about("s", "after"))
	r.up(func(net.Conn) error { return nil })
	var list []approval.Record
	testenv.Until(t, "one question, which was not withdrawn", func() bool { // those of before go one after the other
		list, _ = r.queue.List(t.Context())
		return len(list) == 1 && list[0].Action.Resource == "after"
	})
	_, err := r.queue.Answer(t.Context(), list[0].ID, no)
	must(t, err)
	if a := testenv.Receive(t, "an answer", after); a.By != "no" || a.err != nil {
		t.Errorf("asker: %+v", a)
	}
	for i, q := range questions {
		e, err := r.store.Get(t.Context(), q.ID)
		switch known := i < half; {
		case known && e.State != approval.Withdrawn:
			t.Errorf("question %d is %q, %v", i, e.State, err)
		case !known && !errors.Is(err, approval.ErrUnknown):
			t.Errorf("question %d, which no relay ever saw, is %q, %v", i, e.State, err)
		}
	}
}

func TestRefused(t *testing.T) {
	r := newRig(t)
	r.down()
	r.up(func(net.Conn) error { return errors.New("you look like a guest") })
	_, err := Dial(t.Context(), Options{Path: r.path})
	var refused *RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "like a guest") {
		t.Errorf("err = %v", err)
	}
	r.down()
	r.up(nil)
	if _, err := Dial(t.Context(), Options{Path: r.path}); !errors.As(err, &refused) {
		t.Errorf("without an Admit: %v", err)
	}
	if _, err := Dial(t.Context(), Options{Path: r.path + "nothing", Start: func(context.Context) error { return errors.New("broken") }}); err == nil {
		t.Error("dialed nothing")
	}
}

// TestLookedAt: who only looks whether somebody listens, and goes before it reads
// the greeting, has not been refused.
func TestLookedAt(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	must(t, err)
	defer l.Close()
	looks, err := net.Dial("unix", l.Addr().String())
	must(t, err)
	conn, err := l.Accept()
	must(t, err)
	defer conn.Close()
	refusals := 0
	p, err := newPeer(&Server{key: "a key", Log: slog.New(slog.DiscardHandler), Keyless: func(error) { refusals++ }}, conn)
	must(t, err)
	must(t, p.send(reply{Ready: true}))
	must(t, looks.Close())
	if err := p.unlock(); !errors.Is(err, syscall.ECONNRESET) || refusals != 0 {
		t.Errorf("got %v and %d refusals, want a reset connection and none", err, refusals)
	}
}

// TestWithoutKey does what a guest could that is shown the socket: its host
// connects in its stead, so the credentials are in order.
func TestWithoutKey(t *testing.T) {
	r := newRig(t)
	key := r.key()
	for name, first := range map[string]request{
		"no key": {Hello: &hello{Session: "s"}}, "another": {Key: "a key", Secret: rand.Text()}, "two fields": {Key: key, Secret: rand.Text(), Withdraw: "x"}, "the key": {Key: key, Secret: rand.Text()}, "no secret": {Key: key}, "a short secret": {Key: key, Secret: "short"},
	} {
		conn, err := net.Dial("unix", r.path)
		must(t, err)
		l := lineTo(t, conn)
		var got reply
		must(t, l.receive(&got))
		text, err := json.Marshal(first)
		must(t, err)
		_, err = conn.Write([]byte(framed(string(text)))) // Send would refuse most of them
		must(t, err)
		_ = l.send(request{Answer: &answer{1, "x", yes}}) // it may have been closed
		err = l.receive(&got)
		if (err == nil) != (name == "the key") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		conn.Close()
	}
	if n := r.keyless.Load(); n != 4 {
		t.Errorf("%d refusals were told, want 4", n)
	}
	must(t, os.WriteFile(KeyOf(r.path), []byte("stale"), 0o600))
	c := r.dial(Options{})
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := c.Ask(short, about("s", "ls")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("asked with a stale key: %v", err)
	}
	r.pending(0)
}

// TestRace is approval.TestRace over sockets: 1,000 questions, 50 who answer
// each, over the askers' connections. Where testenv.Short says so, 10 do.
func TestRace(t *testing.T) {
	const questions, hosts = 1000, 20
	racers := testenv.Some(50, 10)
	r := newRig(t)
	var clients [hosts]*Client
	for h := range hosts {
		clients[h] = r.dial(Options{Session: fmt.Sprint("s", h)})
	}
	var ids [questions]string
	var got [questions]<-chan result
	for n := range questions {
		q := about(fmt.Sprint("s", n%hosts), fmt.Sprint(n))
		ids[n], got[n] = q.ID, begin(t.Context(), clients[n%hosts], q)
	}
	r.pending(questions)
	var wins [questions]atomic.Int32
	var racing sync.WaitGroup
	for racer := range racers {
		racing.Go(func() {
			for i := range questions {
				n := (i*7 + racer*31) % questions
				var d approval.Prompter = r.queue
				if racer%2 == 0 {
					d = clients[n%hosts]
				}
				_, err := d.Answer(t.Context(), ids[n], bawn.Answer{Verdict: bawn.Verdict(racer % 3 / 2 * 2), By: fmt.Sprint("racer", racer)})
				var answered *approval.AnsweredError
				if err == nil {
					wins[n].Add(1)
				} else if !errors.As(err, &answered) {
					t.Errorf("answer: %v", err)
				}
			}
		})
	}
	racing.Wait()
	for n := range questions {
		a := testenv.Receive(t, "an answer", got[n])
		rec, err := r.queue.Get(t.Context(), ids[n])
		if wins[n].Load() != 1 || a.err != nil || err != nil || rec.Answer != a.Answer {
			t.Errorf("question %d: %d were told to be first, the asker has %+v, kept is %+v (%v)", n, wins[n].Load(), a, rec.Answer, err)
		}
	}
}

// TestBadHosts says what no host says: the connection ends, the relay does not.
func TestBadHosts(t *testing.T) {
	r := newRig(t)
	q, _ := json.Marshal(about("s", "ls"))
	for name, text := range map[string]string{
		"no frame": "garbage\n", "garbage": framed("garbage"), "no field": framed("{}"), "unknown": framed(`{"approve":"x"}`), "two fields": framed(`{"withdraw":"x","hello":{"session":"s"}}`),
		"two values": framed(`{"withdraw":"x"}{"withdraw":"y"}`), "no session": framed(`{"hello":{}}`),
		"asked twice": framed(`{"ask":`+string(q)+`}`) + framed(`{"ask":`+string(q)+`}`), "not UTF-8": framed("{\"withdraw\":\"\xff\"}"),
		"number 0": framed(`{"answer":{"number":0,"id":"x"}}`),
		"long":     framed(`{"withdraw":"` + strings.Repeat("x", limits.Bytes) + `"}`),
	} {
		conn, err := net.Dial("unix", r.path)
		must(t, err)
		must(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
		fmt.Fprint(conn, framed(`{"key":"`+r.key()+`","secret":"a secret of its own"}`)+text) //nolint:errcheck // it may be closed before all is said
		_, err = io.Copy(io.Discard, conn)
		var late net.Error
		if errors.As(err, &late) && late.Timeout() {
			t.Errorf("%s: the connection stays open", name)
		}
		conn.Close()
	}
	c := r.dial(Options{Session: "s"})
	begin(t.Context(), c, about("s", "after all"))
	r.pending(1)
}

// FuzzRequest reads one message of a host. Package ipc fuzzes the frames.
func FuzzRequest(f *testing.F) {
	question := about("s", "ls")
	question.Expires = time.Unix(60, 0)
	q, _ := json.Marshal(request{Ask: &question})
	f.Add(q)
	f.Add([]byte(`{"hello":{"session":"s"}}`))
	f.Add([]byte(`{"answer":{"number":18446744073709551615,"id":"x","answer":{}}}`))
	f.Add([]byte("{\"withdraw\":\"\xff\"}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r request
		if strictjson.Decode(data, &r) != nil || r.Valid() != nil {
			return
		}
		if r.Ask != nil { // only what may be asked has to survive
			if _, err := approval.Tidy(*r.Ask, time.Unix(0, 0)); err != nil {
				return
			}
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("%+v can't be written: %v", r, err)
		}
		var back request
		if err := strictjson.Decode(again, &back); err != nil {
			t.Fatalf("%s can't be read back: %v", again, err)
		}
		if d := cmp.Diff(r, back); d != "" {
			t.Errorf("what comes back differs: %s", d)
		}
	})
}
