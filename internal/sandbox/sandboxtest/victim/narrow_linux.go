package main

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

// A narrow attacks what is read-only or hidden in the writable directory d.
type narrow struct {
	name, why string
	do        func(d string, fx Fixtures) error
}

// narrowChecks try to change read-only files in a writable directory, and to
// read hidden ones in it. The calls that could go round a mount are those that
// move names.
func narrowChecks() []Check {
	list := []Check{{
		Name: "A900", Why: "the directory itself is writable", Works: true,
		Do: func(fx Fixtures) error { return writable(fx.Writable) },
	}}
	for _, n := range append(keptFile("settings.json", "A901"), keptFile("sub/deep/settings.json", "A902")...) {
		list = append(list, n.check(append(linkRefused, unix.ENOTEMPTY)))
	}
	for _, n := range append(keptDirectory(), keptParent()...) {
		list = append(list, n.check(append(linkRefused, unix.ENOTEMPTY)))
	}
	for _, n := range closedPlaces() {
		list = append(list, n.check(append(hiddenRefused, linkRefused...)))
	}
	return named("fs-narrow", list)
}

func (n narrow) check(want []errno) Check {
	return Check{
		Name: n.name, Why: n.why, Want: want, Changes: n.name < "A940",
		Do: func(fx Fixtures) error { return n.do(fx.Writable, fx) },
	}
}

func writable(d string) error {
	p := filepath.Join(d, "new")
	if err := openAndWrite(p, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL); err != nil {
		return err
	}
	return unix.Unlink(p)
}

// beside makes a file or a directory in d with the text of an attack. It is
// taken away again if the attack is refused.
func beside(d, name string) (string, error) {
	p := filepath.Join(d, name)
	onUndo(func() { os.RemoveAll(p) })
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		return p, broken(err)
	}
	return p, broken(os.WriteFile(p, []byte(probe.Evil), 0o755))
}

// with does f with an evil file beside what is attacked.
func with(d string, f func(evil string) error) error {
	evil, err := beside(d, "evil")
	if err != nil {
		return err
	}
	return f(evil)
}

