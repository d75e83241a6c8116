package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/testenv"
)

const (
	startTime = 30 * time.Second // until a started engine answers
	stopTime  = 15 * time.Second // until one that got SIGTERM has ended
)

// An Engine is a dockerd that runs.
type Engine struct {
	Dir    string // everything of it lies below
	Socket string // where it answers, mode 0600

	// Within are words before dockerd's own, by which it starts in other
	// namespaces than the test; see [StartWithin].
	Within []string

	name   string // of its directory and its control groups
	client *http.Client
	cmd    *exec.Cmd
	ended  chan struct{} // closed at its end
	mu     sync.Mutex
	made   map[string]string // images: reference to ID
}

var shared struct {
	sync.Mutex
	engine *Engine
	err    error
}

// Shared returns the engine that serves this test binary, starting it on the
// first call. It needs the feature "docker" (see testenv.Need); an engine that
// then does not start fails t. TestMain must call Stop.
func Shared(t testing.TB) *Engine {
	t.Helper()
	testenv.Need(t, "docker")
	shared.Lock()
	defer shared.Unlock()
	if shared.engine == nil && shared.err == nil {
		shared.engine, shared.err = Launch()
	}
	if shared.err != nil {
		t.Fatalf("engine: %v", shared.err)
	}
	return shared.engine
}

// Stop ends the shared engine, if there is one, and removes what is its.
func Stop() error {
	shared.Lock()
	defer shared.Unlock()
	e := shared.engine
	shared.engine = nil
	if e == nil {
		return nil
	}
	return e.Close()
}

// Start starts an engine of the test's own, to be killed or stopped as it
// likes. It is removed when t ends.
func Start(t testing.TB) *Engine {
	t.Helper()
	testenv.Need(t, "docker")
	e, err := Launch()
	if err != nil {
		t.Fatalf("engine: %v", err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("engine: %v", err)
		}
	})
	return e
}

// StartWithin is Start for an engine that another program starts, such as
// unshare(1) in namespaces of the engine's own.
func StartWithin(t testing.TB, words ...string) *Engine {
	t.Helper()
	testenv.Need(t, "docker")
	e, err := launch(words)
	if err != nil {
		t.Fatalf("engine: %v", err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("engine: %v", err)
		}
	})
	return e
}

// Launch sweeps what dead makers left, starts an engine, and waits until it
// answers. Who calls it calls Close.
func Launch() (*Engine, error) { return launch(nil) }

func launch(within []string) (*Engine, error) {
	if err := sweep(os.TempDir()); err != nil {
		return nil, err
	}
	prefix, err := ownPrefix()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, err
	}
	e := &Engine{Dir: dir, Socket: filepath.Join(dir, "d.sock"), name: filepath.Base(dir), ended: make(chan struct{}), made: map[string]string{}, Within: within}
	e.client = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", e.Socket)
		},
	}}
	if err := errors.Join(os.Chmod(dir, 0o711), e.start()); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	if err := e.ready(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w\n%s", err, e.Log()), e.Close())
	}
	return e, nil
}

// start starts dockerd from a thread that lives as long as it does. The kernel
// sends the death signal when the forking thread ends, and dockerd inherits the
// thread's network namespace.
func (e *Engine) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread's namespace is not the process's
		err := e.startHere()
		started <- err
		if err == nil {
			_ = e.cmd.Wait() // how it ended is what the test makes of it
			close(e.ended)
		}
	}()
	return <-started
}

// startHere is start, on the thread that it may keep.
func (e *Engine) startHere() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("network namespace: %w", err)
	}
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(e.Dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	config, err := e.writeConfig()
	if err != nil {
		return err
	}
	group, err := e.makeGroup()
	if err != nil {
		return err
	}
	defer group.Close()
	e.cmd = exec.Command("dockerd", "--config-file", config)
	e.cmd.Dir, e.cmd.Stdout, e.cmd.Stderr = "/", log, log
	// Debian keeps dockerd, runc and iptables where an ordinary PATH does not look.
	e.cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin", "TMPDIR="+e.Dir)
	e.cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true, Pdeathsig: syscall.SIGTERM, UseCgroupFD: true, CgroupFD: int(group.Fd()),
	}
	if e.cmd.Path, err = testenv.Dockerd(); err != nil {
		return err
	}
	if len(e.Within) > 0 {
		words := append(slices.Clone(e.Within), append([]string{e.cmd.Path}, e.cmd.Args[1:]...)...)
		if e.cmd.Path, err = exec.LookPath(words[0]); err != nil {
			return err
		}
		e.cmd.Args = words
	}
	return e.cmd.Start()
}

// loopbackUp switches the loopback device of the thread's network namespace on
// (netdevice(7)).
func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, req)
}

// ready waits until the engine answers.
func (e *Engine) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	for {
		_, err := e.Call(ctx, http.MethodGet, "/_ping", nil)
		if err == nil {
			return nil
		}
		select {
		case <-e.ended:
			return fmt.Errorf("dockerd: %v before it answered", e.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("dockerd does not answer for %v: %w", startTime, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Host is the engine's address as DOCKER_HOST has it.
func (e *Engine) Host() string { return "unix://" + e.Socket }

// PID is the process ID of dockerd.
func (e *Engine) PID() int { return e.cmd.Process.Pid }

// Signal sends sig to dockerd alone: SIGKILL leaves containers running and
// SIGSTOP makes an engine that hangs. Close ends one that is stopped, too.
func (e *Engine) Signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := e.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("engine: %v", err)
	}
	if sig == syscall.SIGKILL {
		<-e.ended
	}
}

// Allow gives the socket to a user, who is root on this machine through it.
func (e *Engine) Allow(t testing.TB, uid int) {
	t.Helper()
	if err := os.Chown(e.Socket, uid, 0); err != nil {
		t.Fatalf("engine: %v", err)
	}
}

// Log returns the end of what the engine has printed.
func (e *Engine) Log() string {
	text, err := os.ReadFile(filepath.Join(e.Dir, "log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// Close ends the engine with its containers and removes what is its. It may
// be called more than once.
func (e *Engine) Close() error {
	e.client.CloseIdleConnections()
	if e.cmd != nil && e.cmd.Process != nil {
		_ = e.cmd.Process.Signal(syscall.SIGTERM) // one that has ended is what we want
		_ = e.cmd.Process.Signal(syscall.SIGCONT)
		select {
		case <-e.ended:
		case <-time.After(stopTime):
		}
	}
	return remove(e.Dir)
}
