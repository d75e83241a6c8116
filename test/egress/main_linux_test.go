package egress_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// The roles of the test binary, by the variable that says which one it is in.
const (
	roleVariable = "BAWN_EGRESS_ROLE"
	dirVariable  = "BAWN_EGRESS_DIR" // the lab's directory
	roleWorld    = "world"
	roleOutside  = "outside"
	roleDesk     = "desk"
)

// errNoLab says why there is no lab, in a process that runs tests without one.
var errNoLab error

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == probeArgument {
		os.Exit(probe(os.Args[2:]))
	}
	dir := os.Getenv(dirVariable)
	switch os.Getenv(roleVariable) {
	case roleWorld:
		os.Exit(exitCode(world(dir)))
	case roleOutside:
		os.Exit(exitCode(0, outside(dir)))
	case roleDesk:
		os.Exit(m.Run())
	}
	code, err := enter()
	if err != nil {
		errNoLab = err
		code = m.Run() // every test says that it needs the lab
	}
	os.Exit(code)
}

// exitCode says err and makes it a failure.
func exitCode(code int, err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "the lab:", err)
		return max(code, 1)
	}
	return code
}

// worldCapabilities are what building the world takes. An ordinary user has
// them in the world's user namespace only.
var worldCapabilities = []uintptr{
	unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE,
}

// enter runs this process' tests in a new world and returns their exit code.
// Everything in the world ends with it, or with this process.
func enter() (int, error) {
	runtime.LockOSThread() // the world dies with the thread that made it
	defer runtime.UnlockOSThread()
	dir, err := labDir()
	if err != nil {
		return 1, err
	}
	defer testenv.RemoveAll(dir)
	if err := furnish(dir); err != nil {
		return 1, err
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), roleVariable+"="+roleWorld, dirVariable+"="+dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = worldAttr()
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("start a world: %w", err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return 1, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

// worldAttr asks for namespaces: root's own, or those that a user may have.
func worldAttr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL,
	}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		attr.AmbientCaps = worldCapabilities
	}
	return attr
}

// labDir makes a directory that every sandbox leaves where it is, as /tmp is
// private inside.
func labDir() (string, error) {
	parent := "/var/lib"
	if os.Geteuid() != 0 {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		parent = home
	}
	dir, err := os.MkdirTemp(parent, "bawn-egress-")
	if err != nil {
		return "", err
	}
	return dir, errors.Join(os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "etc"), 0o755))
}
