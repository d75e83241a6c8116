package dockerapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/sandbox/maker"
)

// A Holder keeps the network of a session's containers if they can't use the guest's
// network. It is a container that has only this network and runs only Bawn's own program.
// Set all fields before the first call.
type Holder struct {
	Engine  string // the engine's UNIX socket
	Session string
	Maker   maker.Maker
	Program string // absolute path of bawn, a static program
	Dir     string // a directory of this session that the guest can't see
	// Network describes the network by name; nil means that containers reach no other
	// host. If it is set, Serve gets its sockets and closes them.
	Network *layout.Network
	Serve   func(*sandbox.GuestNetwork) error
	Guest   sandbox.Loopback

	mu     sync.Mutex
	closed bool
	id     string
	inside *inside.Guest
}

var _ Network = (*Holder)(nil)

// Mode makes the holder from image and returns its network mode. No program of the image
// is run.
func (h *Holder) Mode(ctx context.Context, image string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return "", refuse(RuleConflict, "", "the session ends")
	case h.inside == nil:
		// This request outlives the guest's connection: the broker must learn what the
		// engine made.
		if err := h.make(context.WithoutCancel(ctx), image); err != nil {
			return "", errors.Join(fmt.Errorf("make the network of the session's containers: %w", err), h.remove())
		}
	}
	return "container:" + h.id, nil
}

func (h *Holder) make(ctx context.Context, image string) error {
	e := newEngine(h.Engine)
	defer e.client.CloseIdleConnections()
	listener, err := h.listen()
	if err != nil {
		return err
	}
	defer unix.Close(listener)
	var made struct {
		ID string `json:"Id"`
	}
	query := url.Values{"name": {fmt.Sprintf("bawn-%.12s-network", h.Session)}}
	if err := e.do(ctx, message{method: http.MethodPost, path: "/containers/create", query: query, body: h.body(image), limit: createTime}, &made); err != nil {
		return err
	}
	if !hexForm().MatchString(made.ID) {
		return errors.New("the engine's answer names no container")
	}
	h.id = made.ID
	if err := e.look(ctx, h.id, []string{holderProgram, holderControl}, ""); err != nil {
		return err
	}
	if err := e.do(ctx, message{method: http.MethodPost, path: "/containers/" + h.id + "/start", limit: createTime}, nil); err != nil {
		return err
	}
	var state struct{ State struct{ Pid int } }
	if err := e.do(ctx, message{method: http.MethodGet, path: "/containers/" + h.id + "/json"}, &state); err != nil {
		return err
	}
	conn, err := accept(listener, state.State.Pid)
	if err != nil {
		return err
	}
	ready, cancel := context.WithTimeout(ctx, shortTime)
	defer cancel()
	setup := inside.Setup{Session: h.Session, Plan: sha256.Sum256([]byte(h.id)), Loopback: true, Network: h.Network, Ports: true}
	if h.inside, err = inside.Start(ready, conn, setup); err != nil {
		return err
	}
	if h.Network != nil {
		return h.Serve(h.inside.Network())
	}
	return nil
}

// listen makes the socket to which the holder's first process connects. It has
// no rights beyond those of others; the directory keeps others out.
func (h *Holder) listen() (int, error) {
	name := filepath.Join(h.Dir, "holder")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: name})
	if err == nil {
		err = errors.Join(os.Chmod(name, 0o666), unix.Listen(fd, 1))
	}
	if err != nil {
		return -1, errors.Join(fmt.Errorf("make the holder's socket: %w", err), unix.Close(fd))
	}
	return fd, nil
}

// accept waits for the connection of the process that the engine reports as pid.
func accept(listener, pid int) (*os.File, error) {
	fds := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
	for end := time.Now().Add(shortTime); ; {
		n, err := unix.Poll(fds, int(shortTime.Milliseconds()))
		if errors.Is(err, unix.EINTR) && time.Now().Before(end) {
			continue
		}
		if err != nil || n == 0 || time.Now().After(end) {
			return nil, errors.Join(errors.New("the holder's first process does not call; it may be no program for this machine"), err)
		}
		fd, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
		if err != nil {
			return nil, fmt.Errorf("accept the holder's connection: %w", err)
		}
		peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil && pid > 0 && int(peer.Pid) == pid {
			return os.NewFile(uintptr(fd), "control"), nil
		}
		unix.Close(fd)
	}
}

// A holderBody is the engine's request body for the holder.
type holderBody struct {
	Image       string
	User        string
	Entrypoint  []string
	WorkingDir  string
	Healthcheck healthcheck
	Labels      map[string]string
	HostConfig  hostBody
}

func (h *Holder) body(image string) *holderBody {
	b := &holderBody{
		Image: image, User: "0:0", Entrypoint: []string{holderProgram, inside.Argument, holderControl}, WorkingDir: "/",
		Healthcheck: healthcheck{Test: []string{"NONE"}}, Labels: h.Maker.Labels(nil, h.Session, RoleHolder),
		HostConfig: hostBody{
			NetworkMode: "none", ReadonlyRootfs: true, CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges"}, IpcMode: "private", CgroupnsMode: "private",
			LogConfig: logBody{Type: "none"}, Memory: 128 << 20, MemorySwap: 128 << 20, PidsLimit: 64,
		},
	}
	b.HostConfig.RestartPolicy.Name = "no"
	if h.Network != nil {
		b.HostConfig.CapAdd = []string{"NET_ADMIN"} // given up by its first process
	}
	for _, m := range []struct{ name, target string }{{h.Program, holderProgram}, {filepath.Join(h.Dir, "holder"), holderControl}} {
		b.HostConfig.Mounts = append(b.HostConfig.Mounts, mountBody{
			Type: typeBind, Source: m.name, Target: m.target, ReadOnly: true, BindOptions: &bindBody{Propagation: "rprivate", NonRecursive: true},
		})
	}
	return b
}

// Dial connects to a TCP port of the containers' loopback.
func (h *Holder) Dial(port uint16) (*os.File, error) {
	h.mu.Lock()
	g := h.inside
	h.mu.Unlock()
	if g == nil {
		return nil, errors.New("no container has been made yet")
	}
	return g.Dial(port)
}

// Listen listens on a TCP port of the guest's loopback.
func (h *Holder) Listen(port uint16) (*net.TCPListener, error) { return listenAt(h.Guest, port) }

// listenAt makes a listener of what a guest's Listen returns.
func listenAt(g sandbox.Loopback, port uint16) (*net.TCPListener, error) {
	f, err := g.Listen(port)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return nil, errors.Join(errors.New("BUG(bawn): a guest's listener is not one of TCP"), l.Close())
	}
	return tcp, nil
}

// Close removes the holder. It may be called more than once.
func (h *Holder) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	return h.remove()
}

func (h *Holder) remove() error {
	var err error
	if h.inside != nil {
		h.inside.End()
		err = h.inside.Close()
		h.inside = nil
	}
	if h.id != "" {
		err = errors.Join(err, destroy(newEngine(h.Engine), h.id))
		h.id = ""
	}
	if rerr := os.Remove(filepath.Join(h.Dir, "holder")); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return err
}
