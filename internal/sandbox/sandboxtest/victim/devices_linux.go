package main

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// deviceReads go below the file system.
func deviceReads() []Check {
	none := []errno{nothing}
	return named("fs-read", []Check{
		{Name: "E070", Why: "the disk itself", Want: append(none, unix.EACCES, unix.EPERM), Unavailable: none, RootOnly: true, Do: anyDisk},
		{Name: "E071", Why: "make a device for the disk", Want: callRefused, RootOnly: true, Do: makeDisk},
		{Name: "A230", Why: "make a device for the machine's memory", Want: callRefused, RootOnly: true, Do: makeMemory},
		{Name: "E072", Why: "the addresses of the host's network cards", Want: append(none, unix.ENOENT, unix.EACCES), Unavailable: none, Do: cardAddress},
		{Name: "A231", Why: "the names of the host's network cards", Want: append(none, unix.ENOENT, unix.EACCES), Unavailable: none, Do: cardName},
		{Name: "E074", Why: "open by handle, past every path", Want: callRefused, Unavailable: []errno{unix.EOPNOTSUPP}, RootOnly: true, Do: openByHandle},
		{Name: "A232", Why: "the kernel's memory", Want: hiddenRefused, Unavailable: []errno{unix.ENOENT}, RootOnly: true,
			Do: func(Fixtures) error { return openOnly("/proc/kcore", unix.O_RDONLY) }},
		{Name: "A233", Why: "the kernel's messages", Want: hiddenRefused, Unavailable: []errno{unix.ENOENT}, RootOnly: true,
			Do: func(Fixtures) error { return openOnly("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK) }},
		{Name: "A234", Why: "devices beyond the minimal set", Want: none, Do: extraDevices},
		{Name: "A235", Why: "the passwords' hashes", Want: hiddenRefused, Unavailable: []errno{unix.ENOENT, nothing}, RootOnly: true,
			Do: func(Fixtures) error { return readable("/etc/shadow") }},
	})
}

// anyDisk opens the first block device that /dev has.
func anyDisk(Fixtures) error {
	last := error(nothing)
	_ = filepath.WalkDir("/dev", func(p string, d os.DirEntry, err error) error {
		if err != nil || d.Type()&os.ModeDevice == 0 || d.Type()&os.ModeCharDevice != 0 {
			return nil
		}
		if err := openOnly(p, unix.O_RDONLY|unix.O_NONBLOCK); err != unix.ENXIO && err != unix.ENOMEDIUM {
			last = err
		}
		if last == nil {
			return filepath.SkipAll
		}
		return nil
	})
	return last
}

func makeDisk(Fixtures) error   { return makeNode(unix.S_IFBLK, unix.Mkdev(8, 0)) }
func makeMemory(Fixtures) error { return makeNode(unix.S_IFCHR, unix.Mkdev(1, 1)) }

func makeNode(kind uint32, dev uint64) error {
	p, err := scratchFile("node")
	if err != nil {
		return err
	}
	return unix.Mknod(p, kind|0o600, int(dev))
}

// cards are the network interfaces that /sys shows besides the loopback.
func cards() ([]string, error) {
	entries, err := os.ReadDir("/sys/class/net")
	if err != nil {
		return nil, err
	}
	var list []string
	for _, e := range entries {
		if e.Name() != "lo" && !tunnel(e.Name()) {
			list = append(list, e.Name())
		}
	}
	return list, nil
}

// tunnel recognises interfaces that every new network namespace gets on some
// kernels (net.core.fb_tunnels_only_for_init_net).
func tunnel(name string) bool {
	for _, prefix := range []string{"tunl", "gre", "erspan", "ip_vti", "ip6_vti", "sit", "ip6tnl", "ip6gre"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func cardName(Fixtures) error {
	list, err := cards()
	if err != nil {
		return err
	}
	return found(len(list) > 0)
}

func cardAddress(Fixtures) error {
	list, err := cards()
	if err != nil {
		return err
	}
	for _, name := range list {
		text, err := os.ReadFile("/sys/class/net/" + name + "/address")
		if err == nil && strings.Trim(string(text), "0:\n") != "" {
			return nil
		}
	}
	return nothing
}

func openByHandle(fx Fixtures) error {
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, fx.Workspace, 0)
	if err != nil {
		return err
	}
	dir, err := openDir(fx.Workspace)
	if err != nil {
		return err
	}
	_, err = unix.OpenByHandleAt(dir, handle, unix.O_RDONLY|unix.O_CLOEXEC)
	return err
}

// extraDevices wants nothing in /dev but what every program may need.
func extraDevices(Fixtures) error {
	usual := map[string]bool{
		"null": true, "zero": true, "full": true, "random": true, "urandom": true, "tty": true, "ptmx": true, "console": true,
	}
	entries, err := os.ReadDir("/dev")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type()&os.ModeDevice != 0 && !usual[e.Name()] {
			return nil
		}
	}
	return nothing
}
