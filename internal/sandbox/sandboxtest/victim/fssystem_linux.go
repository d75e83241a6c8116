package main

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

var evilText = []byte(probe.Evil)

// writeNew creates a file with the text of an attack, or replaces one.
func writeNew(p string) error {
	fd, err := unix.Open(p, unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o755)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, evilText)
	return err
}

// systemWrites try places of the system, and those that are private.
func systemWrites() []Check {
	list := []Check{
		{Name: "E004", Why: "a file beside the workspace", Want: writeRefused, Changes: true,
			Do: func(fx Fixtures) error { return writeNew(filepath.Join(fx.Workspace, "..", "escape-"+fx.Token)) }},
		{Name: "E020", Why: "the shell's start-up file", Want: writeRefused, Changes: true,
			Do: func(fx Fixtures) error {
				return openAndWrite(filepath.Join(fx.Home, ".bashrc"), unix.O_WRONLY|unix.O_APPEND)
			}},
		{Name: "A180", Why: "a program in the user's PATH", Want: writeRefused, Changes: true,
			Do: func(fx Fixtures) error { return writeNew(filepath.Join(fx.Home, ".local/bin/git")) }},
		{Name: "A181", Why: "a new file in the home directory", Want: writeRefused, Changes: true,
			Do: func(fx Fixtures) error { return writeNew(filepath.Join(fx.Home, ".zlogin")) }},
		{Name: "A182", Why: "a timer or service of the user's", Want: writeRefused, Changes: true,
			Do: func(fx Fixtures) error { return writeNew(filepath.Join(fx.Home, ".config/systemd/user/x.service")) }},
		{Name: "A183", Why: "this program's own file", Want: append([]errno{unix.ETXTBSY}, magicRefused...),
			NoControl: "the kernel refuses to write a running program",
			Do:        func(Fixtures) error { return openAndWrite(self, unix.O_WRONLY) }},
	}
	for _, dir := range []string{"/", "/etc", "/usr", "/usr/bin", "/usr/local/bin", "/bin", "/lib", "/boot", "/opt", "/srv", "/home", "/root", "/var", "/var/lib", "/var/spool", "/mnt"} {
		list = append(list, Check{Name: "A184:" + dir, Why: "a new file in " + dir, Want: append([]errno{unix.ENOENT}, writeRefused...),
			Unavailable: []errno{unix.ENOENT, unix.EROFS}, RootOnly: true, Do: func(fx Fixtures) error { return makeAndRemove(dir, fx) }})
	}
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		list = append(list, Check{Name: "A185:" + dir, Why: dir + " is the session's own: what is made there is not on the host", Works: true, Changes: true,
			Unavailable: []errno{unix.ENOENT, unix.EACCES},
			Do:          func(fx Fixtures) error { return writeNew(filepath.Join(dir, fx.ProbeName())) }})
	}
	return named("fs-write", list)
}

// makeAndRemove leaves nothing in a place of the system, even if it works.
func makeAndRemove(dir string, fx Fixtures) error {
	p := filepath.Join(dir, fx.ProbeName())
	if err := writeNew(p); err != nil {
		return err
	}
	return broken(os.Remove(p))
}

// ownWrites try Bawn's own files: a guest that could write them could widen
// its next session or change the record of this one.
func ownWrites() []Check {
	list := []Check{
		{Name: "E037", Why: "the policy", Changes: true,
			Do: func(fx Fixtures) error {
				return openAndWrite(filepath.Join(fx.Config, "config.toml"), unix.O_WRONLY|unix.O_APPEND)
			}},
		{Name: "A190", Why: "a new file beside the policy", Changes: true,
			Do: func(fx Fixtures) error { return writeNew(filepath.Join(fx.Config, "new.toml")) }},
		{Name: "A191", Why: "replace the policy's directory", Changes: true,
			Do: func(fx Fixtures) error { return unix.Rename(fx.Config, fx.Config+".old") }},
		{Name: "A192", Why: "the record of sessions", Changes: true,
			Do: func(fx Fixtures) error {
				return openAndWrite(filepath.Join(fx.Data, "fixture"), unix.O_WRONLY|unix.O_APPEND)
			}},
		{Name: "A193", Why: "remove from the record of sessions", Changes: true,
			Do: func(fx Fixtures) error { return unix.Unlink(filepath.Join(fx.Data, "fixture")) }},
		{Name: "A194", Why: "replace the record's directory", Changes: true,
			Do: func(fx Fixtures) error { return unix.Rename(fx.Data, fx.Data+".old") }},
		{Name: "A195", Why: "read the policy", Do: func(fx Fixtures) error { return readToken(filepath.Join(fx.Config, "config.toml"), fx) }},
		{Name: "A196", Why: "read the record of sessions", Do: func(fx Fixtures) error { return readToken(filepath.Join(fx.Data, "fixture"), fx) }},
		{Name: "A197", Why: "list the record of sessions", Do: func(fx Fixtures) error { return listed(fx.Data, "fixture") }},
	}
	for i := range list {
		list[i].Want = append([]errno{unix.EBUSY}, append(writeRefused, hiddenRefused...)...)
	}
	return named("fs-write", list)
}
