package egress_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// world is the first process of the world. It builds it, starts the outside
// and the desk, and ends with the desk's exit code.
func world(dir string) (int, error) {
	if err := ownMounts(dir); err != nil {
		return 1, err
	}
	if err := joinOutside(dir); err != nil {
		return 1, err
	}
	desk, err := startDesk()
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
		case pid == desk && status.Signaled():
			return 1, fmt.Errorf("the tests were ended by %v", status.Signal())
		case pid == desk:
			return status.ExitStatus(), nil
		}
	}
}

// ownMounts gives the world a /proc of its own processes, and the files in
// which a machine says how names are resolved and whom TLS trusts.
func ownMounts(dir string) error {
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
	for name, target := range deskFiles {
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

// joinOutside starts the outside in a network namespace of its own and lays
// the wire between it and the desk.
func joinOutside(dir string) error {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVariable+"="+roleOutside, dirVariable+"="+dir)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.AmbientCaps = worldCapabilities
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
	if err := deskNetwork(cmd.Process.Pid); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(in, "the wire is there"); err != nil {
		return err
	}
	timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		return fmt.Errorf("the outside says %q, %v", line, err)
	}
	return nil
}

// deskNetwork makes the desk's end of the wire and moves the other end.
func deskNetwork(outside int) error {
	return errors.Join(
		ip("link set lo up"),
		ip("link add desk0 type veth peer name out0 netns %d", outside),
		ip("addr add %s/24 dev desk0", deskV4),
		ip("addr add %s/24 dev desk0", deskPrivateV4),
		ip("-6 addr add %s/64 dev desk0 nodad", deskV6),
		ip("-6 addr add %s/64 dev desk0 nodad", deskPrivateV6),
		ip("link set desk0 up"),
		ip("route add default via %s", outsideV4),
		ip("-6 route add default via %s", outsideV6),
		// Processes with this process's group may use ping sockets.
		os.WriteFile("/proc/sys/net/ipv4/ping_group_range", fmt.Appendf(nil, "%d %d", os.Getgid(), os.Getgid()), 0),
	)
}

// ip runs ip(8).
func ip(format string, args ...any) error {
	line := fmt.Sprintf(format, args...)
	out, err := exec.Command(sbin("ip"), strings.Fields(line)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", line, err, out)
	}
	return nil
}

// sbin finds a program also where an ordinary user's PATH does not lead.
func sbin(name string) string {
	if p, err := exec.LookPath(name); err == nil {
		return p
	}
	return filepath.Join("/usr/sbin", name)
}

// startDesk starts this binary once more, to run the tests with no more rights than
// the user who started them has.
func startDesk() (int, error) {
	runtime.LockOSThread() // the thread has no rights to give any more
	if os.Getuid() != 0 {
		if err := dropInherited(); err != nil {
			return 0, err
		}
	}
	if err := os.Setenv(roleVariable, roleDesk); err != nil {
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
