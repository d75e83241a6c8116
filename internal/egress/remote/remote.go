// Package remote starts the relay of one session's network, bawnd egress, and
// speaks to it. It is the side of `bawn run`, which stays lean.
package remote

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/egress"
)

// Program is the relay's name. It lies beside bawn itself.
const Program = "bawnd"

// Lean is a program that is the relay and nothing else. Where it lies beside
// bawn it takes the relay's part, which each session waits for.
const Lean = "bawn-egress"

// patience is how long the relay may take to have taken the sockets, and to
// end.
const patience = 20 * time.Second

// forHuman is how long it may take to be ready.
const forHuman = 5 * time.Minute

// errVersion says that the other side speaks otherwise, though its protocol has
// the same number.
var errVersion = errors.New("the relay is not of this version of bawn; install all programs of one release")

// A MissingError says that the relay's program is not where it should be.
type MissingError struct{ Path string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("the network by name needs the program %q, which is not there", e.Path)
}

// Find returns where the relay's program is: beside the one that runs now. It
// returns a *MissingError where it is not.
func Find() (string, error) { return beside(Program) }

// FindEgress returns the program that Launch starts: the lean one, or else what
// Find returns.
func FindEgress() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return egressIn(filepath.Dir(self))
}

func egressIn(dir string) (string, error) {
	path, err := in(dir, Lean)
	var missing *MissingError
	if errors.As(err, &missing) {
		return in(dir, Program)
	}
	return path, err
}

// beside returns a program that lies beside the one that runs now.
func beside(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return in(filepath.Dir(self), name)
}

func in(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return "", &MissingError{path}
	}
	return path, nil
}

// Handlers receive the relay's messages once it serves. They are called from
// one goroutine and must not wait.
type Handlers struct {
	Ask      func(egress.Question)
	Withdraw func(id uint64)
	Denied   func(egress.Denial)
}

// A Relay is the running process.
type Relay struct {
	process  *exec.Cmd
	control  *os.File // messages
	channel  *egress.Channel
	sockets  *os.File // over which the listening sockets go
	place    string   // files that the relay makes and removes at its end
	messages chan egress.Message
	ready    *egress.Ready
	placed   func() error        // waits for it, once
	serving  bool                // somebody handles what it says
	rules    func() egress.Rules // in force; nil stands for the built-in ones alone
	heard    chan struct{}       // closed when all it said has been handled
	done     chan struct{}       // closed when it has ended
	failure  error               // set before done is closed
	closing  sync.Once
}

// Surroundings are inherited by a relay's process.
type Surroundings struct {
	Environ []string
	Stderr  io.Writer
	// Apart gives it a session of its own (setsid(2)), and so no controlling terminal
	// to ask anybody at.
	Apart bool
	// Passphrase is where the vault's passphrase can be read; nil for nowhere. The
	// caller closes it.
	Passphrase *os.File
}

// Launch starts the program at path, which then waits to be told what to do:
// it may come to life while that is found out.
func Launch(path string, s Surroundings) (*Relay, error) {
	control, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	sockets, theirSockets, err := pair()
	if err != nil {
		return nil, errors.Join(err, control.Close(), theirs.Close())
	}
	cmd := exec.Command(path, "egress")
	cmd.Stderr, cmd.Dir = s.Stderr, "/"
	cmd.Env = slices.DeleteFunc(slices.Clone(s.Environ), func(v string) bool { return strings.HasPrefix(v, egress.PassphraseFD+"=") })
	cmd.ExtraFiles, cmd.SysProcAttr = []*os.File{theirs, theirSockets}, &syscall.SysProcAttr{Setsid: s.Apart}
	if s.Passphrase != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, s.Passphrase)
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", egress.PassphraseFD, egress.PassphraseAt))
	}
	err = startProcess(cmd)
	theirs.Close()
	theirSockets.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %q: %w", path, err), control.Close(), sockets.Close())
	}
	r := &Relay{
		process: cmd, control: control, channel: egress.NewChannel(control), sockets: sockets,
		messages: make(chan egress.Message, 1), heard: make(chan struct{}), done: make(chan struct{}),
	}
	r.placed = sync.OnceValue(r.awaitPlaced)
	go r.wait()
	go r.receive()
	hello := egress.Self()
	_ = r.channel.Send(egress.Message{Hello: &hello}) // where it has ended already, Ready says why
	return r, nil
}

// ObeyRules says where the relay gets the rules in force once their files have changed.
// It is called before Serve.
func (r *Relay) ObeyRules(rules func() egress.Rules) { r.rules = rules }

// Configure tells the relay what to do, once. Ready waits for its answer.
func (r *Relay) Configure(c egress.Config) error {
	r.place = c.Place
	err := r.channel.Send(egress.Message{Config: &c})
	if err == nil {
		return nil
	}
	if _, why := r.next(patience); why != nil { // it has ended, and may have said so
		return r.untold(why)
	}
	return fmt.Errorf("tell the relay what to do: %w", err)
}

// Abandon lets a relay go that was told nothing. It ends by itself, and is not
// waited for.
func (r *Relay) Abandon() error { return errors.Join(r.control.Close(), r.sockets.Close()) }

// pair returns two ends of a stream, the first for us.
func pair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|socketFlags, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket for the relay: %w", err)
	}
	if err := closeOnExec(fds); err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "relay"), os.NewFile(uintptr(fds[1]), "relay"), nil
}

// wait reaps the process; its end is the end of the session's network.
func (r *Relay) wait() {
	awaitExit(r.process.Process.Pid)
	err := r.process.Wait()
	r.failure = errors.Join(egress.ErrGone, err)
	close(r.done)
}

