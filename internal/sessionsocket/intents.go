//go:build linux || darwin

package sessionsocket

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/executor"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/ticket"
)

// TicketLife is how long the executor may take to redeem a ticket.
const TicketLife = 30 * time.Second

// An Issuer signs tickets; *ticket.Issuer is one.
type Issuer interface {
	IssueAs(name, session string, digest [32]byte, ttl time.Duration) ([]byte, error)
}

// Intents serves the commands of a reasoning zone. Each is judged, and what the
// guard allows is executed in the execution zone, with a ticket, exactly as it
// was judged. The zero Intents refuses everything. Its fields do not change
// once it serves.
type Intents struct {
	Session  bawn.Session
	Guard    guard.Guard
	Event    bawn.Event // what its events say besides
	Issuer   Issuer
	Executor *executor.Client
	Plan     [32]byte // SHA-256 of the execution zone's plan, as its executor was told
	Environ  Environ
	Terminal Opener // of the execution zone
	// Ask returns the `bawn request` line for what was refused, or nil.
	Ask func(a bawn.Action, d bawn.Decision) string
	Now func() time.Time // nil means the machine's clock

	waiting atomic.Int32
	probe   probe
}

// A refusal is why something does not happen.
type refusal struct{ rule, reason, remedy string }

// A task is one shell of the guest.
type task struct {
	*Intents
	conn  *Conn
	stdio [3]stdio
	dir   string   // of a shell whose statements are executed one by one:
	env   []string // left by the last one; nil before
	left  sync.WaitGroup
}

// Exec serves a shell: one command, or the statements of a shell that reads its
// input. It is a handler of Serve.
func (i *Intents) Exec(ctx context.Context, c *Conn, x intent.Exec, files [3]*os.File) {
	t := &task{Intents: i, conn: c}
	defer t.left.Wait()
	defer c.Close()
	var err error
	if t.stdio, err = sort(files); err != nil {
		t.refuse(ctx, &x, &refusal{RuleDescriptor, err.Error(), "give the command files, pipes or a terminal"})
		return
	}
	for next := &x; next != nil && t.run(ctx, next) && next.Statement; {
		next = t.next(ctx)
	}
}

