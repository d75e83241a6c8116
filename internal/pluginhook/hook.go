package pluginhook

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/plugin"
)

// How long a plugin that failed is left alone: the first time, and at most.
const (
	firstBackoff = time.Second
	maxBackoff   = time.Minute
)

// A Process is a plugin that runs.
type Process struct {
	In  io.Writer
	Out io.Reader
	// End ends the process with all that it has started, and closes both streams,
	// so that their readers and writers return. It may be called more than once and
	// from any goroutine.
	End func()
}

// Options of one plugin.
type Options struct {
	Name     string
	Kinds    []bawn.Kind   // what it is told of
	Patience time.Duration // how long it may think about one action
	Starting time.Duration // how much longer its first answer may take
	Start    func() (Process, error)
	Note     func(text string) // tells the human that it failed
	Now      func() time.Time
}

// A Hook is one plugin, which is started when it is first asked.
type Hook struct {
	Options
	turn chan struct{} // holds one: questions go one after the other

	// Of who has the turn.
	last     uint64 // id
	out      *bufio.Reader
	failures int
	cause    error
	until    time.Time // when it may be started again

	mu      sync.Mutex
	process *Process // nil: it does not run
	closed  bool
}

func newHook(o Options) *Hook {
	o.Kinds = slices.Clone(o.Kinds)
	return &Hook{Options: o, turn: make(chan struct{}, 1)}
}

func (h *Hook) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end()
}

// end ends the process, if there is one.
func (h *Hook) end() {
	h.mu.Lock()
	p := h.process
	h.process = nil
	h.mu.Unlock()
	if p != nil {
		p.End()
	}
}

// ask puts a question. After an error the plugin has been ended.
func (h *Hook) ask(ctx context.Context, q plugin.Question) (plugin.Answer, error) {
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return plugin.Answer{}, ctx.Err()
	}
	defer func() { <-h.turn }()
	if left := h.until.Sub(h.Now()); left > 0 {
		return plugin.Answer{}, fmt.Errorf("it is started again in %v, because %w", left.Round(time.Second), h.cause)
	}
	patience := h.Patience
	fresh, err := h.run()
	if fresh {
		patience += h.Starting
	}
	if err == nil {
		h.last++
		q.ID = h.last
		var a plugin.Answer
		if a, err = h.exchange(q, patience); err == nil {
			h.failures = 0
			return a, nil
		}
	}
	h.fail(err)
	return plugin.Answer{}, err
}

// run starts the plugin where it does not run.
func (h *Hook) run() (fresh bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false, errors.New("the session has ended")
	}
	if h.process != nil {
		return false, nil
	}
	p, err := h.Start()
	if err != nil {
		return true, fmt.Errorf("it could not be started: %w", err)
	}
	h.process, h.out = &p, bufio.NewReaderSize(p.Out, plugin.MaxAnswer)
	return true, nil
}

// fail ends the plugin and has it left alone for a time that doubles.
func (h *Hook) fail(err error) {
	h.end()
	h.cause = err
	h.until = h.Now().Add(min(firstBackoff<<min(h.failures, 10), maxBackoff))
	h.failures++
	h.Note(fmt.Sprintf("the hook plugin %q was ended, and what it must be asked about is denied: %v", h.Name, err))
}

// exchange writes the question and reads the answer.
func (h *Hook) exchange(q plugin.Question, patience time.Duration) (plugin.Answer, error) {
	text, err := json.Marshal(q)
	if err != nil {
		return plugin.Answer{}, err
	}
	h.mu.Lock()
	p := h.process
	h.mu.Unlock()
	if p == nil {
		return plugin.Answer{}, errors.New("the session has ended")
	}
	late := time.AfterFunc(patience, h.end)
	_, err = p.In.Write(append(text, '\n'))
	var line []byte
	if err == nil {
		line, err = h.out.ReadSlice('\n')
	}
	if !late.Stop() {
		return plugin.Answer{}, fmt.Errorf("it did not answer in %v", patience)
	}
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return plugin.Answer{}, fmt.Errorf("it answers with a line of more than %d bytes", plugin.MaxAnswer)
	case err != nil:
		return plugin.Answer{}, errors.New("it has ended")
	case h.out.Buffered() > 0:
		return plugin.Answer{}, errors.New("it says more than it was asked")
	}
	a, err := plugin.ParseAnswer(line, q.ID)
	if err != nil {
		return a, fmt.Errorf("its answer can't be read: %w", err)
	}
	return a, nil
}
