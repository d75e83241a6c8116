package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// kernelFileChecks open files by which the kernel is told what to do. They
// write nothing.
func kernelFileChecks() []Check {
	want := append([]errno{unix.ENOENT}, writeRefused...)
	var list []Check
	for name, p := range map[string]string{
		"E157": "/proc/sys/kernel/core_pattern", "E158": "/proc/sysrq-trigger", "E159": "/sys/kernel/uevent_helper",
		"A720": "/proc/sys/kernel/hostname", "A721": "/proc/sys/vm/drop_caches", "A722": "/proc/sys/net/ipv4/ip_forward", "A723": "/proc/sys/kernel/ns_last_pid",
		"A724": "/sys/kernel/mm/transparent_hugepage/enabled", "A725": "/sys/power/state", "A726": "/proc/irq/default_smp_affinity", "A727": "/proc/mtrr",
		"A728": "/proc/sys/fs/binfmt_misc/register", "A729": "/proc/sys/kernel/modprobe",
	} {
		list = append(list, Check{Name: name, Why: "the kernel obeys " + p, Want: want, Unavailable: []errno{unix.ENOENT, unix.EROFS, unix.EACCES}, RootOnly: true,
			Do: func(Fixtures) error { return openOnly(p, unix.O_WRONLY) }})
	}
	none := []errno{nothing, unix.ENOENT, unix.EACCES}
	list = append(list,
		Check{Name: "E160", Why: "a control group's release agent", Want: none, Unavailable: none, RootOnly: true, Do: writableBelow("/sys/fs/cgroup", "release_agent")},
		Check{Name: "A730", Why: "a control group's processes", Want: none, Unavailable: none, RootOnly: true, Do: writableBelow("/sys/fs/cgroup", "cgroup.procs")},
		Check{Name: "E166", Why: "/proc/acpi and /proc/scsi", Want: none, Unavailable: none, Do: anyEntry("/proc/acpi", "/proc/scsi")},
		Check{Name: "A731", Why: "the firmware's tables", Want: none, Unavailable: none, Do: anyEntry("/sys/firmware")},
		Check{Name: "A732", Why: "the kernel's debug files", Want: none, Unavailable: none, RootOnly: true, Do: anyEntry("/sys/kernel/debug", "/sys/kernel/tracing")},
		Check{Name: "A733", Why: "the addresses of the kernel's symbols", Want: none, Unavailable: none, RootOnly: true, Do: addressesIn("/proc/kallsyms")},
		Check{Name: "A736", Why: "the addresses of the machine's memory", Want: none, Unavailable: none, RootOnly: true, Do: addressesIn("/proc/iomem")},
		Check{Name: "A734", Why: "timers of every process", Want: none, Unavailable: none, RootOnly: true, Do: func(Fixtures) error { return readable("/proc/timer_list") }},
		Check{Name: "A735", Why: "keys of every user", Want: none, Unavailable: none, Do: func(Fixtures) error { return readable("/proc/key-users") }},
	)
	return named("kernel", list)
}

// addressesIn reads a file of addresses, which the kernel writes as zero for
// processes that may not know them.
func addressesIn(p string) func(Fixtures) error {
	return func(Fixtures) error {
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			if strings.Trim(strings.Fields(line)[0], "0-") != "" {
				return nil
			}
		}
		return nothing
	}
}

// writableBelow opens the first file of that name for writing.
func writableBelow(root, name string) func(Fixtures) error {
	return func(Fixtures) error {
		last := error(nothing)
		err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == name {
				last = openOnly(p, unix.O_WRONLY)
				if last == nil {
					return filepath.SkipAll
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if last == unix.EROFS {
			return unix.EACCES
		}
		return last
	}
}

// anyEntry wants an entry in one of the directories.
func anyEntry(dirs ...string) func(Fixtures) error {
	return func(Fixtures) error {
		for _, d := range dirs {
			if entries, err := os.ReadDir(d); err == nil && len(entries) > 0 {
				return nil
			}
		}
		return nothing
	}
}
