package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/bawn-dev/bawn/bench/measure"
)

// namespaced prepares the process that makes the network and takes turns in
// it. It is process 1 of a PID namespace: what it started ends with it.
func namespaced(self, dir string, who measure.Who) *exec.Cmd {
	cmd := exec.Command(self, "-role", roleInside, "-dir", dir, "-uid", strconv.Itoa(who.UID))
	cmd.Dir, cmd.Env = who.Workspace, who.Environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL,
	}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		cmd.Args[len(cmd.Args)-1] = "0"
	}
	return cmd
}

// inside makes the network and the mounts that the measurement needs, all of
// them in namespaces of our own, and becomes the process that takes turns.
func inside(dir string, uid int) error {
	if err := mounts(dir); err != nil {
		return err
	}
	if err := network(); err != nil {
		return err
	}
	if uid != 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(uid), syscall.Setuid(uid)); err != nil {
			return fmt.Errorf("become user %d: %w", uid, err)
		}
	}
	self := filepath.Join(dir, "bin", "self")
	return fmt.Errorf("start the measurement: %w", syscall.Exec(self, []string{self, "-role", roleTurns}, os.Environ())) //nolint:forbidigo // the benchmark has set it
}

func mounts(dir string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts our own: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	hosts := filepath.Join(dir, "hosts")
	if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost\n::1 localhost\n"+address+" "+hostName+"\n"), 0o644); err != nil {
		return err
	}
	if err := syscall.Mount(hosts, "/etc/hosts", "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("cover /etc/hosts: %w", err)
	}
	return openTun(dir)
}

// openTun lets ordinary users use /dev/net/tun, as distributions with udev do.
// Where we may make no device, it stays as it is.
func openTun(dir string) error {
	node := filepath.Join(dir, "tun")
	if os.Geteuid() != 0 || syscall.Mknod(node, syscall.S_IFCHR|0o666, 10<<8|200) != nil {
		return nil
	}
	if err := os.Chmod(node, 0o666); err != nil {
		return err
	}
	return syscall.Mount(node, "/dev/net/tun", "", syscall.MS_BIND, "")
}

// network gives the namespace the server's address, on the loopback, and a
// route to nowhere: pasta takes after the interface that has one.
func network() error {
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(`link set lo up
address add ` + address + `/32 dev lo
link add bench0 type veth peer name bench1
address add 172.31.77.2/24 dev bench0
link set bench0 up
link set bench1 up
route add default via 172.31.77.1
`)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make the network: ip -batch: %w\n%s", err, out)
	}
	return ports()
}

// ports lets the namespace use ports again soon after their connections have
// ended, and more of them (ip-sysctl.rst). Else the kernel looks for a free one
// longer than all else takes, once some ten thousand were used within a minute.
func ports() error {
	for name, value := range map[string]string{"tcp_tw_reuse": "1", "ip_local_port_range": "1024 65535"} {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+name, []byte(value), 0); err != nil {
			return err
		}
	}
	return nil
}

// unshared gives a program a user and network namespace of its own.
func unshared(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	return cmd
}
