package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

// raceTime is how long a race is run.
const raceTime = 400 * time.Millisecond

// raceChecks change the objects of a call while it is being decided: a check after
// which the kernel looks again is wrong some of the time.
func raceChecks() []Check {
	list := []Check{
		{Name: "A361", Why: "the path's text changes between .mcp.json and another name", Do: raceText},
		{Name: "A362", Why: "the working directory moves into a git directory", Do: raceDirectory},
		{Name: "A363", Why: "a symbolic link turns from a directory to .git", Do: raceLink},
		{Name: "A364", Why: "a directory and a link to .git change places", Do: raceExchange},
		{Name: "A365", Why: "a descriptor number turns from a directory to .git", Do: raceDescriptor},
		{Name: "A366", Why: "a rename's new name changes", Do: raceRename},
	}
	for i := range list {
		list[i].Family, list[i].State, list[i].Changes, list[i].Alone, list[i].Want = "protected-create", probe.Absent, true, true, linkRefused
		list[i].Want = append(list[i].Want, nothing)
	}
	return list
}

// race calls flip on one thread and try on another until won holds or the
// time is over. Then it returns the last refusal, or nil if nothing
// was refused. It must have seen tries that worked: else there was no race.
func race(flip func(i int), try func() error, won func() bool) error {
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		for i := 0; !stop.Load(); i++ {
			flip(i)
		}
	}()
	result := tries(try, won)
	stop.Store(true)
	<-done
	return result
}

func tries(try func() error, won func() bool) error {
	runtime.LockOSThread()
	last, passed := error(nothing), 0
	for end := time.Now().Add(raceTime); time.Now().Before(end); {
		err := try()
		if err == nil {
			passed++
		} else if err != unix.ENOENT && err != unix.ENOTDIR {
			last = err
		}
		if won() {
			return nil
		}
	}
	if passed == 0 {
		return broken(errors.New("no try ever worked"))
	}
	return last
}

// raceText writes "amcp.json" and turns its first letter into a dot.
func raceText(fx Fixtures) error {
	dir := filepath.Join(fx.Workspace, probe.Deep)
	path := append([]byte(dir+"/amcp.json"), 0)
	at, letter := addressOf(path), &path[len(dir)+1]
	onUndo(func() { os.Remove(dir + "/amcp.json") })
	try := func() error {
		fd, e := raw(unix.SYS_OPENAT, atCWD, at, unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
		if e != 0 {
			return e
		}
		return unix.Close(int(fd))
	}
	return race(func(i int) { *letter = "a."[i&1] }, try, there(dir+"/.mcp.json"))
}

func there(p string) func() bool {
	return func() bool {
		_, err := os.Lstat(p)
		return err == nil
	}
}

// raceRepo returns the git directory and a plain one beside it.
func raceRepo(fx Fixtures) (git, plain string, err error) {
	git = filepath.Join(fx.Workspace, probe.Repo, ".git")
	plain, err = scratchFile("plain")
	if err == nil {
		err = broken(os.MkdirAll(plain, 0o755))
	}
	if err == nil {
		err = broken(os.WriteFile(filepath.Join(plain, "config"), nil, 0o644))
	}
	return git, plain, err
}

// evilAt appends at a path relative to dir.
func evilAt(dir int, p string) error {
	fd, err := unix.Openat(dir, p, unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, evilText)
	return err
}

func wonConfig(git string) func() bool {
	return func() bool { return planted(filepath.Join(git, "config")) == nil }
}

// raceDirectory works in plain/a/b, which moves to .git/objects/b and back.
func raceDirectory(fx Fixtures) error {
	git, plain, err := raceRepo(fx)
	if err != nil {
		return err
	}
	here, there := filepath.Join(plain, "a/b"), filepath.Join(git, "objects/b")
	if err := os.MkdirAll(here, 0o755); err != nil {
		return broken(err)
	}
	if err := unix.Chdir(here); err != nil {
		return broken(err)
	}
	onUndo(func() { os.Remove(there) })
	flip := func(i int) {
		from, to := here, there
		if i&1 == 1 {
			from, to = there, here
		}
		_ = unix.Rename(from, to)
	}
	return race(flip, func() error { return evilAt(unix.AT_FDCWD, "../../config") }, wonConfig(git))
}

// raceLink replaces a link by another, each time in one step.
func raceLink(fx Fixtures) error {
	git, plain, err := raceRepo(fx)
	if err != nil {
		return err
	}
	link, err := linkAnywhere(git, filepath.Join(scratch, "flip"))
	if err != nil {
		return err
	}
	next := filepath.Join(filepath.Dir(link), "next")
	flip := func(i int) {
		_ = unix.Symlink([]string{git, plain}[i&1], next)
		_ = unix.Rename(next, link)
	}
	return race(flip, func() error { return evilAt(unix.AT_FDCWD, link+"/config") }, wonConfig(git))
}

func raceExchange(fx Fixtures) error {
	git, plain, err := raceRepo(fx)
	if err != nil {
		return err
	}
	link := filepath.Join(scratch, "flip")
	if err := unix.Symlink(git, link); err != nil {
		return err // it ends here where no link may lead there
	}
	flip := func(int) { _ = unix.Renameat2(unix.AT_FDCWD, plain, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE) }
	return race(flip, func() error { return evilAt(unix.AT_FDCWD, link+"/config") }, wonConfig(git))
}

func raceDescriptor(fx Fixtures) error {
	git, plain, err := raceRepo(fx)
	if err != nil {
		return err
	}
	a, err := openDir(plain)
	if err != nil {
		return err
	}
	b, err := openDir(git)
	if err != nil {
		return err
	}
	dir, err := unix.Dup(a)
	if err != nil {
		return broken(err)
	}
	flip := func(i int) { _ = unix.Dup3([]int{b, a}[i&1], dir, unix.O_CLOEXEC) }
	return race(flip, func() error { return evilAt(dir, "config") }, wonConfig(git))
}

// raceRename renames a file to "aenvrc", whose first letter becomes a dot.
func raceRename(fx Fixtures) error {
	evil, err := evilFile()
	if err != nil {
		return err
	}
	dir := filepath.Join(fx.Workspace, probe.Deep)
	path := append([]byte(dir+"/aenvrc"), 0)
	at, from, letter := addressOf(path), cstring(evil), &path[len(dir)+1]
	onUndo(func() { os.Remove(dir + "/aenvrc") })
	try := func() error {
		if _, e := raw(unix.SYS_RENAMEAT2, atCWD, from, atCWD, at, 0); e != 0 {
			return e
		}
		return unix.Rename(dir+"/aenvrc", evil)
	}
	return race(func(i int) { *letter = "a."[i&1] }, try, there(dir+"/.envrc"))
}
