package inside

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/executor"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/ipc"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/ticket"
)

// Start speaks to the first process of a sandbox over conn, which it takes over. The
// other end is descriptor 0 of that process, or the connection that it made to a UNIX
// socket. Only one connection may ever be accepted there, and no other process may
// have had the path: the first to speak is taken for it.
//
// Start returns when everything that s says is done and the executor is ready,
// and until then obeys ctx. It errs with a *StepError where something could not
// be done inside; the first process has ended then, or ends.
func Start(ctx context.Context, conn *os.File, s Setup) (*Guest, error) {
	if err := s.check(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	conn, err := pollable(conn)
	if err != nil {
		return nil, err
	}
	g := newGuest(s)
	issuer := make(chan *ticket.Issuer, 1)
	go func() { issuer <- ticket.NewIssuer(time.Now) }() // a millisecond, while the first process starts
	err = g.setUp(ctx, conn)
	if err == nil {
		g.issuer = <-issuer
		err = g.greet(ctx, conn)
	} else {
		err = errors.Join(err, conn.Close())
	}
	if err != nil {
		return nil, errors.Join(whyOf(ctx, err), g.Close())
	}
	return g, nil
}

// whyOf says that time was over, where that is why.
func whyOf(ctx context.Context, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil {
		return fmt.Errorf("the sandbox's first process does not answer: %w", ctx.Err())
	}
	return err
}

// pollable is conn as a file on which deadlines work.
func pollable(conn *os.File) (*os.File, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, failed := -1, error(nil)
	err = raw.Control(func(have uintptr) {
		if fd, failed = unix.FcntlInt(have, unix.F_DUPFD_CLOEXEC, 0); failed == nil {
			failed = unix.SetNonblock(fd, true)
		}
	})
	if err := errors.Join(err, failed, conn.Close()); err != nil {
		return nil, fmt.Errorf("take the control socket: %w", err)
	}
	return os.NewFile(uintptr(fd), "control"), nil
}

// setUp sends the Setup and reads the reply.
func (g *Guest) setUp(ctx context.Context, file *os.File) error {
	conn, err := ipc.New(file, intent.Limits)
	if err != nil {
		return err
	}
	over := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer over()
	if err := g.tell(conn); err != nil {
		return g.instead(conn, err)
	}
	var sockets []*os.File
	for {
		var r report
		files, err := conn.Receive(&r)
		if err != nil {
			closeAll(sockets)
			return fmt.Errorf("the sandbox's first process has ended before it was ready: %w", err)
		}
		if r.Sockets > 0 && r.Sockets == len(files) && len(sockets) < g.sockets() {
			sockets = append(sockets, files...)
			continue
		}
		return g.take(&r, sockets, files)
	}
}

// instead returns what the other side says of itself, where it has ended before
// it was told everything.
func (g *Guest) instead(conn *ipc.Conn, err error) error {
	var r report
	files, rerr := conn.Receive(&r)
	closeAll(files)
	if rerr == nil && r.Failed != nil {
		return r.Failed
	}
	return err
}

// tell sends the groups, as many at a time as a frame carries, and the setup.
func (g *Guest) tell(conn *ipc.Conn) error {
	for groups := g.setup.Groups; len(groups) > 0; {
		n := min(len(groups), intent.MaxFiles)
		if err := conn.Send(&order{Join: n}, groups[:n]...); err != nil {
			return err
		}
		groups = groups[n:]
	}
	return conn.Send(&order{Setup: &g.setup})
}

// sockets is how many carry the network.
func (g *Guest) sockets() int {
	if g.setup.Network == nil {
		return 0
	}
	return 4 * len(g.setup.Network.Own)
}

// take keeps what came last, if it is what was wanted.
func (g *Guest) take(r *report, sockets, files []*os.File) error {
	n, want := g.setup.Network, g.sockets()
	wanted := handed{Root: !g.setup.Stream, Listener: g.setup.Filter.supervised(), Mounts: g.setup.Mounts}
	if r.Failed != nil || r.Handed == nil || *r.Handed != wanted || len(files) != wanted.files() || len(sockets) != want {
		closeAll(sockets)
		closeAll(files)
		if r.Failed != nil {
			return r.Failed
		}
		return errors.New("the sandbox's first process has handed out something else than was asked for")
	}
	for _, to := range []struct {
		is   bool
		file **os.File
	}{{wanted.Root, &g.Root}, {wanted.Listener, &g.Listener}, {wanted.Mounts, &g.Mounts}} {
		if to.is {
			*to.file, files = files[0], files[1:]
		}
	}
	g.network = kernel.GuestNetwork(n, sockets)
	return nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// greet starts the executor, on the same socket.
func (g *Guest) greet(ctx context.Context, file *os.File) error {
	client, err := executor.New(file)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	g.client = client
	g.Ready, err = client.Start(ctx, executor.Start{Keys: g.issuer.Keys(), Session: g.setup.Session, Plan: g.setup.Plan})
	if err != nil {
		return fmt.Errorf("start the executor: %w", err)
	}
	return nil
}
