package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

// readToken reads a file; it worked if the run's token is in it. An empty
// file in its place is nothing.
func readToken(p string, fx Fixtures) error {
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return tokenIn(fd, fx)
}

func tokenIn(fd int, fx Fixtures) error {
	f := os.NewFile(uintptr(fd), "secret")
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return err
	}
	return found(strings.Contains(string(text), fx.Token))
}

// listed reads a directory; it worked if name is in it.
func listed(dir, name string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return err
	}
	return found(slices.Contains(names, name))
}

// A read discloses a file p that may not be read.
type read struct {
	name, why string
	do        func(p string, fx Fixtures) error
	want      []errno
}

// readChecks read what the session was told to hide: a file in a hidden
// directory, and a hidden file in an open one.
func readChecks() []Check {
	list := []Check{
		{Name: "E051", Why: "read a hidden file", Do: func(fx Fixtures) error { return readToken(fx.Secret, fx) }},
		{Name: "E052", Why: "read a private key", Do: func(fx Fixtures) error {
			return readToken(filepath.Join(fx.Home, ".ssh", probe.CredentialFile), fx)
		}},
		{Name: "E055", Why: "copy a hidden file into the workspace", Do: func(fx Fixtures) error { return copyIn(fx.Secret, fx) }},
		{Name: "E062", Why: "the launcher's environment", Do: func(fx Fixtures) error { return inEnviron("/proc/" + itoa(os.Getppid()) + "/environ") }},
		{Name: "A200", Why: "list a hidden directory", Do: func(fx Fixtures) error { return listed(filepath.Dir(fx.Secret), filepath.Base(fx.Secret)) }},
		{Name: "A201", Why: "secrets in the environment", Do: func(fx Fixtures) error { return found(os.Getenv(probe.SecretVariable) != "") }},
		{Name: "A202", Why: "secrets in any process's environment", Do: anyEnviron},
		{Name: "A203", Why: "the agent's and the bus's address in the environment", Do: func(fx Fixtures) error {
			return found(os.Getenv("SSH_AUTH_SOCK") == fx.Agent || strings.Contains(os.Getenv("DBUS_SESSION_BUS_ADDRESS"), fx.Bus))
		}},
	}
	for _, r := range reads() {
		for target, p := range map[string]func(fx Fixtures) string{"directory": func(fx Fixtures) string { return fx.Secret }, "file": func(fx Fixtures) string { return fx.Denied }} {
			list = append(list, Check{Name: r.name + ":" + target, Why: r.why, Want: r.want, Do: func(fx Fixtures) error { return r.do(p(fx), fx) }})
		}
	}
	for i := range list {
		list[i].Want = append(list[i].Want, hiddenRefused...)
	}
	slices.SortFunc(list, func(a, b Check) int { return strings.Compare(a.Name, b.Name) })
	return named("fs-read", list)
}

func reads() []read {
	linked := []errno{unix.EXDEV, unix.EBUSY, unix.EROFS}
	return []read{
		{"A210", "read it", readToken, nil},
		{"A211", "read it by openat2", openat2Read, []errno{unix.ENOSYS}},
		{"A212", "read it through an O_PATH descriptor", pathRead, []errno{unix.ELOOP}},
		{"A213", "map it", mapRead, []errno{unix.EINVAL}},
		{"A214", "send it to a pipe", sendRead, nil},
		{"A215", "link it into the workspace", linkRead, linked},
		{"A216", "move it into the workspace", moveRead, linked},
		{"A217", "execute it", execRead, nil},
		{"A218", "read it by a descriptor of its directory", dirfdRead, nil},
	}
}

func openat2Read(p string, fx Fixtures) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, p, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_CLOEXEC})
	if err != nil {
		return err
	}
	return tokenIn(fd, fx)
}

