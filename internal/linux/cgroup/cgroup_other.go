//go:build !linux

package cgroup

import "os"

// A Group can't exist on this system.
type Group struct{}

// Probe reports that no controller can be used.
func Probe() Support {
	none := func(name string) Controller { return Controller{Name: name, Why: ErrUnsupported.Error()} }
	return Support{Memory: none(memory), PIDs: none(pids), CPU: none(cpu)}
}

// New returns ErrUnsupported.
func New(string, Limits) (*Group, error) { return nil, ErrUnsupported }

// Sweep returns ErrUnsupported.
func Sweep() (int, error) { return 0, ErrUnsupported }

// ProcFiles returns nothing.
func (*Group) ProcFiles() []*os.File { return nil }

// OpenProcs returns ErrUnsupported.
func (*Group) OpenProcs() ([]*os.File, error) { return nil, ErrUnsupported }

// Limits returns none.
func (*Group) Limits() Limits { return Limits{} }

// Kill returns ErrUnsupported.
func (*Group) Kill() error { return ErrUnsupported }

// Stats returns ErrUnsupported.
func (*Group) Stats() (Stats, error) { return Stats{}, ErrUnsupported }

// Remove returns ErrUnsupported.
func (*Group) Remove() error { return ErrUnsupported }
