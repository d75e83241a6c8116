//go:build linux || darwin

package sessionsocket

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// An Opener opens a pseudo-terminal of the execution zone. Both files are the
// caller's to close.
type Opener func() (master, slave *os.File, err error)

// A plumbing joins a guest's descriptors to those of one command.
type plumbing struct {
	stdio  [3]stdio
	files  [3]*os.File // the command's
	ours   []*os.File  // those of files that are closed once the command has them
	null   *os.File    // of the command, or nil
	master *os.File    // of the command's terminal, or nil
	slave  *os.File
	input  *pump // into a pipe, or nil
	keys   *pump // into the terminal, or nil
	output []*pump
}

// connect makes the command's descriptors.
func (p *plumbing) connect(open Opener, rows, cols uint16) error {
	for i := range p.stdio {
		if err := p.one(i, open, rows, cols); err != nil {
			p.abandon()
			return fmt.Errorf("descriptor %d: %w", i, err)
		}
	}
	return nil
}

func (p *plumbing) one(i int, open Opener, rows, cols uint16) (err error) {
	s := &p.stdio[i]
	switch s.class {
	case closed:
		return nil
	case passed:
		p.files[i] = s.file
		return nil
	case null:
		return p.nothing(i)
	case terminal:
		return p.terminal(i, open, rows, cols)
	case pumped:
		return p.pumped(i)
	}
	return errKind
}

// nothing gives the command a /dev/null of its own, one for all three. It is
// opened without the poller, to which it would be nothing to wait for.
func (p *plumbing) nothing(i int) error {
	if p.null == nil {
		fd, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		p.null = os.NewFile(uintptr(fd), os.DevNull)
		p.ours = append(p.ours, p.null)
	}
	p.files[i] = p.null
	return nil
}

// pumped gives the command a pipe of its own; one for output and errors that
// go to the same place, so that they stay in order.
func (p *plumbing) pumped(i int) error {
	if i == 2 && p.stdio[1].class == pumped && p.stdio[1].place == p.stdio[2].place {
		p.files[2] = p.files[1]
		return nil
	}
	guest, err := p.stdio[i].open(i > 0)
	if err != nil {
		return err
	}
	command, host, err := newPipe(i > 0)
	if err != nil {
		guest.close()
		return err
	}
	p.files[i] = command
	if i == 0 {
		p.feed(guest, host)
		return nil
	}
	p.ours = append(p.ours, command)
	p.output = append(p.output, startPump(host, guest))
	return nil
}

// feed pumps the guest's input to the command. For a file, which others read on
// after the command, the session keeps the pipe to see the unread bytes.
func (p *plumbing) feed(guest, host *stream) {
	var rest *os.File
	if p.stdio[0].kind == unix.S_IFREG {
		rest = p.files[0]
	} else {
		p.ours = append(p.ours, p.files[0])
	}
	p.input = startPump(guest, host)
	p.input.rest = rest
}

// terminal gives the command a terminal of its zone, one for all three.
func (p *plumbing) terminal(i int, open Opener, rows, cols uint16) (err error) {
	if p.master == nil {
		if open == nil {
			return errors.New("the execution zone has no terminals")
		}
		if p.master, p.slave, err = open(); err != nil {
			return err
		}
		p.ours = append(p.ours, p.slave)
		p.resize(rows, cols)
		if err := p.screen(i); err != nil {
			return err
		}
	}
	p.files[i] = p.slave
	return nil
}

// screen shows the output of the terminal's other side at the guest's
// descriptor i, or at a later one if that is standard input.
func (p *plumbing) screen(i int) error {
	if i == 0 && p.stdio[1].class == terminal {
		i = 1
	}
	guest, err := p.stdio[i].open(true)
	if err != nil {
		return err
	}
	host, err := newStream(p.master, false, false)
	if err != nil {
		guest.close()
		return err
	}
	out := newPump(host, guest)
	out.late = lateScreen
	p.output = append(p.output, out.start())
	return nil
}

// resume takes keys from the guest's terminal. It does nothing if it already does
// so, or if standard input is not a terminal.
func (p *plumbing) resume() error {
	if p.stdio[0].class != terminal || p.keys != nil || p.master == nil {
		return nil
	}
	guest, err := p.stdio[0].open(false)
	if err != nil {
		return err
	}
	host, err := newStream(p.master, false, false)
	if err != nil {
		guest.close()
		return err
	}
	p.keys = startPump(guest, host)
	return nil
}

// pause takes no more keys: those to come are for another program.
func (p *plumbing) pause() {
	if p.keys != nil {
		p.keys.finish()
		p.keys = nil
	}
}

// resize sets the size of the command's terminal, which tells the command.
func (p *plumbing) resize(rows, cols uint16) {
	if p.master == nil || rows == 0 && cols == 0 {
		return
	}
	_ = control(p.master, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
	}) // a size that can't be set is the one before
}

// started releases the command's own descriptors, so that its end is seen.
func (p *plumbing) started() {
	for _, f := range p.ours {
		f.Close()
	}
	p.ours = nil
}

// ended takes no more input, and waits until all that the command has written
// has come out, or stop is closed.
func (p *plumbing) ended(stop <-chan struct{}) {
	p.pause()
	if p.input != nil {
		p.input.stop()
		if p.stdio[0].kind == unix.S_IFREG {
			p.input.giveBack()
		}
		p.input.close()
		p.input = nil
	}
	for _, out := range p.output {
		out.settle(stop)
	}
}

// settlePause is how long it takes to look again whether output has come out.
const settlePause = 500 * time.Microsecond

// lateScreen is how often a terminal is looked at again once it seems empty.
// The kernel passes bytes from one end to the other in its own time, and nobody
// sees them until then. Most terminals end before, with the last process that
// has them open.
const lateScreen = 60

// settle waits until the pump is empty, has ended, or stop is closed.
func (p *pump) settle(stop <-chan struct{}) {
	for calm := 0; ; {
		if calm++; !p.empty() {
			calm = 0
		}
		if calm > p.late {
			return
		}
		select {
		case <-p.ended:
			return
		case <-stop:
			return
		case <-time.After(settlePause):
		}
	}
}

// linger waits for the output of the command's remaining processes, until stop
// is closed, and releases everything. A command that was not started has no
// end.
func (p *plumbing) linger(stop <-chan struct{}) {
	p.started()
	for _, out := range p.output {
		select {
		case <-out.ended:
		case <-stop:
		}
		out.finish()
	}
	p.output = nil
	p.abandon()
}

// abandon releases everything at once.
func (p *plumbing) abandon() {
	p.started()
	p.pause()
	for _, out := range p.output {
		out.finish()
	}
	if p.input != nil {
		p.input.finish()
	}
	p.output, p.input = nil, nil
	if p.master != nil {
		p.master.Close()
		p.master = nil
	}
}
