package relaycli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	"connectrpc.com/connect"

	"github.com/bawn-dev/bawn/internal/terminal/modes"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// reading is how long a question must be on the screen before a key answers it,
// so that a key meant for another question does not answer it.
const reading = 700 * time.Millisecond

// The screen is the terminal's second one (xterm's ctlseqs).
const (
	secondScreen = "\x1b[?1049h"
	firstScreen  = "\x1b[?1049l"
)

// alone is how far an answer is from the keys before it and after it. No finger
// is faster; what is pasted is.
const alone = 50 * time.Millisecond

// pause is how long no key comes before what came too fast for a finger is over:
// on a slow line the rest of what is pasted comes late.
const pause = 500 * time.Millisecond

// A screen is the list of what is pending, as a model of Bubble Tea.
type screen struct {
	env   *Env
	ctx   context.Context
	relay bawnv1connect.ApprovalServiceClient

	list     []*bawnv1.Approval // pending, oldest first
	selected string             // ID; "" where there is nothing
	since    time.Time          // when it was selected
	read     bool               // all of it was on the screen
	offset   int                // of the details, in lines
	confirm  *reply             // an answer for good that waits for a yes
	why      *string            // the reason of a no that is being written
	status   string
	pressed  int       // keys that have come
	typed    time.Time // when the last came
	early    bool      // it was too fast for a finger, or soon after one that was
	busy     bool      // an answer is on its way
	gone     bool      // the relay is
	width    int
	height   int
}

// A reply is an answer of the human's on its way to the relay.
type reply = bawnv1.ApprovalServiceAnswerRequest

// Messages of the program itself.
type (
	changeMsg struct {
		record  *bawnv1.Approval
		changes <-chan *bawnv1.Approval
	}
	watchingMsg struct {
		relay   bawnv1connect.ApprovalServiceClient
		changes <-chan *bawnv1.Approval
	}
	goneMsg  struct{}
	tickMsg  struct{}
	aloneMsg struct { // no key has come shortly after an answer
		answer *reply
		keys   int
		id     string
	}
	answeredMsg struct {
		m   *bawnv1.ApprovalServiceAnswerResponse
		err error
	}
)

// show runs the screen until the human leaves it.
func (e *Env) show(ctx context.Context, relay bawnv1connect.ApprovalServiceClient) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &screen{env: e, ctx: ctx, relay: relay}
	// A guest that was at this terminal before may have left it in any state.
	fmt.Fprint(e.Stdout, modes.End+secondScreen+modes.Plain)
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(e.Stdin), tea.WithOutput(e.Stdout), tea.WithEnvironment(e.Environ)).Run()
	if err != nil {
		fmt.Fprint(e.Stdout, firstScreen)
	}
	if errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return err
}

// Init begins to watch, and to count the time.
func (m *screen) Init() tea.Cmd { return tea.Batch(m.watch(m.relay), tick()) }

func tick() tea.Cmd { return tea.Tick(time.Second, func(time.Time) tea.Msg { return tickMsg{} }) }

func (m *screen) watch(relay bawnv1connect.ApprovalServiceClient) tea.Cmd {
	return func() tea.Msg {
		changes, err := follow(m.ctx, relay)
		if err != nil {
			return goneMsg{}
		}
		return watchingMsg{relay, changes}
	}
}

// again looks for the relay until it is back.
func (m *screen) again() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg {
		relay, err := m.env.reach(m.ctx, true)
		if err != nil {
			return goneMsg{}
		}
		return m.watch(relay)()
	})
}

func next(changes <-chan *bawnv1.Approval) tea.Cmd {
	return func() tea.Msg {
		r, ok := <-changes
		if !ok {
			return goneMsg{}
		}
		return changeMsg{r, changes}
	}
}

// Update takes one message.
func (m *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height, m.read = msg.Width, msg.Height, false
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		m.status = pasted
	case aloneMsg:
		return m, m.settle(msg)
	case watchingMsg:
		m.relay, m.list, m.gone = msg.relay, nil, false
		m.choose("")
		return m, next(msg.changes)
	case changeMsg:
		m.change(msg.record)
		return m, next(msg.changes)
	case goneMsg:
		m.gone = true
		return m, m.again()
	case answeredMsg:
		m.busy = false
		m.status = told(msg.m, msg.err)
	case tickMsg:
		return m, tick()
	}
	return m, nil
}

// told says what came of an answer.
func told(m *bawnv1.ApprovalServiceAnswerResponse, err error) string {
	if err != nil {
		return err.Error()
	}
	return answered(m) + ": " + what(m.GetApproval())
}

// change takes a record in, or out where it is over.
func (m *screen) change(r *bawnv1.Approval) {
	pending := r.GetState() == bawnv1.ApprovalState_APPROVAL_STATE_PENDING
	i := slices.IndexFunc(m.list, func(o *bawnv1.Approval) bool { return o.GetId() == r.GetId() })
	switch {
	case pending && i < 0:
		m.list = append(m.list, r)
	case pending:
		m.list[i] = r
	case i >= 0:
		m.list = slices.Delete(m.list, i, i+1)
		if r.GetId() == m.selected && !m.busy {
			m.status = outcome(r) + ": " + what(r)
		}
		if r.GetId() == m.selected {
			m.choose("")
			if len(m.list) > 0 {
				m.choose(m.list[min(i, len(m.list)-1)].GetId())
			}
		}
	}
	if m.selected == "" && len(m.list) > 0 {
		m.choose(m.list[0].GetId())
	}
}

// choose selects a question, which must be read anew.
func (m *screen) choose(id string) {
	m.selected, m.since, m.read, m.offset, m.confirm, m.why = id, m.env.Now(), false, 0, nil, nil
}

func (m *screen) index() int {
	return slices.IndexFunc(m.list, func(r *bawnv1.Approval) bool { return r.GetId() == m.selected })
}

// current is the question that is selected, or nil if none is selected.
func (m *screen) current() *bawnv1.Approval {
	if i := m.index(); i >= 0 {
		return m.list[i]
	}
	return nil
}

// move selects another question.
func (m *screen) move(by int) {
	if i := m.index() + by; i >= 0 && i < len(m.list) && by != 0 {
		m.choose(m.list[i].GetId())
	}
}

const pasted = "what is pasted is no answer; press the key"

// allow gives an answer that allows something, if it was pressed by itself.
func (m *screen) allow(a *reply) tea.Cmd {
	if m.early {
		m.status = pasted
		return nil
	}
	msg := aloneMsg{a, m.pressed, m.selected}
	return tea.Tick(alone, func(time.Time) tea.Msg { return msg })
}

func (m *screen) settle(msg aloneMsg) tea.Cmd {
	if msg.keys != m.pressed || m.busy {
		m.status = pasted
		return nil
	}
	if msg.id != m.selected {
		return nil
	}
	return m.send(msg.answer)
}

// send gives an answer.
func (m *screen) send(a *reply) tea.Cmd {
	relay := m.relay
	a.Id = m.selected
	m.busy, m.confirm, m.why = true, nil, nil
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, 10*time.Second)
		defer cancel()
		r, err := relay.Answer(ctx, a)
		if connect.CodeOf(err) == connect.CodeDeadlineExceeded {
			err = errors.New("the relay did not take the answer in time; it may count or not, the list will show")
		}
		return answeredMsg{r, err}
	}
}
