package docker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/bawn-dev/bawn/internal/sandbox/docker/broker"
)

// A maker is the process that ends what it has made: its ID, when it started
// (ticks since boot, field 22 of proc_pid_stat(5)), and the PID namespace in
// which it has that ID.
type maker struct {
	pid   int
	start uint64
	space string // broker.Space
}

// labelSpace holds the maker's PID namespace: in another one its ID would be
// somebody else's.
const labelSpace = "dev.bawn.space"

// labels are those of everything that a maker makes.
func (m maker) labels(session, role string) map[string]string {
	return map[string]string{
		broker.LabelSession: session, broker.LabelMaker: m.String(), broker.LabelRole: role, labelSpace: m.space,
	}
}

// self is this process.
func self() (maker, error) {
	space, err := broker.Space()
	if err != nil {
		return maker{}, err
	}
	start, err := startOf(os.Getpid())
	return maker{os.Getpid(), start, space}, err
}

// startOf is when a process started.
func startOf(pid int) (uint64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name may hold anything, but ends at the last parenthesis.
	_, rest, _ := strings.Cut(string(stat[max(strings.LastIndexByte(string(stat), ')'), 0):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return 0, fmt.Errorf("read when process %d started: %q is no stat line", pid, stat)
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// String is the form of broker.LabelMaker.
func (m maker) String() string { return fmt.Sprintf("%d:%d", m.pid, m.start) }

// parseMaker reads that form.
func parseMaker(text string) (maker, error) {
	pid, start, _ := strings.Cut(text, ":")
	n, err := strconv.Atoi(pid)
	t, err2 := strconv.ParseUint(start, 10, 64)
	if err := errors.Join(err, err2); err != nil || n <= 0 {
		return maker{}, fmt.Errorf("%q is no process with its start; want PID:TICKS", text)
	}
	return maker{pid: n, start: t}, nil
}

// gone reports whether the process has certainly ended. What can't be found out
// counts as alive: what it left is removed another time.
func (m maker) gone() bool {
	start, err := startOf(m.pid)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		// With hidepid another user's process is not there either (proc(5)).
		return errors.Is(syscall.Kill(m.pid, 0), syscall.ESRCH)
	}
	return err == nil && start != m.start
}
