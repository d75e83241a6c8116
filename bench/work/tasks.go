package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn/bench/measure"
)

// A task is a piece of ordinary work. It runs in the workspace it is for.
type task struct {
	name    string
	where   string       // name of its fixture
	argv    []string     // a program, or
	do      func() error // something this program does itself
	prepare func() error // before each run, outside the sandbox and not timed
	long    bool         // runs -cold times
	most    int          // runs at most so often, or 0
	goal    float64      // times bare, or 0
}

// files is how many the tasks about files handle, in directories of 100.
const files = 10_000

var tasks = []task{
	{name: "git status, 20,000 files", where: "repository", argv: []string{"git", "status", "--porcelain"}, goal: 1.03},
	{name: "go build, warm cache", where: "module", argv: []string{"go", "build", "-o", "app", "."}, goal: 1.03},
	{name: "go build, cold cache", where: "module", argv: []string{"go", "build", "-o", "app", "."}, prepare: forgetBuild, long: true, goal: 1.03},
	{name: "create 10,000 files", where: "files", do: create, prepare: setAside, most: 8},
	{name: "stat 10,000 files", where: "files", do: stat},
	{name: "read 10,000 files", where: "files", do: read},
	{name: "unlink 10,000 files", where: "files", do: unlink, prepare: relink},
	{name: "node -e 0", where: "files", argv: []string{"node", "-e", "0"}},
	{name: "make, one rule", where: "files", argv: []string{"make", "-s"}},
}

func find(name string) (task, error) {
	for _, t := range tasks {
		if t.name == name {
			return t, nil
		}
	}
	return task{}, fmt.Errorf("no task %q", name)
}

func (t task) installed() bool {
	if t.argv == nil {
		return true
	}
	_, err := exec.LookPath(t.argv[0])
	return err == nil
}

// rounds is how often the task runs, without the warm-up.
func (t task) rounds(o *options) int {
	switch {
	case t.long:
		return o.cold
	case t.most > 0:
		return min(o.rounds, t.most)
	}
	return o.rounds
}

// environ is the environment of every task beside the user's. Caches are in the
// workspace, so that the unsandboxed run and the guest write to the same file
// system.
func environ(workspace string) []string {
	return []string{"GOCACHE=" + filepath.Join(workspace, ".gocache"), "GOTMPDIR=" + filepath.Join(workspace, ".gotmp")}
}

// run runs the task in the current directory.
func (t task) run() (measure.Sample, error) {
	if t.do != nil {
		return timed(t.do)
	}
	dir, err := os.Getwd()
	if err != nil {
		return measure.Sample{}, err
	}
	cmd := exec.Command(t.argv[0], t.argv[1:]...)
	cmd.Env, cmd.Stderr = append(cmd.Environ(), environ(dir)...), os.Stderr
	return measure.Run(cmd)
}

// timed runs f and returns its time and what this process worked meanwhile.
func timed(f func() error) (measure.Sample, error) {
	cpu := worked()
	began := time.Now()
	err := f()
	return measure.Sample{Wall: time.Since(began), CPU: worked() - cpu}, err
}

func worked() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// forgetBuild removes all that an earlier build left.
func forgetBuild() error { return errors.Join(os.RemoveAll(".gocache"), os.RemoveAll("app")) }

// each calls f with the name of every file below dir.
func each(dir string, f func(name string) error) error {
	for i := range files {
		if err := f(fmt.Sprintf("%s/%03d/file-%05d.txt", dir, i/100, i)); err != nil {
			return err
		}
	}
	return nil
}

// mkdirs makes the directories in which each finds its files.
func mkdirs(dir string) error {
	for i := range files / 100 {
		if err := os.MkdirAll(fmt.Sprintf("%s/%03d", dir, i), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// content is what a small source file holds, more or less.
var content = make([]byte, 1000)

func writeFiles(dir string) error {
	return errors.Join(mkdirs(dir), each(dir, func(name string) error { return os.WriteFile(name, content, 0o644) }))
}

func create() error { return writeFiles("new") }

// setAside moves what create made out of the way. It removes nothing: for some
// minutes ext4 avoids the inodes of removed files. Looking for others takes it
// up to ten times as long as the rest of a creation.
func setAside() error {
	if _, err := os.Stat("new"); err != nil {
		return nil
	}
	return os.Rename("new", fmt.Sprintf("old/%d", time.Now().UnixNano()))
}

func stat() error {
	return each("kept", func(name string) error { _, err := os.Lstat(name); return err })
}

func read() error {
	return each("kept", func(name string) error { _, err := os.ReadFile(name); return err })
}

// relink makes the links that unlink removes. The inodes stay: see setAside.
func relink() error {
	return errors.Join(mkdirs("links"), each("links", func(name string) error {
		err := os.Link("kept"+strings.TrimPrefix(name, "links"), name)
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}))
}

func unlink() error { return each("links", os.Remove) }