// next waits for the shell's next statement. Signals that arrive between two
// are dropped.
func (t *task) next(ctx context.Context) *intent.Exec {
	for {
		select {
		case u := <-t.conn.Updates():
			if u.Exec != nil {
				return u.Exec
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// run runs one command and reports whether the guest may go on.
func (t *task) run(ctx context.Context, x *intent.Exec) bool {
	if r := check(x); r != nil {
		return t.refuse(ctx, x, r)
	}
	if t.env != nil {
		x.Dir = t.dir
	}
	var c carried
	l, r := readLine(x, func(text string) variables { c = t.carry(ctx, x, text); return c.vars })
	if r != nil {
		return t.refuse(ctx, x, r)
	}
	d, r := t.decide(ctx, x, l, c)
	if r != nil {
		return t.refuse(ctx, x, r)
	}
	if d.Verdict != bawn.Allow {
		t.deny(l.action, d)
		return true
	}
	return t.execute(ctx, x, l, d, c.env)
}

// check refuses what no honest shell sends.
func check(x *intent.Exec) *refusal {
	const remedy = "speak the protocol of this version"
	switch {
	case !path.IsAbs(x.Dir) || path.Clean(x.Dir) != x.Dir:
		return &refusal{RuleMessage, fmt.Sprintf("the directory is %.80q; want it absolute and clean", x.Dir), remedy}
	case strings.ContainsRune(strings.Join(x.Argv, "")+x.Dir+strings.Join(x.Env, ""), 0):
		return &refusal{RuleMessage, "a word holds a NUL, where the kernel would cut it", remedy}
	}
	return nil
}

// carry returns the environment of a command before its decision.
func (t *task) carry(ctx context.Context, x *intent.Exec, text string) carried {
	if t.env != nil {
		return carried{env: t.env, vars: t.Environ.changed(t.env)}
	}
	used, a := names(text), t.action(bawn.Action{}, x)
	return t.Environ.carry(x.Env, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return used[name] || t.Guard.Decider != nil && plain(kv) && t.probe.free(ctx, t.Guard.Decider, a, kv)
	})
}

// action says who wants it, where and when.
func (t *task) action(a bawn.Action, x *intent.Exec) bawn.Action {
	a.Session, a.Agent, a.Dir, a.At = t.Session.ID, t.Session.Agent, x.Dir, t.now()
	return a
}

func (i *Intents) now() time.Time {
	if i.Now != nil {
		return i.Now()
	}
	return time.Now()
}

// decide has the line judged. Where a human is asked, others go on, and the
// question is withdrawn when the guest goes away.
func (t *task) decide(ctx context.Context, x *intent.Exec, l *line, c carried) (bawn.Decision, *refusal) {
	if t.waiting.Add(1) > MaxWaiting {
		t.waiting.Add(-1)
		return bawn.Decision{}, &refusal{RuleWaiting, fmt.Sprintf("%d commands of this session wait for a decision", MaxWaiting), "wait for an answer to some of them"}
	}
	defer t.waiting.Add(-1)
	l.action = t.action(l.action, x)
	details := map[string]string{}
	if l.asked != "" {
		sum := sha256.Sum256([]byte(l.asked))
		details["asked"], details["asked_sha256"] = cut(l.asked), hex.EncodeToString(sum[:])
	}
	if len(c.lost) > 0 {
		details["not_carried"] = cut(strings.Join(c.lost, " "))
	}
	e := t.event(details)
	l.ticket = ticket.NewID()
	e.Ticket = l.ticket
	return t.Guard.Check(ctx, l.action, e), nil
}

// cut bounds what only explains.
func cut(s string) string { return s[:min(len(s), 2000)] }

// event is what every event of the task says, with details.
func (t *task) event(details map[string]string) bawn.Event {
	e := t.Event
	all := map[string]string{}
	for k, v := range e.Details {
		all[k] = v
	}
	for k, v := range details {
		all[k] = v
	}
	all["zone"] = "execution"
	e.Details = all
	return e
}

// refuse records and says that something does not happen which the guard has
// not been asked about, or has allowed. The guest may go on.
func (t *task) refuse(ctx context.Context, x *intent.Exec, r *refusal) bool {
	a := bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: cut(quoted(x.Argv)), Args: nil}
	if strings.TrimSpace(a.Resource) == "" {
		a.Resource = "''"
	}
	d := bawn.Denied(r.reason, r.rule)
	g := guard.Guard{Decider: decided(d), Recorder: t.Guard.Recorder, Now: t.Guard.Now}
	d = g.Check(ctx, t.action(a, x), t.event(nil))
	t.conn.refuse(intent.Refusal{Rule: d.Rule, Reason: d.Reason, Remedy: r.remedy})
	return true
}

// decided is a decision that has been made.
type decided bawn.Decision

// Decide returns it.
func (d decided) Decide(context.Context, bawn.Action) (bawn.Decision, error) {
	return bawn.Decision(d), nil
}

// deny reports the guard's refusal.
func (t *task) deny(a bawn.Action, d bawn.Decision) {
	r := intent.Refusal{Rule: d.Rule, Reason: d.Reason, Remedy: intent.AnotherWay}
	if d.Rule == guard.RuleApproval {
		r.Remedy = intent.Meanwhile
	}
	if t.Ask != nil {
		r.Ask = t.Ask(a, d)
	}
	t.conn.refuse(r)
}

// execute runs an allowed command, and reports how it ended.
func (t *task) execute(ctx context.Context, x *intent.Exec, l *line, d bawn.Decision, env []string) bool {
	p := &plumbing{stdio: t.stdio}
	defer func() { t.left.Go(func() { p.linger(t.conn.Ending()) }) }()
	if l.statement {
		p.stdio[0] = p.stdio[0].shared()
	}
	if err := p.connect(t.Terminal, x.Rows, x.Cols); err != nil {
		return t.refuse(ctx, x, &refusal{RuleDescriptor, err.Error(), "give the command files, pipes or a terminal"})
	}
	proc, err := t.start(ctx, p, l.ticket, executor.Do{
		Argv: l.argv(d), Dir: x.Dir, Env: with(env, d.Env), Terminal: p.master != nil && p.files[0] == p.slave, Statement: l.statement,
	})
	if err != nil {
		return t.failed(ctx, x, err)
	}
	p.started()
	w := &watch{conn: t.conn, plumbing: p, proc: proc, takesKeys: x.Terminal}
	if !w.begin(ctx) {
		return false
	}
	left, more := w.wait(ctx)
	if left != nil && !left.Ended {
		t.dir, t.env = left.Dir, kept(left.Env, d.Env, env, t.judged(ctx, x, l.text))
	}
	return more
}

// judged reports whether a variable that a statement has set was judged: its
// text sets it, or the policy lets any line set it so. A name in the text is
// not enough: a file may have set a variable that a later word only reads.
func (t *task) judged(ctx context.Context, x *intent.Exec, text string) func(kv string) bool {
	set, a := assigned(text), t.action(bawn.Action{}, x)
	return func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return set[name] || t.Guard.Decider != nil && plain(kv) && t.probe.free(ctx, t.Guard.Decider, a, kv)
	}
}

// start issues the named ticket for exactly d, and has it redeemed.
func (t *task) start(ctx context.Context, p *plumbing, name string, d executor.Do) (*executor.Process, error) {
	if t.Executor == nil || t.Issuer == nil {
		return nil, errors.New("the session has no execution zone")
	}
	for n, f := range p.files {
		d.Stdio[n] = f != nil
	}
	digest, err := d.Digest(t.Session.ID, t.Plan)
	if err != nil {
		return nil, &ticketError{err}
	}
	if d.Ticket, err = t.Issuer.IssueAs(name, t.Session.ID, digest, TicketLife); err != nil {
		return nil, &ticketError{err}
	}
	return t.Executor.Do(ctx, d, p.files)
}

type ticketError struct{ error }

// failed says why an allowed command has not started. A program that is not
// there ends the guest's shell as it would end any; nothing else is worth a
// code.
func (t *task) failed(ctx context.Context, x *intent.Exec, err error) bool {
	r := &refusal{RuleExecutor, "the execution zone did not start it: " + err.Error(), "see the session's log; a new session has a new execution zone"}
	var no *executor.RefusedError
	var absent *executor.StartError
	var ticket *ticketError
	switch {
	case errors.As(err, &no):
		r.rule, r.reason = no.Rule, no.Why
	case errors.As(err, &ticket):
		r.rule, r.reason = RuleTicket, "no ticket permits it: "+err.Error()
	case errors.As(err, &absent):
		r.reason, r.remedy = absent.Error(), "use a directory and a shell that the execution zone has"
	}
	return t.refuse(ctx, x, r)
}
