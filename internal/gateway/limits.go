package gateway

import (
	"errors"
	"io"
	"strings"
	"time"
)

// Limits of one server. Zero stands for the default.
type Limits struct {
	Message     int           // bytes of one message; a longer one ends the server
	Result      int64         // bytes of one result; more is cut off
	Messages    int           // a second, over some time; a server that says more is slowed
	Patience    time.Duration // with a server that goes on saying more; then it is ended
	Tools       int           // that a server may have; resources and prompts as well
	Pages       int           // of one list
	CallsAtOnce int           // further calls wait
	Call        time.Duration // of one call, with what the server asks meanwhile
	Start       time.Duration // until it has answered for the first time
	Idle        time.Duration // without a call; then it is stopped
	Probe       time.Duration // for a server that let a call time out to show that it lives
}

// DefaultLimits count where none are stated.
var DefaultLimits = Limits{
	Message: 8 << 20, Result: 1 << 20, Messages: 500, Patience: 5 * time.Second, Tools: 256, Pages: 32, CallsAtOnce: 8,
	Call: 5 * time.Minute, Start: time.Minute, Idle: 10 * time.Minute, Probe: 5 * time.Second,
}

// filled puts the defaults where nothing sensible is stated.
func (l Limits) filled() Limits {
	d := DefaultLimits
	pick(&l.Message, d.Message)
	pick(&l.Result, d.Result)
	pick(&l.Messages, d.Messages)
	pick(&l.Patience, d.Patience)
	pick(&l.Tools, d.Tools)
	pick(&l.Pages, d.Pages)
	pick(&l.CallsAtOnce, d.CallsAtOnce)
	pick(&l.Call, d.Call)
	pick(&l.Start, d.Start)
	pick(&l.Idle, d.Idle)
	pick(&l.Probe, d.Probe)
	return l
}

func pick[T int | int64 | time.Duration](to *T, value T) {
	if *to <= 0 {
		*to = value
	}
}

// Why a server is ended for what it says.
var (
	errFlood = errors.New("it says more than it may, and went on when it was slowed down")
	errBatch = errors.New("it sends several messages as one, which no client asks for")
	errBegin = errors.New("it sends a line that is no message: it does not begin with \"{\"")
)

// perMessage is how many bytes count as one message.
const perMessage = 64 << 10

// A meter reads a server's messages at a limited rate. Short bursts are slowed down; a
// server that does not stop is ended. It passes on no batch, and no line that is not an
// object.
type meter struct {
	r     io.Reader
	rate  float64       // messages a second; as many may come at once
	most  time.Duration // over the rate
	now   func() time.Time
	sleep func(time.Duration)

	level  float64 // messages that have not drained yet
	last   time.Time
	full   time.Time // since when it is over the measure; zero: it is not
	inside bool      // of a line
	err    error
}

func newMeter(r io.Reader, l Limits, now func() time.Time) *meter {
	return &meter{r: r, rate: float64(l.Messages), most: l.Patience, now: now, sleep: time.Sleep, last: now()}
}

// Read never returns more than is available, and a permanent error once the
// server must end.
func (m *meter) Read(p []byte) (int, error) {
	if m.err != nil {
		return 0, m.err
	}
	n, err := m.r.Read(p)
	if m.err = m.check(p[:n]); m.err != nil {
		return 0, m.err
	}
	return n, err
}

func (m *meter) check(p []byte) error {
	cost := float64(len(p)) / perMessage
	for _, c := range p {
		switch {
		case c == '\n':
			cost++
			m.inside = false
		case m.inside || strings.IndexByte(blanks, c) >= 0:
		case c == '{':
			m.inside = true
		case c == '[':
			return errBatch
		default:
			return errBegin
		}
	}
	return m.pay(cost)
}

// pay drains the bucket, and waits while it holds more than a second's worth.
func (m *meter) pay(cost float64) error {
	now := m.now()
	m.level = max(0, m.level-now.Sub(m.last).Seconds()*m.rate) + cost
	m.last = now
	if m.level <= m.rate {
		m.full = time.Time{}
		return nil
	}
	if m.full.IsZero() {
		m.full = now
	}
	if now.Sub(m.full) > m.most {
		return errFlood
	}
	m.sleep(min(time.Second, time.Duration((m.level-m.rate)/m.rate*float64(time.Second))))
	return nil
}
