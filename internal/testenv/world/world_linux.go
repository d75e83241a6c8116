package world

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// capabilities are what building a world takes. An ordinary user has them in
// the world's user namespace only.
var capabilities = []uintptr{
	unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE,
}

// Enter makes a world's directory, has furnish write what both sides read, runs
// this program with these arguments as the first process of a new world, and
// returns its exit code. The world ends with that process, or with this one. Its
// standard output is out.
func Enter(name string, args []string, out io.Writer, furnish func(dir string) error) (int, error) {
	runtime.LockOSThread() // the world dies with the thread that made it
	defer runtime.UnlockOSThread()
	dir, err := newDir(name)
	if err != nil {
		return 1, err
	}
	defer testenv.RemoveAll(dir)
	if err := furnish(dir); err != nil {
		return 1, err
	}
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+First, dirVariable+"="+dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, out, os.Stderr
	cmd.SysProcAttr = namespaces()
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("start a world: %w", err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return 1, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

// namespaces are root's own, or those that a user may have.
func namespaces() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL,
	}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		attr.AmbientCaps = capabilities
	}
	return attr
}

// newDir makes a directory that every sandbox leaves where it is, as /tmp is
// private inside.
func newDir(name string) (string, error) {
	parent := "/var/lib"
	if os.Geteuid() != 0 {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		parent = home
	}
	dir, err := os.MkdirTemp(parent, "bawn-"+name+"-")
	if err != nil {
		return "", err
	}
	return dir, errors.Join(os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "etc"), 0o755))
}

// Build is what the first process does: it puts files of the world's directory
// over files of the machine, starts the outside, has the caller lay the wire to
// that process, starts the machine, and returns the machine's exit code.
func Build(over map[string]string, wire func(outside int) error) (int, error) {
	dir := Dir()
	if err := ownMounts(dir, over); err != nil {
		return 1, err
	}
	if err := joinOutside(wire); err != nil {
		return 1, err
	}
	machine, err := startMachine()
	if err != nil {
		return 1, err
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 1, err
		case pid == machine && status.Signaled():
			return 1, fmt.Errorf("the machine was ended by %v", status.Signal())
		case pid == machine:
			return status.ExitStatus(), nil
		}
	}
}

// ownMounts gives the world a /proc of its own processes, and the files in
// which a machine says how names are resolved and whom TLS trusts.
func ownMounts(dir string, over map[string]string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if os.Geteuid() == 0 { // sshd as root wants /run/sshd
		if err := unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
			return fmt.Errorf("mount /run: %w", err)
		}
		if err := os.Mkdir("/run/sshd", 0o755); err != nil {
			return err
		}
	}
	for name, target := range over {
		real, err := filepath.EvalSymlinks(target)
		if err != nil {
			return fmt.Errorf("the machine has no %s: %w", target, err)
		}
		if err := unix.Mount(filepath.Join(dir, "etc", name), real, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("replace %s: %w", real, err)
		}
	}
	return nil
}

// joinOutside starts the outside in a network namespace of its own and has the
// wire laid between it and the machine.
func joinOutside(wire func(outside int) error) error {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVariable+"="+Outside)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.AmbientCaps = capabilities
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the outside: %w", err)
	}
	if err := wire(cmd.Process.Pid); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(in, "the wire is there"); err != nil {
		return err
	}
	timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != ready {
		return fmt.Errorf("the outside says %q, %v", line, err)
	}
	return nil
}

// ready is what the outside says once it serves.
const ready = "ready\n"

// Serve is what the outside does: it waits for the wire, begins, and serves
// until the world ends.
func Serve(begin func(dir string) error) error {
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	if err := begin(Dir()); err != nil {
		return err
	}
	if _, err := os.Stdout.WriteString(ready); err != nil {
		return err
	}
	select {}
}

// IP runs ip(8).
func IP(format string, args ...any) error {
	line := fmt.Sprintf(format, args...)
	out, err := exec.Command(Sbin("ip"), strings.Fields(line)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", line, err, out)
	}
	return nil
}

// IPs runs ip(8) for each line, one after the other.
func IPs(lines string) error {
	for line := range strings.Lines(lines) {
		if err := IP("%s", strings.TrimSpace(line)); err != nil {
			return err
		}
	}
	return nil
}

// Sbin finds a program also where an ordinary user's PATH does not lead.
func Sbin(name string) string {
	if p, err := exec.LookPath(name); err == nil {
		return p
	}
	return filepath.Join("/usr/sbin", name)
}

// startMachine starts this program once more, with no more rights than the user who
// made the world has.
func startMachine() (int, error) {
	runtime.LockOSThread() // the thread has no rights to give any more
	if os.Getuid() != 0 {
		if err := dropInherited(); err != nil {
			return 0, err
		}
	}
	if err := os.Setenv(roleVariable, Machine); err != nil {
		return 0, err
	}
	return syscall.ForkExec("/proc/self/exe", os.Args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
}

// dropInherited takes from the thread what an exec would leave.
func dropInherited() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return err
	}
	data[0].Inheritable, data[1].Inheritable = 0, 0
	return unix.Capset(&head, &data[0])
}
