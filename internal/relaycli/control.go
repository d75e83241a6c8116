package relaycli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/term"

	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/places"
	"github.com/bawn-dev/bawn/internal/relay"
	"github.com/bawn-dev/bawn/internal/verb"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
)

// How long a relay may take to end, and how often it is told to.
const (
	endTime   = 15 * time.Second
	tellEvery = 20 * time.Millisecond
)

// serve does what bawn serve was told.
func (e *Env) serve(ctx context.Context, o Serving) error {
	switch {
	case o.Unit, o.OnDemand:
		return e.Serve(ctx, o)
	case o.Status:
		return e.status(ctx, o.JSON)
	}
	state, err := e.State()
	if err != nil {
		return err
	}
	if o.Stop {
		ended, err := e.stop(ctx, state)
		if err != nil {
			return err
		}
		e.sayStopped(ended)
		return nil
	}
	return e.takeOver(ctx, state, o)
}

// takeOver ends the relay that runs and serves in its place. The mark keeps
// sessions from starting one in between; it goes when this relay has the lock.
func (e *Env) takeOver(ctx context.Context, state string, o Serving) (err error) {
	mark := filepath.Join(state, places.RelayStopped)
	before, err := link.ReadMark(mark)
	if err != nil {
		return err
	}
	ended, err := e.stop(ctx, state)
	if err == nil && o.Detach {
		err = e.detach(ctx, &o)
	} else if err == nil {
		e.forPerson(ctx, &o)
		err = e.Serve(ctx, o)
	}
	if err != nil && !before {
		if gone := os.Remove(mark); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	if err == nil && o.Detach && ended.GetPid() != 0 {
		fmt.Fprintf(e.Stderr, "bawn: it has taken over from process %d\n", ended.GetPid())
	}
	return err
}

// forPerson keeps the log from the terminal where somebody looks on, who reads there
// what is served.
func (e *Env) forPerson(ctx context.Context, o *Serving) {
	if e.Stderr == nil || !term.IsTerminal(int(e.Stderr.Fd())) {
		return
	}
	o.Log = true
	o.Ready = func() { _ = e.status(ctx, false) } // it serves, whatever could be reported about it
}

// detach starts the relay in the background, and says what it serves.
func (e *Env) detach(ctx context.Context, o *Serving) error {
	words, err := o.Words()
	if err != nil {
		return err
	}
	if err := e.Background(ctx, words); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	for { // its key comes after its socket
		l, err := e.lookUp(ctx)
		if err == nil && l.Running {
			return e.status(ctx, false)
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("the relay ends, or does not answer; relay.log in its state directory says why"), err)
		case <-time.After(tellEvery):
		}
	}
}

// stop marks the relay as stopped, ends a running one, waits for it, and returns
// which one it was. Its PID is 0 if none ran.
func (e *Env) stop(ctx context.Context, state string) (*bawnv1.SystemServiceStatusResponse, error) {
	ended := &bawnv1.SystemServiceStatusResponse{}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, err
	}
	if err := atomicfile.Write(filepath.Join(state, places.RelayStopped), nil, 0o600); err != nil {
		return nil, err
	}
	client, err := e.System(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	for {
		runs := relay.Running(state)
		if runs == nil {
			return ended, nil
		}
		var process *relay.RunningError
		if !errors.As(runs, &process) {
			return nil, runs
		}
		if m, err := client.Status(ctx, &bawnv1.SystemServiceStatusRequest{}); err == nil {
			if ended = m; m.GetUnit() {
				if err := e.StopUnits(ctx); err != nil {
					return nil, err
				}
			}
		}
		if _, err := client.Stop(ctx, &bawnv1.SystemServiceStopRequest{}); connect.CodeOf(err) == connect.CodePermissionDenied {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("the relay of process %s does not end within %v", process.PID, endTime), Hint: "end it: kill " + process.PID}
		case <-time.After(tellEvery):
		}
	}
}

// sayStopped says what --stop has come to.
func (e *Env) sayStopped(ended *bawnv1.SystemServiceStatusResponse) {
	if ended.GetPid() == 0 {
		fmt.Fprintln(e.Stdout, "no relay runs")
	} else {
		fmt.Fprintf(e.Stdout, "the relay (process %d) has ended\n", ended.GetPid())
	}
	if n := ended.GetPending(); n > 0 {
		fmt.Fprintf(e.Stdout, "questions that still wait: %d\n", n)
	}
	fmt.Fprintln(e.Stdout, `none starts until you say "bawn serve"; sessions without a terminal deny meanwhile what they would ask`)
}

// A statusLine is the status as JSON.
type statusLine struct {
	Running  bool       `json:"running"`
	Stopped  bool       `json:"stopped"` // none starts by itself
	PID      int64      `json:"pid,omitempty"`
	Started  *time.Time `json:"started,omitempty"`
	Version  string     `json:"version,omitempty"`
	Page     string     `json:"page,omitempty"`
	Devices  int32      `json:"devices,omitempty"`
	Pending  int32      `json:"pending,omitempty"`
	OnDemand bool       `json:"onDemand,omitempty"`
	Unit     bool       `json:"unit,omitempty"`
}

// status describes the relay.
func (e *Env) status(ctx context.Context, asJSON bool) error {
	l, err := e.lookUp(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return e.writeJSON(l)
	}
	if !l.Running {
		after := "one starts when a session needs it"
		if l.Stopped {
			after = `it was stopped, and "bawn serve" starts it`
		}
		_, err := fmt.Fprintln(e.Stdout, "no relay runs:", after)
		return err
	}
	fmt.Fprintf(e.Stdout, "the relay runs: process %d, since %s\n", l.PID, l.Started.Local().Format(time.DateTime))
	switch {
	case l.Page != "":
		fmt.Fprintf(e.Stdout, "page: %s, paired devices: %d\n", l.Page, l.Devices)
	default:
		fmt.Fprintln(e.Stdout, `page: none; "bawn serve -d --listen 127.0.0.1:7443" serves one`)
	}
	end := `with "bawn serve --stop"`
	if l.OnDemand {
		end = fmt.Sprintf("when there has been nothing to do for %v", relay.IdleTime)
	}
	_, err = fmt.Fprintf(e.Stdout, "questions that wait: %d; it ends %s\n", l.Pending, end)
	return err
}

func (e *Env) lookUp(ctx context.Context) (l statusLine, err error) {
	state, err := e.State()
	if err != nil {
		return l, err
	}
	if l.Stopped, err = link.ReadMark(filepath.Join(state, places.RelayStopped)); err != nil {
		return l, err
	}
	runs := relay.Running(state)
	var process *relay.RunningError
	if !errors.As(runs, &process) {
		return l, runs
	}
	client, err := e.System(ctx)
	if err != nil {
		return l, err
	}
	m, err := client.Status(ctx, &bawnv1.SystemServiceStatusRequest{})
	if err != nil {
		return l, fmt.Errorf("ask the relay (process %s): %w", process.PID, err)
	}
	started := m.GetStarted().AsTime()
	l.Running, l.PID, l.Started, l.Version = true, m.GetPid(), &started, m.GetVersion()
	l.Page, l.Devices, l.Pending, l.OnDemand, l.Unit = m.GetPage(), m.GetDevices(), m.GetPending(), m.GetOnDemand(), m.GetUnit()
	return l, nil
}
