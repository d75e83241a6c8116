package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// inherited lists descriptors from 3 that this program did not open: Go opens
// its own with O_CLOEXEC.
func inherited() []int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	var list []int
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		flags, fail := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && fail == nil && fd > 2 && flags&unix.FD_CLOEXEC == 0 {
			list = append(list, fd)
		}
	}
	slices.Sort(list)
	return list
}

// descriptorChecks use what the process that starts the sandbox has open.
func descriptorChecks() []Check {
	none := []errno{nothing}
	return named("fs-read", []Check{
		{Name: "E065", Why: "an inherited directory leads out by ..", Want: none, Do: leakedDirectory},
		{Name: "A240", Why: "an inherited descriptor that can be written", Want: none, Changes: true, Do: leakedFile},
		{Name: "A241", Why: "an inherited socket", Want: none, Do: leakedKind(unix.S_IFSOCK)},
		{Name: "A242", Why: "any inherited descriptor", Want: none, Alone: true, Do: func(Fixtures) error { return found(len(inherited()) > 0) }},
	})
}

func kindOf(fd int) uint32 {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return 0
	}
	return st.Mode & unix.S_IFMT
}

func leakedKind(kind uint32) func(Fixtures) error {
	return func(Fixtures) error {
		return found(slices.ContainsFunc(inherited(), func(fd int) bool { return kindOf(fd) == kind }))
	}
}

// leakedDirectory reads a hidden file relative to an inherited directory.
func leakedDirectory(fx Fixtures) error {
	for _, fd := range inherited() {
		if kindOf(fd) != unix.S_IFDIR {
			continue
		}
		if inner, err := unix.Openat(fd, filepath.Join("../../../../../../..", fx.Secret), unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
			return tokenIn(inner, fx)
		}
	}
	return nothing
}

func leakedFile(Fixtures) error {
	for _, fd := range inherited() {
		if kindOf(fd) == unix.S_IFREG {
			_, err := unix.Write(fd, []byte("x"))
			return err
		}
	}
	return nothing
}

// limitChecks go beyond what the sandbox was told to allow a process.
func limitChecks() []Check {
	none := []errno{nothing}
	return named("limits", []Check{
		{Name: "E170", Why: "a file larger than allowed", Want: []errno{unix.EFBIG}, Unavailable: none, Do: hugeFile},
		{Name: "A740", Why: "more descriptors than allowed", Want: []errno{unix.EMFILE}, Unavailable: none, Do: manyFiles},
		{Name: "A741", Why: "a core file", Want: none, NoControl: "a machine may allow none", Do: func(Fixtures) error {
			var l unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_CORE, &l); err != nil {
				return broken(err)
			}
			return found(l.Cur != 0)
		}},
	})
}

// hugeFile writes one byte behind the limit; the file is sparse.
func hugeFile(fx Fixtures) error {
	if fx.FileSizeMB == 0 {
		return nothing
	}
	p, err := scratchFile("huge")
	if err != nil {
		return err
	}
	fd, err := unix.Open(p, unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return broken(err)
	}
	_, err = unix.Pwrite(fd, []byte("x"), fx.FileSizeMB<<20)
	return err
}

func manyFiles(fx Fixtures) error {
	if fx.OpenFiles == 0 {
		return nothing
	}
	for range fx.OpenFiles + 1 {
		if _, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return err
		}
	}
	return nil
}
