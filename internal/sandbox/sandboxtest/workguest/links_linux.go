package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// links writes through symbolic links of every kind.
func links([]string) {
	dir := workingDirectory()
	through("t1", "./t2", "sub/t3", dir+"/t6", "../"+dir[strings.LastIndex(dir, "/")+1:]+"/t8", "none/t9", "sub", "f/x", "/../../../.."+dir+"/t10")
	// In a workspace no link may lead so, for the host's programs follow it too.
	private, err := os.MkdirTemp("/tmp", "links-")
	must(err)
	must(os.Chdir(private))
	through("sub/../t4", "sub/deep/../../t5", "/proc/self/cwd/t7", "/")
	must(os.Chdir(dir))
	must(os.RemoveAll(private))
	must(os.Symlink("c2", "c1"))
	must(os.Symlink("c3", "c2"))
	say("create through two links", open("c1", create, 0o644))
	chain()
	must(os.Symlink("sub", "dirlink"))
	say("create below a link", open("dirlink/x", create, 0o644))
	say("rename a link", unix.Rename("dirlink", "moved"))
	say("mkdir below a link", unix.Mkdir("moved/y", 0o755))
	say("link to a link", unix.Link("c1", "hard"))
	say("link to what a link means", unix.Linkat(unix.AT_FDCWD, "c1", unix.AT_FDCWD, "hard2", unix.AT_SYMLINK_FOLLOW))
	list()
}

// through writes through links to targets in the working directory.
func through(targets ...string) {
	must(os.MkdirAll("sub/deep", 0o755))
	for i, target := range targets {
		link := fmt.Sprintf("l%d", i)
		must(os.Symlink(target, link))
		say("create through "+clean(target), open(link, create, 0o644))
		say("append through "+clean(target), open(link, create|unix.O_APPEND, 0o644))
		say("mkdir through "+clean(target), unix.Mkdir(link, 0o755))
		say("truncate through "+clean(target), unix.Truncate(link, 5))
	}
}

// chain finds how many links may be followed.
func chain() {
	for i := range 45 {
		must(os.Symlink(fmt.Sprintf("k%d", i+1), fmt.Sprintf("k%d", i)))
	}
	say("create through 46 links", open("k0", create, 0o644))
	say("create through 41 links", open("k4", create, 0o644))
	say("create through 40 links", open("k5", create, 0o644))
}

