package maker

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Self is this process.
func Self() (Maker, error) {
	space, err := space()
	if err != nil {
		return Maker{}, err
	}
	start, err := startOf(os.Getpid())
	return Maker{os.Getpid(), start, space}, err
}

// space names this process's PID namespace on this machine. The first namespace of
// each machine has the same number, and several machines may share an engine. The
// machine's own name is not told to others as it is (machine-id(5)).
func space() (string, error) {
	var st syscall.Stat_t
	if err := syscall.Stat("/proc/self/ns/pid", &st); err != nil {
		return "", fmt.Errorf("read our PID namespace: %w", err)
	}
	id, err := os.ReadFile("/etc/machine-id")
	if err != nil || len(bytes.TrimSpace(id)) == 0 {
		if id, err = os.ReadFile("/proc/sys/kernel/random/boot_id"); err != nil {
			return "", fmt.Errorf("tell this machine from others: %w", err)
		}
	}
	sum := sha256.Sum256(append([]byte("bawn "), bytes.TrimSpace(id)...))
	return fmt.Sprintf("%d-%x", st.Ino, sum[:6]), nil
}

// startOf is when a process started.
func startOf(pid int) (uint64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name may hold anything, but ends at the last parenthesis.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 {
		return 0, fmt.Errorf("read when process %d started: %q is not a stat line", pid, stat)
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// Gone reports whether the process has certainly ended. A process of which nothing
// can be found out counts as alive: what it left is removed another time.
func (m Maker) Gone() bool {
	start, err := startOf(m.PID)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		// With hidepid another user's process is not there either (proc(5)).
		return errors.Is(syscall.Kill(m.PID, 0), syscall.ESRCH)
	}
	return err == nil && start != m.Start
}