func pathRead(p string, fx Fixtures) error {
	fd, err := unix.Open(p, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return readToken(fdPath(fd), fx)
}

func mapRead(p string, fx Fixtures) error {
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	m, err := unix.Mmap(fd, 0, len(fx.Token), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Size < int64(len(fx.Token)) {
		return nothing // touching the map would be SIGBUS
	}
	return found(string(m) == fx.Token)
}

func sendRead(p string, fx Fixtures) error {
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return broken(err)
	}
	if n, err := unix.Sendfile(pipe[1], fd, nil, 4096); err != nil || n == 0 {
		return orNothing(err)
	}
	unix.Close(pipe[1])
	return tokenIn(pipe[0], fx)
}

// orNothing is for a call that returned less than it was asked for.
func orNothing(err error) error {
	if err == nil {
		return nothing
	}
	return err
}

func copyIn(p string, fx Fixtures) error {
	in, err := unix.Open(p, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	to, err := scratchFile("copy")
	if err != nil {
		return err
	}
	out, err := unix.Open(to, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return broken(err)
	}
	if n, err := unix.CopyFileRange(in, nil, out, nil, 4096, 0); err != nil || n == 0 {
		return orNothing(err)
	}
	return readToken(to, fx)
}

func linkRead(p string, fx Fixtures) error {
	to, err := scratchFile("alias")
	if err != nil {
		return err
	}
	if err := unix.Link(p, to); err != nil {
		return err
	}
	return readToken(to, fx)
}

func moveRead(p string, fx Fixtures) error {
	to, err := scratchFile("moved")
	if err != nil {
		return err
	}
	if err := unix.Rename(p, to); err != nil {
		return err
	}
	return readToken(to, fx)
}

// execRead runs it: ENOEXEC means that the kernel has read it.
func execRead(p string, _ Fixtures) error {
	err := unix.Exec(p, []string{p}, nil)
	if err == unix.ENOEXEC {
		return nil
	}
	return err
}

func dirfdRead(p string, fx Fixtures) error {
	dir, err := unix.Open(filepath.Dir(p), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	fd, err := unix.Openat(dir, filepath.Base(p), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return tokenIn(fd, fx)
}

// notOurs is what a machine says whose root may not look at PID 1.
var notOurs = []errno{unix.EACCES, unix.EPERM}

// spelledReads read the hidden files by other spellings.
func spelledReads() []Check {
	c := Check{Family: "fs-read", Want: hiddenRefused}
	secret := func(fx Fixtures) string { return fx.Secret }
	denied := func(fx Fixtures) string { return fx.Denied }
	list := spelled(spellings(), "A220", "read a file of a hidden directory", c, readable, secret)
	list = append(list, spelled(spellings(), "A221", "read a hidden file", c, readable, denied)...)
	for name, f := range map[string]func(p string) string{
		"E054":        func(p string) string { return filepath.Dir(p) + "//" + filepath.Base(p) },
		"E059":        func(p string) string { return "/proc/1/root" + p },
		"A222:parent": func(p string) string { return "/proc/" + itoa(os.Getppid()) + "/root" + p },
		"A222:1/cwd":  func(p string) string { return "/proc/1/cwd/../../../../../../.." + p },
		"A222:task":   func(p string) string { return "/proc/self/task/" + itoa(unix.Gettid()) + "/root" + p },
	} {
		one := c
		one.Name, one.Why, one.Want = name, "a hidden file by another spelling", append([]errno{unix.ELOOP}, hiddenRefused...)
		if strings.Contains(f("/x"), "/proc/1/") {
			one.RootOnly, one.Unavailable = true, notOurs
		}
		one.Do = func(fx Fixtures) error { return readable(f(fx.Secret)) }
		list = append(list, one)
	}
	link := c
	link.Name, link.Why = "E056", "a symbolic link made inside leads to a hidden file"
	link.Do = func(fx Fixtures) error {
		p, err := viaLink(fx.Secret)
		if err != nil {
			return err
		}
		return readable(p)
	}
	list = append(list, link)
	slices.SortStableFunc(list, func(a, b Check) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// readable opens a file and wants a byte of it.
func readable(p string) error {
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, make([]byte, 1))
	if err != nil {
		return err
	}
	return found(n > 0)
}