// dirfds names files relative to descriptors.
func dirfds([]string) {
	must(os.MkdirAll("d/e", 0o755))
	d, err := unix.Open("d", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(err)
	p, err := unix.Open("d/e", unix.O_PATH|unix.O_CLOEXEC, 0)
	must(err)
	say("create", openat(d, "x", create))
	say("create below a path descriptor", openat(p, "y", create))
	say("create above", openat(d, "../z", create))
	say("create by an absolute path", openat(d, workingDirectory()+"/abs", create))
	say("mkdir", unix.Mkdirat(d, "m", 0o755))
	say("symlink", unix.Symlinkat("x", p, "s"))
	say("link", unix.Linkat(d, "x", p, "h", 0))
	say("rename", unix.Renameat(d, "x", p, "r"))
	say("mknod", unix.Mknodat(p, "fifo", unix.S_IFIFO|0o600, 0))
	must(os.Rename("d", "renamed"))
	say("create after the directory was renamed", openat(d, "after", create))
	for label, resolve := range map[string]uint64{"beneath": unix.RESOLVE_BENEATH, "no links": unix.RESOLVE_NO_SYMLINKS, "no magic": unix.RESOLVE_NO_MAGICLINKS, "in root": unix.RESOLVE_IN_ROOT, "no crossing": unix.RESOLVE_NO_XDEV} {
		resolving(d, label, resolve)
	}
	unix.Close(d)
	say("create below a closed descriptor", openat(d, "x", create))
	list()
}

// resolving creates with each limit of openat2(2); the order of names does not
// matter for what is printed, as each has its own file.
func resolving(dir int, label string, resolve uint64) {
	results := make([]string, 0, 4)
	for _, p := range []string{"in", "../out", "e/s", workingDirectory() + "/abs2"} {
		fd, err := unix.Openat2(dir, p, &unix.OpenHow{Flags: create | unix.O_CLOEXEC, Mode: 0o600, Resolve: resolve})
		if err == nil {
			unix.Close(fd)
		}
		results = append(results, name(err))
	}
	must(os.WriteFile("openat2 "+label, []byte(strings.Join(results, " ")), 0o600))
}

// magic names files through /proc.
func magic([]string) {
	must(os.Mkdir("d", 0o755))
	write("f", "content")
	d, err := unix.Open("d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(err)
	f, err := unix.Open("f", unix.O_RDONLY, 0)
	must(err)
	w, err := unix.Open("gone", unix.O_RDWR|unix.O_CREAT, 0o600)
	must(err)
	must(unix.Unlink("gone"))
	cwd := workingDirectory()
	for i, p := range []string{fmt.Sprintf("/proc/self/fd/%d/a", d), fmt.Sprintf("/dev/fd/%d/b", d), "/proc/self/cwd/c", "/proc/thread-self/cwd/d0", fmt.Sprintf("/proc/%d/cwd/e", os.Getpid()), "/proc/self/root" + cwd + "/g", fmt.Sprintf("/proc/self/task/%d/cwd/h", os.Getpid())} {
		say(fmt.Sprintf("create by magic link %d", i), open(p, create, 0o644))
		say(fmt.Sprintf("mkdir by magic link %d", i), unix.Mkdir(p+"dir", 0o755))
	}
	say("open again for writing", open(fmt.Sprintf("/proc/self/fd/%d", f), unix.O_WRONLY, 0))
	say("open again, create", open(fmt.Sprintf("/proc/self/fd/%d", f), create, 0o600))
	say("open again, truncate", open(fmt.Sprintf("/dev/fd/%d", f), unix.O_WRONLY|unix.O_TRUNC, 0))
	say("open what is gone again", open(fmt.Sprintf("/proc/self/fd/%d", w), unix.O_RDWR, 0))
	say("open what is gone again, create", open(fmt.Sprintf("/proc/self/fd/%d", w), create, 0o600))
	say("truncate what is gone", unix.Truncate(fmt.Sprintf("/proc/self/fd/%d", w), 10))
	say("create below a file", open(fmt.Sprintf("/proc/self/fd/%d/x", f), create, 0o600))
	say("create a descriptor", open("/proc/self/fd/77", create, 0o600))
	pipes()
	list()
}

// pipes opens the ends of a pipe again by name.
func pipes() {
	var p [2]int
	must(unix.Pipe2(p[:], 0))
	say("open a pipe's end again", open(fmt.Sprintf("/proc/self/fd/%d", p[1]), unix.O_WRONLY, 0))
	say("open a pipe's end again, create", open(fmt.Sprintf("/dev/fd/%d", p[1]), create|unix.O_APPEND, 0o600))
	m, err := unix.MemfdCreate("m", unix.MFD_CLOEXEC)
	must(err)
	say("open a memory file again, create", open(fmt.Sprintf("/proc/self/fd/%d", m), unix.O_RDWR|unix.O_CREAT, 0o600))
	say("truncate a memory file", unix.Truncate(fmt.Sprintf("/proc/self/fd/%d", m), 100))
	must(unix.Mkfifo("fifo", 0o600))
	say("write to a fifo nobody reads", open("fifo", create|unix.O_NONBLOCK, 0o600))
	r, err := unix.Open("fifo", unix.O_RDONLY|unix.O_NONBLOCK, 0)
	must(err)
	say("write to a fifo somebody reads", open("fifo", create|unix.O_NONBLOCK, 0o600))
	unix.Close(r)
	say("/dev/null", open("/dev/null", create|unix.O_TRUNC, 0o644))
	say("/dev/full", open("/dev/full", create, 0o644))
	say("/dev/tty", open("/dev/tty", unix.O_RDWR|unix.O_CREAT, 0))
}

// directoryPerThread lets a thread have a working directory of its own.
func directoryPerThread([]string) {
	must(os.Mkdir("mine", 0o755))
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: no other goroutine may use this thread
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			done <- err
			return
		}
		if err := unix.Chdir("mine"); err != nil {
			done <- err
			return
		}
		unix.Umask(0)
		done <- open("x", create, 0o666)
	}()
	say("create in the thread's directory", <-done)
	say("create in the program's directory", open("x", create, 0o666))
	list()
}

// removedDirectory works where there is no directory any more.
func removedDirectory([]string) {
	must(os.Mkdir("gone", 0o755))
	must(os.Chdir("gone"))
	d, err := unix.Open(".", unix.O_RDONLY, 0)
	must(err)
	must(os.Remove("../gone"))
	say("create", open("x", create, 0o644))
	say("mkdir", unix.Mkdir("x", 0o755))
	say("symlink", unix.Symlink("y", "x"))
	say("create .", open(".", create, 0o644))
	say("create above", open("../y", create, 0o644))
	say("create below the descriptor", openat(d, "x", create))
	say("rename", unix.Rename("x", "y"))
	_, err = unix.Getcwd(make([]byte, 4096))
	say("getcwd", err)
}
