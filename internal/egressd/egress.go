package egressd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress"
)

// The descriptors that bawnd egress inherits.
const (
	controlFD = 3 // messages
	socketsFD = 4 // the guest's sockets, once
)

// maxSockets is the most that a guest's network has.
const maxSockets = 16

// serveEgress is the relay of one session: it ends when bawn closes control.
func serveEgress(env environ) error {
	_ = unix.SetNonblock(controlFD, true) // a wait takes a thread otherwise
	_ = unix.SetNonblock(socketsFD, true)
	control, sockets := os.NewFile(controlFD, "control"), os.NewFile(socketsFD, "sockets")
	unix.CloseOnExec(controlFD)
	unix.CloseOnExec(socketsFD)
	unix.CloseOnExec(egress.PassphraseAt)
	if control == nil || sockets == nil {
		return errors.New("bawnd egress is started by bawn run; there is nothing to serve here")
	}
	channel := egress.NewChannel(control)
	config, err := hear(channel)
	if errors.Is(err, io.EOF) {
		return nil // bawn run turned out to need no relay
	}
	if err != nil {
		return fail(channel, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := newSession(ctx, *config, env, channel.Send)
	defer func() { cancel(); _ = s.close() }() // nobody is left to be told
	if err == nil {
		err = detach()
	}
	if err == nil {
		err = boundMemory(maxMemory)
	}
	if err == nil {
		err = s.announce(ctx, channel)
	}
	if err != nil {
		return fail(channel, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.obey(channel) }()
	go func() {
		if err := s.begin(ctx, channel, sockets); err != nil {
			_ = fail(channel, err)
		}
	}()
	return <-ended
}

// hear returns what bawn wants served, if bawn is of this release. Its error is
// io.EOF where bawn has gone.
func hear(channel *egress.Channel) (*egress.Config, error) {
	first, err := channel.Receive()
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	theirs := egress.Hello{}
	if err == nil && first.Hello != nil {
		theirs = *first.Hello
	}
	if err := egress.Agree(theirs, egress.Self()); err != nil {
		return nil, err
	}
	m, err := channel.Receive()
	if err == nil && m.Config == nil {
		err = errors.New("bawn run has not said what to serve; want a configuration")
	}
	return m.Config, err
}

// announce tells bawn the guest's needs, and then that they exist. Parts for
// which the sandbox does not wait come last.
func (s *session) announce(ctx context.Context, channel *egress.Channel) error {
	if err := channel.Send(egress.Message{Ready: &s.ready}); err != nil {
		return err
	}
	if err := s.fill(ctx); err != nil {
		return err
	}
	if err := channel.Send(egress.Message{Placed: true}); err != nil {
		return err
	}
	return s.arm(ctx)
}

// told is an error that bawn was sent, and so says itself.
type told struct{ error }

// fail tells bawn why there is no relay.
func fail(channel *egress.Channel, err error) error {
	if sending := channel.Send(egress.Message{Failed: err.Error()}); sending != nil {
		return errors.Join(err, sending)
	}
	return told{err}
}

// begin serves once the sandbox has been made.
func (s *session) begin(ctx context.Context, channel *egress.Channel, from *os.File) error {
	files, err := receive(from)
	if err != nil {
		return err
	}
	if err := s.serve(ctx, files); err != nil {
		return err
	}
	if err := channel.Send(egress.Message{Serving: true}); err != nil {
		return err
	}
	select {
	case <-time.After(startOfGuest):
		s.finish()
		oneProcessor()
	case <-ctx.Done():
		return nil
	}
	select {
	case <-time.After(settled):
		releaseMemory() // of the start
	case <-ctx.Done():
	}
	return nil
}

// startOfGuest is how long a guest has the processors to itself at its start,
// before the parts are made that it does not need yet.
const startOfGuest = 10 * time.Millisecond

// settled is when the memory that the start has used is given back.
const settled = 2 * time.Second

// finish makes files that the guest does not read in its first moments: Java
// takes far longer to ask for its roots than they take here. Nothing waits for
// it, and the end of the session cuts it off.
func (s *session) finish() {
	for _, do := range s.later {
		if err := do(); err != nil { // a missing file trusts nobody
			s.tell(egress.Denial{
				Operation: bawn.Connect, Resource: "*", Rule: ruleTrust, Reason: err.Error(),
				Remedy: "other programs are not concerned; see whether the disk is full",
			})
		}
	}
	s.later = nil // it holds the roots
}

// obey takes answers until bawn has no more to say.
func (s *session) obey(channel *egress.Channel) error {
	for {
		m, err := channel.Receive()
		if err != nil {
			return nil //nolint:nilerr // bawn has ended, or the session's network has to
		}
		switch {
		case m.Answer != nil:
			s.asks.answer(*m.Answer)
		case m.Rules != nil:
			s.current.take(*m.Rules)
		default:
			return errors.New("bawn run said what is no answer; install both programs of one release")
		}
	}
}

// receive waits for the guest's sockets (unix(7), SCM_RIGHTS).
func receive(from *os.File) ([]*os.File, error) {
	oob, count := make([]byte, unix.CmsgSpace(4*maxSockets)), make([]byte, 1)
	raw, err := from.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("receive the guest's sockets: %w", err)
	}
	n, flags := 0, 0
	waiting := raw.Read(func(fd uintptr) bool {
		_, n, flags, _, err = unix.Recvmsg(int(fd), count, oob, 0)
		return !errors.Is(err, unix.EAGAIN)
	})
	if err := errors.Join(waiting, err); err != nil {
		return nil, fmt.Errorf("receive the guest's sockets: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.New("receive the guest's sockets: none came")
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, fmt.Errorf("receive the guest's sockets: %w", err)
	}
	files := make([]*os.File, len(fds))
	for i, fd := range fds {
		unix.CloseOnExec(fd) // nothing is executed here, so it costs nothing
		files[i] = os.NewFile(uintptr(fd), "guest")
	}
	if flags&unix.MSG_CTRUNC != 0 || len(files) != int(count[0]) {
		closeAll(files)
		return nil, fmt.Errorf("receive the guest's sockets: %d came of %d; want at most %d", len(files), count[0], maxSockets)
	}
	return files, nil
}
