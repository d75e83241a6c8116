//go:build linux || darwin

package runner

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"sync"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/linux/sockowner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/terminal"
)

// An asker puts the questions of a zone's network to the session's human. It sends
// no answer for an unanswered question: the egress proxy denies the question when
// its time is up. If nobody can answer, it sends a denial at once.
type asker struct {
	approver bawn.Approver
	answer   func(egress.Answer) error
	guest    sandbox.Guest // whose connections they are
	ctx      context.Context
	end      context.CancelFunc
	done     sync.WaitGroup

	mu      sync.Mutex
	waiting map[uint64]context.CancelFunc // by question
}

// maxQuestions bounds a guest's waiting questions; further ones are not asked.
const maxQuestions = 64

func newAsker(approver bawn.Approver, guest sandbox.Guest, answer func(egress.Answer) error) *asker {
	a := &asker{approver: approver, answer: answer, guest: guest, waiting: map[uint64]context.CancelFunc{}}
	a.ctx, a.end = context.WithCancel(context.Background())
	return a
}

// ask puts a question. It does not wait.
func (a *asker) ask(q egress.Question) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) >= maxQuestions || a.waiting[q.ID] != nil || a.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithDeadline(a.ctx, q.Until)
	a.waiting[q.ID] = cancel
	a.done.Go(func() { a.put(ctx, q) })
}

func (a *asker) put(ctx context.Context, q egress.Question) {
	defer a.withdraw(q.ID)
	d := bawn.Decision{Verdict: bawn.Ask, Reason: q.Reason, Rule: q.Rule, Holds: q.Holds, Single: q.Single}
	ctx = asking.WithProgram(ctx, a.program(q.From))
	answer, err := a.approver.Approve(ctx, q.Action, d)
	if err == nil || errors.Is(err, asking.ErrNobody) { // then answer denies, by nobody
		_ = a.answer(egress.Answer{ID: q.ID, Answer: answer}) // the relay is gone: then nothing waits
	}
}

// How much a question shows of a program's name and of a command line, in
// characters. Lines of a terminal do not break within them, so that none begins with
// a guest's text.
const (
	maxProgram = 16
	maxFrom    = 36
)

// program says which of the guest's programs has made a connection, and by which
// command; "" where it can't be found. It is looked for when somebody is asked, and
// not for each connection.
func (a *asker) program(from string) string {
	rooted, ok := a.guest.(sandbox.Rooted)
	at, err := netip.ParseAddrPort(from)
	if !ok || err != nil {
		return ""
	}
	p, ok := sockowner.Find(rooted.Root(), at)
	if !ok {
		return ""
	}
	text := clipped(p.Name, maxProgram)
	if p.From != "" {
		text += " (from " + clipped(p.From, maxFrom) + ")"
	}
	return text
}

// clipped quotes the beginning of a guest's text.
func clipped(s string, most int) string {
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "\u2026"
	}
	return strconv.QuoteToGraphic(s)
}

// withdraw takes a question back from every frontend.
func (a *asker) withdraw(id uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if cancel := a.waiting[id]; cancel != nil {
		cancel()
	}
	delete(a.waiting, id)
}

// close takes all questions back, and waits for that.
func (a *asker) close() {
	a.end()
	a.done.Wait()
}

// prompter returns where the session's questions go. A session without a prompter
// has its terminal only.
func (w *watch) prompter() *asking.Prompter {
	if w.session.Prompter != nil {
		return w.session.Prompter
	}
	if w.ownPrompter == nil {
		w.ownPrompter = asking.New(asking.Options{Session: w.session.ID, Parent: w.session.Parent, Agent: w.session.Agent})
	}
	return w.ownPrompter
}

// sit lets the session's terminal answer, where there is one.
func (w *watch) sit() {
	if w.session.Dumb {
		w.tty.Plain()
	}
	switch {
	case w.session.Apart || !terminal.Present(w.session.Stdio):
	case w.session.Watched != nil:
		w.leave = w.attend(w.prompter())
	default:
		w.leave = w.prompter().Sit(w.tty)
	}
}

// stand ends what sit began, before the terminal does.
func (w *watch) stand() {
	if w.asker != nil {
		w.asker.close()
	}
	if w.leave != nil {
		w.leave()
	}
	if w.ownPrompter != nil {
		w.ownPrompter.Close()
	}
}
