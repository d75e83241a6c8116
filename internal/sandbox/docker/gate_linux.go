package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/inside/stream"
)

// A gate is a process of ours on this machine in a network namespace of its own,
// where the sockets are that lead to the relay. Nobody else reaches them, and
// nothing runs there: it makes sockets for connections that come from the guest.
type gate struct {
	*inside.Guest
	cmd *exec.Cmd
}

// openGate makes one for a guest that reaches others by name.
func (g *guest) openGate(ctx context.Context) error {
	n := g.plan.Remote.Network
	if n == nil {
		return nil
	}
	digest, err := g.plan.digest()
	if err != nil {
		return err
	}
	ours, theirs, err := intent.Pair()
	if err != nil {
		return err
	}
	cmd := exec.Command(g.away.setting.Program, inside.Argument)
	cmd.Env, cmd.Dir, cmd.Stdin = []string{}, "/", theirs
	cmd.SysProcAttr = alone()
	err = cmd.Start()
	if err := errors.Join(err, theirs.Close()); err != nil {
		return errors.Join(fmt.Errorf("make a network namespace on this machine: %w", err), ours.Close())
	}
	g.away.gate = &gate{cmd: cmd}
	ready, cancel := context.WithTimeout(ctx, g.engine.life)
	defer cancel()
	g.away.gate.Guest, err = inside.Start(ready, ours, inside.Setup{Session: g.plan.Inside.Session, Plan: digest, Loopback: true, Network: n, Ports: true})
	if err != nil {
		return fmt.Errorf("make the session's network on this machine: %w", err)
	}
	g.carry = g.away.gate.Network()
	return nil
}

// alone is a network namespace, and for an ordinary user the user namespace that it
// takes.
func alone() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return a
}

// close ends the process.
func (g *gate) close() error {
	var err error
	if g.Guest != nil {
		err = g.Guest.Close()
	}
	_ = g.cmd.Process.Kill() // it has ended
	_ = g.cmd.Wait()         // by a signal, or not
	return err
}

// ports are what the guest's connections lead to; none where it has no network.
func (s *session) ports() stream.Ports {
	if s.away == nil || s.away.gate == nil {
		return stream.Ports{}
	}
	return stream.Ports{Open: s.plan.Remote.Ports, Reach: s.away.gate.Reach}
}