func (r *Relay) receive() {
	defer close(r.messages)
	for {
		m, err := r.channel.Receive()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil { // its next message can't be known
			_ = r.process.Process.Kill() // unless it has ended
			return
		}
		r.messages <- m
	}
}

// next waits for one message.
func (r *Relay) next(wait time.Duration) (egress.Message, error) {
	select {
	case m, ok := <-r.messages:
		switch {
		case !ok:
			<-r.done
			return m, r.failure
		case m.Failed != "":
			return m, errors.New(m.Failed)
		}
		return m, nil
	case <-time.After(wait):
		return egress.Message{}, fmt.Errorf("the relay has said nothing for %v", wait)
	}
}

// Ready returns the relay's needs in the guest. It waits for it once, and for
// the human, who may be asked for the vault's passphrase meanwhile.
func (r *Relay) Ready() (egress.Ready, error) {
	if r.ready == nil {
		m, err := r.next(forHuman)
		if err != nil {
			return egress.Ready{}, r.untold(err)
		}
		if m.Ready == nil {
			return egress.Ready{}, errVersion
		}
		r.ready = m.Ready
	}
	return *r.ready, nil
}

// untold explains the end of a relay that was never ready. A relay of an earlier
// release without a Hello ends here without one of its own.
func (r *Relay) untold(err error) error {
	if !errors.Is(err, egress.ErrGone) {
		return err
	}
	return fmt.Errorf("%w (%v) before it was ready; if it did not say why: %w",
		egress.ErrGone, r.process.ProcessState, egress.Agree(egress.Self(), egress.Hello{Program: r.process.Path}))
}

// Placed waits until everything that Ready has named is written. Before, no
// sandbox may be made that shows it.
func (r *Relay) Placed() error { return r.placed() }

func (r *Relay) awaitPlaced() error {
	m, err := r.next(patience)
	if err == nil && !m.Placed {
		err = errVersion
	}
	if err != nil {
		return fmt.Errorf("place what the guest reads: %w", err)
	}
	return nil
}

// Serve hands the guest's listening sockets over, which are closed here, and
// returns when the relay has them. Then h receives its messages.
func (r *Relay) Serve(listeners []*os.File, h Handlers) error {
	fds := make([]int, len(listeners))
	for i, l := range listeners {
		fds[i] = int(l.Fd())
	}
	err := r.Placed()
	if err == nil {
		err = r.send(fds)
	}
	for _, l := range listeners {
		l.Close()
	}
	if errors.Is(err, unix.EPIPE) { // it has ended, and said why
		if _, why := r.next(patience); why != nil {
			return why
		}
	}
	if err != nil {
		return fmt.Errorf("hand the sockets to the relay: %w", err)
	}
	for { // it serves before it says so: a guest that runs already may be refused something first
		m, err := r.next(patience)
		if err != nil {
			return err
		}
		if m.Serving {
			break
		}
		if !r.pass(m, h) {
			return errors.New("the relay did not take the sockets")
		}
	}
	r.serving = true
	go r.handle(h)
	return nil
}

func (r *Relay) send(fds []int) error {
	raw, err := r.sockets.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = raw.Control(func(fd uintptr) {
		sent = unix.Sendmsg(int(fd), []byte{byte(len(fds))}, unix.UnixRights(fds...), nil, 0)
	})
	return errors.Join(err, sent)
}

// handle passes on the relay's messages, up to the last.
func (r *Relay) handle(h Handlers) {
	defer close(r.heard)
	for m := range r.messages {
		r.pass(m, h)
	}
}

// pass passes on the relay's messages about the guest. It reports whether m is
// such a message.
func (r *Relay) pass(m egress.Message, h Handlers) bool {
	switch {
	case m.Stale:
		_ = r.channel.Send(egress.Message{Rules: r.current()}) // a relay that has ended can't decide
	case m.Ask != nil:
		h.Ask(*m.Ask)
	case m.Withdraw != 0:
		h.Withdraw(m.Withdraw)
	case m.Denial != nil:
		h.Denied(*m.Denial)
	default:
		return false
	}
	return true
}

// current are the rules in force.
func (r *Relay) current() *egress.Rules {
	if r.rules == nil {
		return &egress.Rules{Failed: "nobody has said where the rules in force are"}
	}
	rules := r.rules()
	return &rules
}

// Answer passes on the human's answer. An answer that can't be passed on is lost,
// which denies.
func (r *Relay) Answer(a egress.Answer) error { return r.channel.Send(egress.Message{Answer: &a}) }

// Done is closed when the relay has ended.
func (r *Relay) Done() <-chan struct{} { return r.done }

// Close ends the relay, which closes the guest's connections. It waits for the
// relay's last records, and until the handlers have its last messages. It may
// be called more than once.
func (r *Relay) Close() error {
	var err error
	r.closing.Do(func() {
		err = errors.Join(shutdown(r.control), r.sockets.Close())
		if !r.serving {
			go r.handle(Handlers{Ask: func(egress.Question) {}, Withdraw: func(uint64) {}, Denied: func(egress.Denial) {}})
		}
		select {
		case <-r.done:
		case <-time.After(patience):
			err = errors.Join(err, r.process.Process.Kill())
			<-r.done
		}
		<-r.heard
		err = errors.Join(err, r.control.Close(), r.sweep())
	})
	return err
}

// sweep removes the files of a killed relay. A relay that was never ready has
// made nothing: existing files are not ours.
func (r *Relay) sweep() error {
	if r.ready == nil || r.place == "" {
		return nil
	}
	return egress.RemovePlace(r.place)
}

// shutdown says that nothing more will be said.
func shutdown(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.Shutdown(int(fd), unix.SHUT_WR) })
	if errors.Is(failed, unix.ENOTCONN) { // the relay has gone already
		failed = nil
	}
	return errors.Join(err, failed)
}
