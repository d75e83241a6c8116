package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

// checkTime is the most a check may take.
const checkTime = 5 * time.Second

// self is how this program starts itself again.
const self = "/proc/self/exe"

// drive does one check in a process of its own, so that what kills it is an
// outcome too, and removes what it left in the workspace.
func drive(world *Fixtures, c Check) probe.Outcome {
	text, err := json.Marshal(world)
	if err != nil {
		return probe.Outcome{Name: c.Name, Outcome: probe.Failed, Detail: err.Error()}
	}
	_ = unix.Prctl(unix.PR_SET_PTRACER, ^uintptr(0), 0, 0, 0) // where Yama is, let a check try
	defer removeScratch(scratchDir(world))
	cmd := exec.Command(self, "-world", string(text), "-child", c.Name)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: !c.Terminal, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return probe.Outcome{Name: c.Name, Outcome: probe.Failed, Detail: "start: " + err.Error()}
	}
	timer := time.AfterFunc(checkTime, func() { cmd.Process.Kill() })
	err = cmd.Wait()
	return childOutcome(c, err, !timer.Stop(), out.Bytes(), errs.Bytes())
}

// childOutcome reads the child's answer, or what became of the child.
func childOutcome(c Check, err error, late bool, out, errs []byte) probe.Outcome {
	o := probe.Outcome{Name: c.Name, Outcome: probe.Failed}
	var exit *exec.ExitError
	switch {
	case late:
		o.Detail = fmt.Sprintf("still running after %v", checkTime)
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGSYS:
		o.Outcome, o.Errno = probe.Refused, probe.Killed
	case err != nil:
		o.Detail = fmt.Sprintf("%v: %.300s", err, errs)
	case json.Unmarshal(out, &o) != nil:
		o.Detail = fmt.Sprintf("no answer: %.300q", out)
	}
	return o
}

// scratch is a directory in the workspace that belongs to one check.
var scratch string

func scratchDir(world *Fixtures) string {
	return filepath.Join(world.Workspace, "scratch-"+world.Token)
}

// removeScratch removes the directory unless something is still mounted below
// it, whose contents are not ours to remove.
func removeScratch(dir string) {
	for _, m := range mountPoints() {
		if strings.HasPrefix(m.target, dir+"/") && unix.Unmount(m.target, unix.MNT_DETACH) != nil {
			return
		}
	}
	os.RemoveAll(dir)
}

// scratchFile returns a path in the scratch directory, which it makes.
func scratchFile(name string) (string, error) {
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return "", broken(err)
	}
	return filepath.Join(scratch, name), nil
}

// evilFile makes a file with the text of an attack.
func evilFile() (string, error) {
	p, err := scratchFile("evil")
	if err != nil {
		return "", err
	}
	return p, broken(os.WriteFile(p, []byte(probe.Evil), 0o755))
}

// undos take back what a refused check had to make outside of its scratch
// directory.
var undos []func()

func onUndo(f func()) { undos = append(undos, f) }

func undo() {
	for i := len(undos) - 1; i >= 0; i-- {
		undos[i]()
	}
}
