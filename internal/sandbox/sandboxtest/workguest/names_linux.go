package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const create = unix.O_CREAT | unix.O_WRONLY

// callErrors makes every mistake there is with names.
func callErrors([]string) {
	must(os.MkdirAll("d/full", 0o755))
	touch("f")
	must(os.Symlink("loop", "loop"))
	must(os.Symlink("f", "l"))
	must(os.Symlink("none", "dangling"))
	must(os.Mkdir("empty", 0o755))
	long := strings.Repeat("n", 256)
	for _, p := range []string{"none/x", "f/x", "loop", "loop/x", "d", ".", "..", "/", "", long, strings.Repeat("d/", 2100) + "x", "l/x", "dangling/x", "f/..", "f/.", "none/..", "none/../x", "d/../f/x"} {
		label := p
		if len(p) > 20 {
			label = fmt.Sprintf("%.3s… (%d)", p, len(p))
		}
		say("create "+label, open(p, create, 0o644))
		say("create exclusively "+label, open(p, create|unix.O_EXCL, 0o644))
		say("open for writing "+label, open(p, unix.O_RDWR, 0))
		say("truncate "+label, unix.Truncate(p, 0))
		say("mkdir "+label, unix.Mkdir(p, 0o755))
		say("mkfifo "+label, unix.Mkfifo(p, 0o644))
		say("symlink "+label, unix.Symlink("f", p))
		say("link "+label, unix.Link("f", p))
		say("rename f to "+label, unix.Rename("f", p))
		say("rename d to "+label, unix.Rename("d", p))
		say("rename to x from "+label, unix.Rename(p, "x"))
		if _, err := os.Lstat("x"); err == nil {
			must(os.Rename("x", p))
		}
	}
	callErrorsExisting()
	badArguments()
}

func callErrorsExisting() {
	say("create exclusively a link", open("l", create|unix.O_EXCL, 0o644))
	say("create exclusively a dangling link", open("dangling", create|unix.O_EXCL, 0o644))
	say("create, no follow", open("l", create|unix.O_NOFOLLOW, 0o644))
	say("create, no follow, dangling", open("dangling", create|unix.O_NOFOLLOW, 0o644))
	say("create a directory by open", open("newdir", create|unix.O_DIRECTORY, 0o755))
	say("open a file as directory", open("f", unix.O_RDONLY|unix.O_DIRECTORY, 0))
	say("rename a directory into itself", unix.Rename("d", "d/full/x"))
	say("rename a directory onto a full one", unix.Rename("empty", "d"))
	say("rename a directory onto a file", unix.Rename("empty", "f"))
	say("rename a file onto a directory", unix.Rename("f", "empty"))
	say("rename onto itself", unix.Rename("f", "f"))
	say("rename .", unix.Rename(".", "x"))
	say("rename ..", unix.Rename("..", "x"))
	say("rename across", unix.Rename("f", "/dev/shm/workguest-never"))
	say("link across", unix.Link("f", "/dev/shm/workguest-never"))
	say("link a directory", unix.Link("d", "dl"))
	say("rmdir full", unix.Rmdir("d"))
	say("rmdir .", unix.Rmdir("."))
	say("rmdir a file", unix.Rmdir("f"))
	say("unlink a directory", unix.Unlink("d"))
	say("rename without replacing", unix.Renameat2(unix.AT_FDCWD, "f", unix.AT_FDCWD, "l", unix.RENAME_NOREPLACE))
	say("exchange with none", unix.Renameat2(unix.AT_FDCWD, "f", unix.AT_FDCWD, "none", unix.RENAME_EXCHANGE))
	say("both at once", unix.Renameat2(unix.AT_FDCWD, "f", unix.AT_FDCWD, "l", unix.RENAME_EXCHANGE|unix.RENAME_NOREPLACE))
	say("exchange", unix.Renameat2(unix.AT_FDCWD, "f", unix.AT_FDCWD, "d", unix.RENAME_EXCHANGE))
	say("exchange back", unix.Renameat2(unix.AT_FDCWD, "f", unix.AT_FDCWD, "d", unix.RENAME_EXCHANGE))
	say("mknod of a file", unix.Mknod("made", unix.S_IFREG|0o640, 0))
	say("mknod of a directory", unix.Mknod("madedir", unix.S_IFDIR|0o640, 0))
	say("truncate to less than nothing", unix.Truncate("f", -1))
}

