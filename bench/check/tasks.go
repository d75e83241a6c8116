package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/bawn-dev/bawn/bench/measure"
)

// A question asks a driver for tasks by name.
type question struct {
	Tasks []string `json:"tasks"`
	Port  string   `json:"port"` // of the greeter
}

// port is the greeter's, in a driver.
var port string

// A task is a piece of work in the driver's directory. They come one after the other:
// each finds what those before it have left.
type task struct {
	name string
	do   func() error
}

// files is how many files a task is about, in directories of 100.
const files = 1000

var tasks = []task{
	{"connect and first byte", func() error { return each(200, func(int) error { return connect(port) }) }},
	{"mkdir", func() error { return each(200, func(i int) error { return os.Mkdir(fmt.Sprintf("d%d", i), 0o755) }) }},
	{"create", func() error { return each(files, func(i int) error { return create(name(i, "f")) }) }},
	{"open and write", func() error {
		return each(files, func(i int) error { return os.WriteFile(name(i, "f"), []byte("x"), 0o644) })
	}},
	{"rename", func() error {
		return each(files, func(i int) error { return os.Rename(name(i, "f"), name(i, "g")) })
	}},
	{"rename over", func() error {
		return each(files/2, func(i int) error { return os.Rename(name(2*i, "g"), name(2*i+1, "g")) })
	}},
	{"link", func() error {
		return each(files/2, func(i int) error { return os.Link(name(2*i+1, "g"), name(2*i, "g")) })
	}},
	{"symlink", func() error {
		return each(200, func(i int) error { return os.Symlink("g", fmt.Sprintf("d%d/s", i)) })
	}},
	{"unlink", func() error { return each(files, func(i int) error { return os.Remove(name(i, "g")) }) }},
	{"rm -rf of directories", command("rm -rf d*")},
	{"untar", command("tar xf src.tar")},
	{"cp -r", command("cp -r src copy")},
	{"rm -rf", command("rm -rf src copy")},
	{"git init, add, commit", command("mkdir r && cd r && tar xf ../src.tar && git init -q && git add -A && git -c user.name=a -c user.email=a@b.c commit -qm x")},
	{"rm -rf of a repository", command("rm -rf r")},
}

func names() (list []string) {
	for _, t := range tasks {
		list = append(list, t.name)
	}
	return list
}

func name(i int, kind string) string { return fmt.Sprintf("d%d/%s%d", i/100, kind, i) }

func each(n int, do func(i int) error) error {
	for i := range n {
		if err := do(i); err != nil {
			return err
		}
	}
	return nil
}

func create(name string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

func command(line string) func() error {
	return func() error {
		cmd := exec.Command("/bin/sh", "-c", line)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", line, err, out)
		}
		return nil
	}
}

// answer runs the tasks, which need one another, as far as the last one that is asked
// for, and returns what those took.
func (q question) answer() (map[string]measure.Sample, error) {
	port = q.Port
	if err := errors.Join(command("rm -rf d* src copy r")(), archive()); err != nil {
		return nil, err
	}
	took := map[string]measure.Sample{}
	for _, t := range q.needed() {
		began := time.Now()
		if err := t.do(); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		if slices.Contains(q.Tasks, t.name) {
			took[t.name] = measure.Sample{Wall: time.Since(began)}
		}
	}
	return took, nil
}

// needed are the tasks up to the last one that is asked for.
func (q question) needed() []task {
	last := len(tasks)
	for last > 0 && !slices.Contains(q.Tasks, tasks[last-1].name) {
		last--
	}
	return tasks[:last]
}

// archive makes what untar takes: 1,700 small files in 120 directories.
func archive() error {
	if _, err := os.Stat("src.tar"); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return command(`mkdir src && cd src && i=0 && while [ $i -lt 120 ]; do mkdir -p p$((i/10))/q$i; j=0; while [ $j -lt 14 ]; do echo "file $i $j of a package" >p$((i/10))/q$i/f$j.c; j=$((j+1)); done; i=$((i+1)); done; cd .. && tar cf src.tar src && rm -rf src`)()
}
