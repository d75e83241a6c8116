package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// networkByHelper has a second container, which shares the network namespace
// of the first and has CAP_NET_ADMIN in it, make the network, hand the sockets
// out and end. The session's own container never has a capability.
func (s *session) networkByHelper(ctx context.Context, n *layout.Network) (made *sandbox.GuestNetwork, err error) {
	h, err := s.helperGuest(ctx, s.plan.helper(s.id), inside.Setup{Loopback: true, Network: n})
	defer func() {
		if h != nil {
			if cerr := h.Close(); err == nil && cerr != nil {
				err = errors.Join(cerr, made.Close())
			}
		}
		if err != nil {
			made, err = nil, fmt.Errorf("make the session's network: %w", err)
		}
	}()
	if err != nil {
		return nil, err
	}
	files, err := copies(h.Guest.Network().Files())
	if err != nil {
		return nil, err
	}
	return kernel.GuestNetwork(n, files), nil
}

// helperGuest starts a second container of the session's, of which the first
// process does what setup says and waits.
func (s *session) helperGuest(ctx context.Context, plan *Plan, setup inside.Setup) (h *guest, err error) {
	h = &guest{session: &session{engine: s.engine, plan: plan, maker: s.maker, pidfd: -1}}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
			h = nil
		}
	}()
	if h.place, err = makePlace(filepath.Dir(filepath.Dir(s.place.path)), s.maker); err != nil {
		return h, err
	}
	conn, err := h.run(ctx)
	if err != nil {
		return h, err
	}
	digest, err := plan.digest()
	if err != nil {
		return h, errors.Join(err, conn.Close())
	}
	ready, cancel := context.WithTimeout(ctx, s.engine.life)
	defer cancel()
	setup.Session, setup.Plan = s.plan.Inside.Session, digest
	h.Guest, err = inside.Start(ready, conn, setup)
	return h, err
}

// copies are descriptors of our own, which outlive those that they are of.
func copies(files []*os.File) ([]*os.File, error) {
	var list []*os.File
	for _, f := range files {
		raw, err := f.SyscallConn()
		if err != nil {
			return nil, err
		}
		fd, failed := -1, error(nil)
		err = raw.Control(func(have uintptr) { fd, failed = unix.FcntlInt(have, unix.F_DUPFD_CLOEXEC, 0) })
		if err := errors.Join(err, failed); err != nil {
			for _, f := range list {
				f.Close()
			}
			return nil, err
		}
		list = append(list, os.NewFile(uintptr(fd), f.Name()))
	}
	return list, nil
}
