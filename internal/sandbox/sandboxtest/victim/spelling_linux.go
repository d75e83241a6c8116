package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A spelling is another way to write an absolute path. It may prepare
// something, and it may leave the path relative to the directory it changes
// to.
type spelling struct {
	id, why string
	of      func(p string) (string, error)
	magic   bool // through one of /proc's links
}

// spellings are the ways around a rule that compares text.
func spellings() []spelling {
	plain := func(f func(p string) string) func(string) (string, error) {
		return func(p string) (string, error) { return f(p), nil }
	}
	return []spelling{
		{"root", "through /proc/self/root", plain(func(p string) string { return "/proc/self/root" + p }), true},
		{"thread-root", "through /proc/thread-self/root", plain(func(p string) string { return "/proc/thread-self/root" + p }), true},
		{"cwd", "through /proc/self/cwd", viaCwd, true},
		{"cwd-up", "through /proc/self/cwd and ..", plain(func(p string) string { return "/proc/self/cwd/" + up(p) }), true},
		{"slashes", "with doubled slashes", plain(func(p string) string { return strings.ReplaceAll(p, "/", "//") }), false},
		{"dots", "with dots in it", plain(func(p string) string {
			return filepath.Dir(p) + "/./../" + filepath.Base(filepath.Dir(p)) + "/" + filepath.Base(p)
		}), false},
		{"up", "up from the working directory", plain(up), false},
		{"past-root", "further up than the root", plain(func(p string) string { return "/../../.." + p }), false},
		{"symlink", "through a symbolic link to it", viaLink, false},
		{"dirlink", "through a symbolic link to its directory", viaDirLink, false},
		{"chain", "through a link to a link", viaChain, false},
		{"fd", "through /proc/self/fd and a directory's descriptor", viaDescriptor, true},
		{"chdir", "from inside its directory", viaChdir, false},
	}
}

// up writes p relative to the working directory.
func up(p string) string {
	wd, err := os.Getwd()
	if err != nil {
		return p
	}
	rel, err := filepath.Rel(wd, p)
	if err != nil {
		return p
	}
	return rel
}

func viaCwd(p string) (string, error) {
	rest, err := viaChdir(p)
	return "/proc/self/cwd/" + rest, err
}

func viaChdir(p string) (string, error) {
	return filepath.Base(p), unix.Chdir(filepath.Dir(p))
}

func viaLink(p string) (string, error) {
	link, err := scratchFile("link")
	if err != nil {
		return "", err
	}
	return linkAnywhere(p, link)
}

// linkAnywhere makes a link to p, or where a sandbox refuses that in the workspace,
// in a place that no program of the host comes by.
func linkAnywhere(p, link string) (string, error) {
	err := os.Symlink(p, link)
	if !errors.Is(err, unix.EACCES) {
		return link, broken(err)
	}
	dir, err := os.MkdirTemp("/tmp", "links-")
	if err != nil {
		return "", broken(err)
	}
	onUndo(func() { os.RemoveAll(dir) })
	link = filepath.Join(dir, filepath.Base(link))
	return link, broken(os.Symlink(p, link))
}

func viaDirLink(p string) (string, error) {
	link, err := viaLink(filepath.Dir(p))
	return filepath.Join(link, filepath.Base(p)), err
}

func viaChain(p string) (string, error) {
	first, err := viaLink(p)
	if err != nil {
		return "", err
	}
	second := filepath.Join(filepath.Dir(first), "second")
	return second, broken(os.Symlink(filepath.Base(first), second))
}

func viaDescriptor(p string) (string, error) {
	fd, err := unix.Open(filepath.Dir(p), unix.O_PATH|unix.O_DIRECTORY, 0)
	return fdPath(fd) + "/" + filepath.Base(p), err
}

// spelled makes one check for every spelling.
func spelled(list []spelling, name, why string, c Check, do func(p string) error, target func(fx Fixtures) string) []Check {
	out := make([]Check, 0, len(list))
	for _, s := range list {
		one := c
		one.Name, one.Why = name+":"+s.id, why+" "+s.why
		if s.magic {
			one.Want = append([]errno{unix.ELOOP, unix.ENOENT}, c.Want...)
		}
		one.Do = func(fx Fixtures) error {
			p, err := s.of(target(fx))
			if err != nil {
				return err
			}
			return do(p)
		}
		out = append(out, one)
	}
	return out
}

// spelledWrites create and change a file outside by other spellings.
func spelledWrites() []Check {
	canary := func(fx Fixtures) string { return filepath.Join(fx.Out, "canary") }
	fresh := func(fx Fixtures) string { return filepath.Join(fx.Out, "new-"+fx.Token) }
	appendTo := func(p string) error { return openAndWrite(p, unix.O_WRONLY|unix.O_APPEND) }
	c := Check{Family: "fs-write", Want: writeRefused, Changes: true}
	list := spelled(spellings(), "A170", "create a file of the host", c, writeNew, fresh)
	list = append(list, spelled(spellings(), "A171", "append to a file of the host", c, appendTo, canary)...)
	e017, e005 := c, c
	e017.Name, e017.Why, e017.Want = "E017", "the prefix /proc/self/root must not bypass a rule", magicRefused
	e017.Do = func(fx Fixtures) error { return writeNew("/proc/self/root" + fx.Out + "/viaroot") }
	e005.Name, e005.Why = "E005", "a symbolic link made inside leads outside"
	e005.Do = func(fx Fixtures) error {
		p, err := viaDirLink(filepath.Join(fx.Out, "via_symlink"))
		if err != nil {
			return err
		}
		return writeNew(p)
	}
	return append(list, e017, e005)
}
