package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/bawn-dev/bawn"
)

// maxOpen bounds what an agent asks at once.
const maxOpen = 64

// Options of a Proxy. Everything but Note is needed; what is missing refuses.
type Options struct {
	Workspace string // absolute; sessions begin in it or below
	// Check decides about what the agent wants. human answers where a human is
	// to be asked. It never returns Ask.
	Check func(ctx context.Context, a bawn.Action, vague bool, human bawn.Approver) bawn.Decision
	// Permitted is told of what the human at the editor has said yes to, so that the
	// same is not asked again when it is done; nil drops it.
	Permitted func(bawn.Action)
	// Terminal is the command line which runs argv in the agent's kind of
	// sandbox. The editor starts it, outside of any.
	Terminal func(dir string, env, argv []string) []string
	// Run runs argv in such a sandbox, without a network. It returns at most
	// limit bytes of the output, and an error unless the exit code was 0.
	Run func(ctx context.Context, input string, limit int, argv ...string) (output string, err error)
	// Note tells the human what has been refused and has no place in the
	// protocol; nil drops it.
	Note func(text string)
	// OwnReads has the agent read files by itself, in its sandbox.
	OwnReads bool
}

// A Proxy carries one conversation.
type Proxy struct {
	opts          Options
	editor, agent *wire

	mu      sync.Mutex
	asked   map[string]bool          // by the editor, unanswered: IDs
	waiting map[string]chan *message // of the editor, for its answers: our IDs
	number  int
	session string // which the editor has prompted last
	noted   map[string]bool

	frozen map[string]bool // IDs of calls that a human is being asked about

	terminals map[ownTerminal]bool // which the agent has made
	slots     chan struct{}
}

// New returns a proxy between an editor and an agent.
func New(o Options, editorIn io.Reader, editorOut io.Writer, agentIn io.Reader, agentOut io.Writer) *Proxy {
	if o.Note == nil {
		o.Note = func(string) {}
	}
	if o.Permitted == nil {
		o.Permitted = func(bawn.Action) {}
	}
	return &Proxy{
		opts: o, editor: newWire("editor", editorIn, editorOut), agent: newWire("agent", agentIn, agentOut),
		asked: map[string]bool{}, waiting: map[string]chan *message{}, noted: map[string]bool{}, frozen: map[string]bool{}, terminals: map[ownTerminal]bool{}, slots: make(chan struct{}, maxOpen),
	}
}

// Serve carries messages until the agent has no more to say or can't be
// understood any longer, which is an error. closeAgent tells the agent that the
// editor is gone.
func (p *Proxy) Serve(ctx context.Context, closeAgent func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer closeAgent()
		if err := p.fromEditor(); !errors.Is(err, io.EOF) {
			p.opts.Note(err.Error())
		}
		cancel() // no human is left to ask
	}()
	if err := p.fromAgent(ctx); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// fromEditor serves the human's side, which is trusted, but for what it can't
// know: where the agent's sandbox is.
func (p *Proxy) fromEditor() error {
	for {
		m, err := p.editor.receive()
		switch {
		case errors.Is(err, errMalformed):
			err = p.malformed(p.editor, m, err)
		case err != nil:
			return err
		case m.response():
			p.deliver(m)
		case m.request():
			err = p.carry(m)
		default:
			err = p.agent.send(m)
		}
		if err != nil {
			return err
		}
	}
}

// malformed answers what can't be read.
func (p *Proxy) malformed(w *wire, m *message, err error) error {
	p.note("the " + w.name + " sent what is " + err.Error())
	if m == nil {
		return w.answer(json.RawMessage("null"), nil, &Failure{Code: codeParse, Message: err.Error()})
	}
	if m.request() && m.validID() == nil {
		return w.answer(m.ID, nil, &Failure{Code: codeInvalid, Message: err.Error()})
	}
	return nil
}

// deliver hands an answer of the editor to who waits for it.
func (p *Proxy) deliver(m *message) {
	p.mu.Lock()
	c := p.waiting[string(m.ID)]
	delete(p.waiting, string(m.ID))
	p.mu.Unlock()
	if c != nil {
		c <- m // it has room
	}
}

// carry passes a request of the editor on.
func (p *Proxy) carry(m *message) error {
	params, failure := p.adapt(m)
	if failure != nil {
		return p.editor.answer(m.ID, nil, failure)
	}
	p.mu.Lock()
	p.asked[string(m.ID)] = true
	if m.Method == "session/prompt" {
		p.session = sessionOf(params)
	}
	p.mu.Unlock()
	return p.agent.send(&message{ID: m.ID, Method: m.Method, Params: params})
}

// fromAgent serves the guest.
func (p *Proxy) fromAgent(ctx context.Context) error {
	var served sync.WaitGroup
	defer served.Wait()
	for {
		m, err := p.agent.receive()
		switch {
		case errors.Is(err, errMalformed):
			err = p.malformed(p.agent, m, err)
		case err != nil:
			return err
		case m.response():
			err = p.answered(m)
		case m.Method == "session/update" && !m.request() && !p.updates(m):
			p.note("the agent changed a call that its human is being asked about, which is not passed on")
		case m.Method == "session/update" && !m.request():
			err = p.editor.send(m)
		case !m.request():
			p.note(fmt.Sprintf("the agent sent %.60q, which is not passed on", m.Method))
		default:
			err = p.admit(ctx, m, &served)
		}
		if err != nil {
			return err
		}
	}
}

// answered passes an answer of the agent on, once.
func (p *Proxy) answered(m *message) error {
	p.mu.Lock()
	asked := p.asked[string(m.ID)]
	delete(p.asked, string(m.ID))
	p.mu.Unlock()
	if !asked {
		p.note("the agent answered what nobody asked")
		return nil
	}
	return p.editor.send(m)
}

// admit serves a request of the agent, unless it asks too much at once.
func (p *Proxy) admit(ctx context.Context, m *message, served *sync.WaitGroup) error {
	select {
	case p.slots <- struct{}{}:
	default:
		return p.agent.answer(m.ID, nil, &Failure{Code: codeDenied, Message: fmt.Sprintf("bawn: %d requests of this agent wait already", maxOpen)})
	}
	served.Go(func() {
		defer func() { <-p.slots }()
		result, err := p.serve(ctx, m)
		_ = p.agent.answer(m.ID, result, failureOf(err)) // an agent that is gone reads no answer
	})
	return nil
}

func failureOf(err error) *Failure {
	var f *Failure
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		return f
	}
	return &Failure{Code: codeInternal, Message: "bawn: " + err.Error()}
}

// ask puts a request to the editor and waits for its answer.
func (p *Proxy) ask(ctx context.Context, method string, params any) (json.RawMessage, error) {
	text, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	answer := make(chan *message, 1)
	p.mu.Lock()
	p.number++
	id := strconv.Itoa(p.number)
	p.waiting[id] = answer
	p.mu.Unlock()
	if err := p.editor.send(&message{ID: json.RawMessage(id), Method: method, Params: text}); err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return nil, m.Error
		}
		return m.Result, nil
	case <-ctx.Done():
		p.mu.Lock()
		delete(p.waiting, id)
		p.mu.Unlock()
		return nil, errors.New("the editor is gone")
	}
}

// note tells of something once.
func (p *Proxy) note(text string) {
	p.mu.Lock()
	seen := p.noted[text] || len(p.noted) > 100
	p.noted[text] = true
	p.mu.Unlock()
	if !seen {
		p.opts.Note(text)
	}
}
