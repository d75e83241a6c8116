package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

// atOnce is how many checks one process does at most: few enough that what they
// leave open does not fill its table of descriptors.
const atOnce = 40

// simple reports whether a check asks for files alone, by calls that change
// nothing of its process but the working directory, so that others may follow.
func simple(c Check) bool {
	return !c.Terminal && !c.Alone && (c.Family == "credentials" || strings.HasPrefix(c.Family, "fs-") || strings.HasPrefix(c.Family, "protected-"))
}

// runTogether does all checks; simple ones share a process, as starting one takes
// longer than most of them. The caller repeats a failed check alone. That the checks
// do not disturb each other is shown by TestNoSandboxFails, where the same ones
// share.
func runTogether(world *Fixtures, list []Check) error {
	for len(list) > 0 {
		n := 1
		for simple(list[0]) && n < min(len(list), atOnce) && simple(list[n]) {
			n++
		}
		var outcomes []probe.Outcome
		if n > 1 {
			outcomes = driveTogether(world, list[:n])
		} else {
			outcomes = append(outcomes, drive(world, list[0]))
		}
		for _, o := range outcomes {
			if err := print(o); err != nil {
				return err
			}
		}
		list = list[len(outcomes):]
	}
	return nil
}

// driveTogether runs the checks in one process and returns the outcomes: of
// all, or up to the check that ended it.
func driveTogether(world *Fixtures, list []Check) (outcomes []probe.Outcome) {
	text, err := json.Marshal(world)
	if err != nil {
		return []probe.Outcome{{Name: list[0].Name, Outcome: probe.Failed, Detail: err.Error()}}
	}
	defer removeScratch(scratchDir(world))
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.Name
	}
	cmd := exec.Command(self, append([]string{"-world", string(text), "-children"}, names...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return []probe.Outcome{{Name: list[0].Name, Outcome: probe.Failed, Detail: "start: " + err.Error()}}
	}
	timer := time.AfterFunc(time.Duration(len(list))*checkTime/4, func() { cmd.Process.Kill() })
	err = cmd.Wait()
	late := !timer.Stop()
	for d := json.NewDecoder(&out); len(outcomes) < len(list); {
		var o probe.Outcome
		if d.Decode(&o) != nil {
			return append(outcomes, childOutcome(list[len(outcomes)], err, late, nil, errs.Bytes()))
		}
		outcomes = append(outcomes, o)
	}
	return outcomes
}

// runChildren is the process that does them.
func runChildren(world *Fixtures, names []string) error {
	all := checks()
	for _, name := range names {
		if err := runNext(world, all[slices.IndexFunc(all, func(c Check) bool { return c.Name == name })]); err != nil {
			return err
		}
	}
	return nil
}

// runNext does one check after others.
func runNext(world *Fixtures, c Check) error {
	scratch, undos = scratchDir(world), nil
	err := c.Do(*world)
	if err != nil {
		undo()
	}
	if err := unix.Chdir(world.Workspace); err != nil {
		return err
	}
	removeScratch(scratch)
	return print(c.judge(err))
}

// serveChecks does the checks that a reader names, one after the other.
func serveChecks(r io.Reader) error {
	all := checks()
	for d := json.NewDecoder(r); ; {
		var a probe.Ask
		if err := d.Decode(&a); err != nil {
			return nil // the asking process has ended
		}
		i := slices.IndexFunc(all, func(c Check) bool { return c.Name == a.Name })
		if i < 0 || !simple(all[i]) {
			return fmt.Errorf("%q is no check that shares a process", a.Name)
		}
		if err := runNext(&a.World, all[i]); err != nil {
			return err
		}
	}
}
