package asking

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/terminal"
)

// A Console is a terminal at which Bawn can speak with its human: a
// *terminal.Terminal.
type Console interface {
	Converse(ctx context.Context, f func(terminal.Conversation) error) error
}

// A frontend puts questions to the human at one terminal, one after the other.
type frontend struct {
	prompter *Prompter
	tty      Console
	ctx      context.Context
	end      context.CancelFunc
	done     sync.WaitGroup
	// queue holds what waits for its turn. More is not shown here: a guest must
	// not be able to make Bawn store as much as it likes.
	queue chan *open
}

// maxShownAtOnce bounds a frontend's queue.
const maxShownAtOnce = 64

// Sit lets a human answer at a terminal, until leave is called. Questions that
// are open already are shown there too.
func (d *Prompter) Sit(tty Console) (leave func()) {
	f := &frontend{prompter: d, tty: tty, queue: make(chan *open, maxShownAtOnce)}
	f.ctx, f.end = context.WithCancel(context.Background())
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return f.end
	}
	d.frontends[f] = struct{}{}
	for _, o := range d.open {
		f.show(o)
	}
	f.done.Go(f.work)
	return func() {
		d.mu.Lock()
		delete(d.frontends, f)
		d.mu.Unlock()
		f.close()
	}
}

// close ends the conversation that may be going on, and waits for that.
func (f *frontend) close() {
	f.end()
	f.done.Wait()
}

// show queues a question. It does not wait.
func (f *frontend) show(o *open) {
	select {
	case f.queue <- o:
	default:
	}
}

func (f *frontend) work() {
	for {
		select {
		case o := <-f.queue:
			f.put(o)
		case <-f.ctx.Done():
			return
		}
	}
}

// An elsewhereError ends a conversation: the question is settled.
type elsewhereError struct {
	answer bawn.Answer
	err    error
}

func (e *elsewhereError) Error() string { return says(e.answer, e.err) }

// says is how a question ended, for those who were still looking at it.
func says(a bawn.Answer, err error) string {
	switch {
	case errors.Is(err, approval.ErrExpired) || errors.Is(err, context.DeadlineExceeded):
		return "not answered, so it is denied"
	case errors.Is(err, approval.ErrWithdrawn) || errors.Is(err, context.Canceled):
		return "withdrawn: nobody waits for the answer any more"
	case err != nil:
		return "denied: " + clean(err.Error())
	}
	return "answered by " + clean(a.By) + ": " + outcome(a)
}

func outcome(a bawn.Answer) string {
	word := "denied"
	if a.Verdict == bawn.Allow {
		word = "allowed"
	}
	switch a.Scope {
	case bawn.ForSession:
		word += " for this session"
	case bawn.Always:
		word += " always"
	}
	if a.Why != "" {
		word += " (" + clean(a.Why) + ")"
	}
	return word
}

// put asks until the question is settled. Where the shell has the terminal now, or
// it fails, it tries again.
func (f *frontend) put(o *open) {
	ctx, cancel := context.WithCancelCause(f.ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-o.done:
			cancel(&elsewhereError{o.answer, o.err})
		case <-stop:
		}
	}()
	var once sync.Once
	failed := func(err error) {
		once.Do(func() { f.prompter.opts.Note("a question can't be shown at the terminal: " + err.Error()) })
	}
	for ctx.Err() == nil && !isDone(o) {
		t := &talk{frontend: f, open: o, asked: f.prompter.alike(o)}
		err := f.tty.Converse(ctx, t.run)
		switch {
		case t.answer != nil:
			f.submit(ctx, o, *t.answer) // it may be for another that is the same
			continue
		case err == nil: // another frontend has to show it
			return
		case !errors.Is(err, terminal.ErrBackground) && ctx.Err() == nil:
			failed(err)
		}
		select {
		case <-time.After(retry):
		case <-ctx.Done():
		}
	}
}

// submit hands in an answer, and says so where it came too late.
func (f *frontend) submit(ctx context.Context, o *open, a bawn.Answer) {
	stands, mine, err := f.prompter.submit(context.WithoutCancel(ctx), o, a)
	if mine || f.ctx.Err() != nil {
		return
	}
	_ = f.tty.Converse(f.ctx, func(rw terminal.Conversation) error {
		rw.Note("bawn: too late: " + says(stands, err) + ": " + noted(o.Action))
		return nil
	})
}
