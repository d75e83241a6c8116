// Workguest does pieces of ordinary work call by call and prints what came of
// each. Package sandboxtest runs it unsandboxed and inside a sandbox and compares.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var work = map[string]func(args []string){
	"errors": callErrors, "slashes": slashes, "links": links, "dirfds": dirfds, "magic": magic, "descriptors": descriptors,
	"modes": modes, "renames": renames, "exclusive": exclusive, "tmpfile": tmpfile, "sparse": sparse, "mmap": mapped,
	"locks": locks, "attributes": attributes, "watch": watch, "sockets": sockets, "abstract": abstract, "network": network,
	"passing": passing, "storm": storm, "many": many, "interrupted": interrupted, "threads": threads, "killed": killed,
	"replace": replace, "calls": calls, "directory-per-thread": directoryPerThread, "removed-directory": removedDirectory,
	"child": child,
}

func main() {
	if len(os.Args) < 2 || work[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "workguest: want the name of a piece of work")
		os.Exit(2)
	}
	work[os.Args[1]](os.Args[2:])
}

// say prints what came of a call: the name of the error number, or "ok".
func say(what string, err error) {
	fmt.Printf("%s: %s\n", what, name(err))
}

func name(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// must ends the program: what follows would make no sense.
func must(err error) {
	if err != nil {
		_, _, line, _ := runtime.Caller(1)
		fmt.Printf("line %d: %v\n", line, err)
		os.Exit(1)
	}
}

// open opens and closes, since only the error counts.
func open(path string, flags int, mode uint32) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, mode)
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

func touch(path string) { must(open(path, unix.O_CREAT|unix.O_WRONLY, 0o644)) }
func write(path, text string) {
	must(os.WriteFile(path, []byte(text), 0o644))
}

// self starts this program again.
func self(args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}

// childWork is what self("child", …) does.
var childWork = map[string]func(args []string){
	"exclusive": func(a []string) {
		if open(a[0], create|unix.O_EXCL, 0o600) != nil {
			os.Exit(1)
		}
	},
	"flock": func(a []string) {
		fd, err := unix.Open(a[0], unix.O_RDWR, 0)
		must(err)
		say("child's flock", unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB))
		l := unix.Flock_t{Type: unix.F_WRLCK, Len: 1}
		say("child's record lock", unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &l))
		say("child's record lock of the open file", unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &l))
	},
	"rename": func(a []string) { renameForever(a[0]) },
	"dial":   func(a []string) { dial(a[0], a[1]) },
	"create": func(a []string) { createForever(a[0]) },
	"cat":    func(a []string) { b, err := os.ReadFile(a[0]); must(err); fmt.Printf("child read %q\n", b) },
	"sleep":  func([]string) { time.Sleep(time.Minute) },
}

func child(args []string) {
	f := childWork[args[0]]
	if f == nil {
		fmt.Println("no such child:", strings.Join(args, " "))
		os.Exit(2)
	}
	f(args[1:])
}