func swap(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// keptFile attacks one read-only file.
func keptFile(name, number string) []narrow {
	file := func(f func(p string) error) func(string, Fixtures) error {
		return func(d string, _ Fixtures) error { return f(filepath.Join(d, name)) }
	}
	besideIt := func(f func(p, evil string) error) func(string, Fixtures) error {
		return func(d string, _ Fixtures) error {
			p := filepath.Join(d, name)
			return with(filepath.Dir(p), func(evil string) error { return f(p, evil) })
		}
	}
	all := []narrow{
		{"append", "append to it", file(func(p string) error { return openAndWrite(p, unix.O_WRONLY|unix.O_APPEND) })},
		{"write", "write to it", file(func(p string) error { return openAndWrite(p, unix.O_RDWR) })},
		{"empty", "truncate it by opening", file(func(p string) error { return openOnly(p, unix.O_RDONLY|unix.O_TRUNC) })},
		{"truncate", "truncate(2)", file(func(p string) error { return unix.Truncate(p, 0) })},
		{"descriptor", "open its descriptor again", file(func(p string) error { return reopenForWriting("", p, "") })},
		{"mode", "change its mode", file(func(p string) error { return unix.Chmod(p, 0o600) })},
		{"times", "set its times", file(func(p string) error { return unix.UtimesNanoAt(unix.AT_FDCWD, p, longAgo, 0) })},
		{"remove", "remove it", file(unix.Unlink)},
		{"rename", "rename it", file(func(p string) error { return unix.Rename(p, p+"-old") })},
		{"link", "write through a hard link", file(func(p string) error {
			onUndo(func() { os.Remove(p + "-alias") })
			if err := unix.Link(p, p+"-alias"); err != nil {
				return err
			}
			return openAndWrite(p+"-alias", unix.O_WRONLY|unix.O_APPEND)
		})},
		{"symlink", "write through a symbolic link", file(func(p string) error {
			onUndo(func() { os.Remove(p + "-way") })
			if err := os.Symlink(filepath.Base(p), p+"-way"); err != nil {
				return broken(err)
			}
			return openAndWrite(p+"-way", unix.O_WRONLY|unix.O_APPEND)
		})},
		{"replace", "rename another file onto it", besideIt(func(p, evil string) error { return unix.Rename(evil, p) })},
		{"exchange", "exchange it with another file", besideIt(swap)},
		{"linked", "link another file in its place", besideIt(func(p, evil string) error {
			if err := unix.Unlink(p); err != nil {
				return err
			}
			return unix.Link(evil, p)
		})},
		{"outwards", "move it into the workspace", file(func(p string) error {
			stolen, err := scratchFile("stolen")
			if err != nil {
				return err
			}
			return unix.Rename(p, stolen)
		})},
	}
	for i := range all {
		all[i].name = number + ":" + all[i].name
	}
	return all
}

// keptDirectory attacks the read-only directory.
func keptDirectory() []narrow {
	at := func(f func(hooks, d string) error) func(string, Fixtures) error {
		return func(d string, _ Fixtures) error { return f(filepath.Join(d, "hooks"), d) }
	}
	return []narrow{
		{"A903", "create a file in it", at(func(h, _ string) error {
			return openAndWrite(filepath.Join(h, "new"), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
		})},
		{"A904", "remove a file in it", at(func(h, _ string) error { return unix.Unlink(filepath.Join(h, "run")) })},
		{"A905", "write a file in it", at(func(h, _ string) error { return openAndWrite(filepath.Join(h, "run"), unix.O_WRONLY) })},
		{"A906", "move a file into it", at(func(h, d string) error {
			return with(d, func(evil string) error { return unix.Rename(evil, filepath.Join(h, "new")) })
		})},
		{"A907", "rename it and make another", at(func(h, d string) error {
			if err := unix.Rename(h, filepath.Join(d, "hooks-old")); err != nil {
				return err
			}
			return unix.Mkdir(h, 0o755)
		})},
		{"A908", "exchange it with another", at(func(h, d string) error {
			if _, err := beside(d, "other/run"); err != nil {
				return err
			}
			onUndo(func() { os.RemoveAll(filepath.Join(d, "other")) })
			return swap(h, filepath.Join(d, "other"))
		})},
		{"A909", "exchange it with a file", at(func(h, d string) error { return with(d, func(evil string) error { return swap(h, evil) }) })},
	}
}

// keptParent attacks by the directory that leads to what is narrower: the
// mount would follow it, and its old name would be free.
func keptParent() []narrow {
	return []narrow{
		{"A920", "rename the parent's parent and write a new file in its place", func(d string, _ Fixtures) error {
			if err := unix.Rename(filepath.Join(d, "sub"), filepath.Join(d, "sub-old")); err != nil {
				return err
			}
			_, err := beside(d, "sub/deep/settings.json")
			return err
		}},
		{"A921", "rename the parent", func(d string, _ Fixtures) error {
			return unix.Rename(filepath.Join(d, "sub/deep"), filepath.Join(d, "deep-old"))
		}},
		{"A922", "exchange the parent's parent with another directory", func(d string, _ Fixtures) error {
			if _, err := beside(d, "other/deep/settings.json"); err != nil {
				return err
			}
			onUndo(func() { os.RemoveAll(filepath.Join(d, "other")) })
			return swap(filepath.Join(d, "sub"), filepath.Join(d, "other"))
		}},
		{"A923", "move the parent into the workspace", func(d string, _ Fixtures) error {
			stolen, err := scratchFile("stolen")
			if err != nil {
				return err
			}
			return unix.Rename(filepath.Join(d, "sub"), stolen)
		}},
		{"A924", "rename the writable directory itself", func(d string, _ Fixtures) error { return unix.Rename(d, d+"-old") }},
	}
}

// closedPlaces read what is hidden in the writable directory.
func closedPlaces() []narrow {
	moved := func(from, to, then string) func(string, Fixtures) error {
		return func(d string, fx Fixtures) error {
			if err := unix.Rename(filepath.Join(d, from), filepath.Join(d, to)); err != nil {
				return err
			}
			return readToken(filepath.Join(d, then), fx)
		}
	}
	return []narrow{
		{"A940", "read the file", func(d string, fx Fixtures) error { return readToken(filepath.Join(d, "token"), fx) }},
		{"A941", "read a file in the directory", func(d string, fx Fixtures) error { return readToken(filepath.Join(d, "closed/token"), fx) }},
		{"A942", "list the directory", func(d string, _ Fixtures) error { return listed(filepath.Join(d, "closed"), "token") }},
		{"A943", "rename the file and read it", moved("token", "token-old", "token-old")},
		{"A944", "rename the directory and read in it", moved("closed", "closed-old", "closed-old/token")},
		{"A945", "rename the parent's parent and read", moved("sub", "sub-old", "sub-old/deep/token")},
		{"A946", "exchange the file with another and read it", func(d string, fx Fixtures) error {
			return with(d, func(evil string) error {
				if err := swap(filepath.Join(d, "token"), evil); err != nil {
					return err
				}
				return readToken(evil, fx)
			})
		}},
		{"A947", "read through a hard link", func(d string, fx Fixtures) error {
			alias := filepath.Join(d, "alias")
			onUndo(func() { os.Remove(alias) })
			if err := unix.Link(filepath.Join(d, "token"), alias); err != nil {
				return err
			}
			return readToken(alias, fx)
		}},
		{"A948", "replace the file", func(d string, _ Fixtures) error {
			return with(d, func(evil string) error { return unix.Rename(evil, filepath.Join(d, "token")) })
		}},
	}
}