// badArguments passes what no program means to pass.
func badArguments() {
	bad := uintptr(8)
	_, _, e := unix.Syscall6(unix.SYS_OPENAT, at(unix.AT_FDCWD), bad, create, 0o644, 0, 0)
	say("create a bad address", e)
	_, _, e = unix.Syscall(unix.SYS_MKDIRAT, at(unix.AT_FDCWD), bad, 0o755)
	say("mkdir a bad address", e)
	_, _, e = unix.Syscall6(unix.SYS_RENAMEAT2, at(unix.AT_FDCWD), bad, at(unix.AT_FDCWD), bad, 0, 0)
	say("rename bad addresses", e)
	say("create below a bad descriptor", openat(999, "x", create))
	say("create below standard input", openat(0, "x", create))
	say("absolute path below a bad descriptor", openat(999, "/proc/self/none", create))
	_, err := unix.Openat2(unix.AT_FDCWD, "x", &unix.OpenHow{Flags: create, Mode: 1 << 40})
	say("openat2 with a bad mode", err)
	_, err = unix.Openat2(unix.AT_FDCWD, "x", &unix.OpenHow{Flags: 1 << 50})
	say("openat2 with a bad flag", err)
	how := unix.OpenHow{Flags: create, Mode: 0o644}
	_, _, e = unix.Syscall6(unix.SYS_OPENAT2, at(unix.AT_FDCWD), uintptr(unsafe.Pointer(unsafe.StringData("x\x00"))), uintptr(unsafe.Pointer(&how)), 8, 0, 0)
	say("openat2 with a short structure", e)
	page := atPageEnd("pageend")
	_, _, e = unix.Syscall6(unix.SYS_OPENAT, at(unix.AT_FDCWD), page, create, 0o644, 0, 0)
	say("create a name at the end of a page", fail(e))
}

func fail(e unix.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}

func at(fd int) uintptr { return uintptr(fd) }

// atPageEnd puts a name right before memory that can't be read.
func atPageEnd(s string) uintptr {
	size := os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, 2*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	must(err)
	must(unix.Mprotect(mem[size:], unix.PROT_NONE))
	from := size - len(s) - 1
	copy(mem[from:], s)
	return uintptr(unsafe.Pointer(&mem[from]))
}

func openat(dir int, path string, flags int) error {
	fd, err := unix.Openat(dir, path, flags|unix.O_CLOEXEC, 0o644)
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

// slashes puts slashes and dots at the ends of names.
func slashes([]string) {
	touch("f")
	must(os.Mkdir("d", 0o755))
	must(os.Symlink("d", "l"))
	must(os.Symlink("none", "dangling"))
	for _, p := range []string{"f/", "f//", "f/.", "f/./", "d/", "d/.", "d/..", "l/", "l/.", "dangling/", "new/", "new/.", "new//", ".//new2", "./d/./new3", "d/../new4", "l/new5", "l/../new6", "//" + workingDirectory() + "//new7"} {
		say("create "+clean(p), open(p, create, 0o644))
		say("open "+clean(p), open(p, unix.O_RDONLY, 0))
		say("mkdir "+clean(p), unix.Mkdir(p, 0o755))
		say("symlink "+clean(p), unix.Symlink("x", p))
		say("mkfifo "+clean(p), unix.Mkfifo(p, 0o644))
		say("link "+clean(p), unix.Link("f", p))
		say("rename to "+clean(p), unix.Rename("f", p))
		if _, err := os.Lstat("f"); err != nil {
			must(os.Rename(p, "f"))
		}
	}
	say("mkdir with a slash", unix.Mkdir("m/", 0o755))
	say("rename both with slashes", unix.Rename("m/", "n/"))
	say("rename to a slash", unix.Rename("n", "o//"))
	say("rename a file with a slash", unix.Rename("f/", "g"))
	say("rename a link with a slash", unix.Rename("l/", "g"))
	say("rmdir with a slash", unix.Rmdir("o/"))
	list()
}

func workingDirectory() string {
	dir, err := os.Getwd()
	must(err)
	return dir
}

func clean(s string) string { return strings.ReplaceAll(s, workingDirectory(), "WORK") }

// list prints what is there.
func list() {
	must(filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err == nil {
			fmt.Println(path, d.Type())
		}
		return err
	}))
}
