package main

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

// Fixtures are what the harness tells of the world outside.
type Fixtures = probe.World

// errno is a system call's error, or one of the two below.
type errno = unix.Errno

const (
	nothing errno = 1<<16 + iota // the call worked, and there was nothing behind it
	killed                       // by a system call filter
)

// A Check is one operation and its expected outcome.
type Check struct {
	Name   string // number in the probe catalogue, or A followed by a number of ours; a target may follow a colon
	Family string
	Why    string // what would be lost if it worked
	// Do performs the operation: nil means that it worked, an errno that it
	// was refused, any other error that the check itself failed.
	Do   func(fx Fixtures) error
	Want []errno // the refusals that count
	// Works says that the operation must work inside as well.
	Works bool
	// Unavailable are refusals by which a machine without a sandbox says that
	// it does not have what is asked for.
	Unavailable []errno
	NoControl   string // why it can't be done without a sandbox
	RootOnly    bool   // every kernel refuses it to an ordinary user
	Changes     bool   // if it works, the host's files differ afterwards
	Terminal    bool   // keep the session of the process that starts us
	Alone       bool   // in a process of its own: what others left in theirs would spoil it
	State       string // of the workspace; "" is probe.Present
	Git         string // git directory that is attacked, below the workspace
}

// Refusals by kind of operation. What else the kernel may say would mean that
// the check missed its target.
var (
	writeRefused = []errno{unix.EROFS, unix.EACCES, unix.EPERM}
	// A provider that resolves paths itself may refuse to follow /proc's links
	// (ELOOP) or know no /proc/self (ENOENT). The check with the plain name
	// shows that the target exists.
	magicRefused  = []errno{unix.EROFS, unix.EACCES, unix.EPERM, unix.ELOOP, unix.ENOENT}
	linkRefused   = []errno{unix.EROFS, unix.EACCES, unix.EPERM, unix.EXDEV, unix.EBUSY}
	hiddenRefused = []errno{unix.ENOENT, unix.EACCES, unix.EPERM, nothing}
	callRefused   = []errno{unix.EPERM, unix.ENOSYS, killed}
	procRefused   = []errno{unix.ESRCH, unix.EPERM, unix.EACCES, unix.ENOENT}
)

func (c Check) state() string {
	if c.State == "" {
		return probe.Present
	}
	return c.State
}

func (c Check) info() probe.Info {
	return probe.Info{
		Name: c.Name, Family: c.Family, State: c.state(), Why: c.Why, Want: errnoNames(c.Want), Works: c.Works,
		Unavailable: errnoNames(c.Unavailable), NoControl: c.NoControl, RootOnly: c.RootOnly, Changes: c.Changes, Shares: simple(c), Git: c.Git,
	}
}

func errnoNames(list []errno) []string {
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = errnoName(e)
	}
	return names
}

func errnoName(e errno) string {
	switch e {
	case nothing:
		return probe.Nothing
	case killed:
		return probe.Killed
	}
	if name := unix.ErrnoName(e); name != "" {
		return name
	}
	return e.Error()
}

// A brokenError says that a check could not be prepared, which proves nothing.
type brokenError struct{ error }

// Unwrap returns nothing: an errno below is not the answer to the check.
func (brokenError) Unwrap() error { return nil }

// broken marks an error of a preparation; nil stays nil.
func broken(err error) error {
	if err == nil {
		return nil
	}
	return brokenError{err}
}

// judge turns what Do returned into an outcome.
func (c Check) judge(err error) probe.Outcome {
	o := probe.Outcome{Name: c.Name, Outcome: probe.Succeeded}
	if err == nil {
		return o
	}
	o.Outcome, o.Detail = probe.Failed, err.Error()
	var e errno
	if errors.As(err, &e) {
		o.Outcome, o.Errno = probe.Refused, errnoName(e)
	}
	return o
}

// reached turns the answer to a call with useless arguments into an outcome:
// it worked if the kernel looked at the arguments at all.
func reached(e errno) error {
	switch e {
	case unix.EPERM, unix.EACCES, unix.ENOSYS:
		return e
	}
	return nil
}

// orNil makes an error of an errno that may be zero.
func orNil(e errno) error {
	if e == 0 {
		return nil
	}
	return e
}

// found turns "is it there?" into an outcome.
func found(ok bool) error {
	if ok {
		return nil
	}
	return nothing
}

// named fills in the family of checks that share one.
func named(family string, list []Check) []Check {
	for i := range list {
		list[i].Family = family
	}
	return list
}
