package broker

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
	space, err := Space()
	if err != nil {
		return Maker{}, err
	}
	start, err := started(os.Getpid())
	return Maker{process: fmt.Sprintf("%d:%s", os.Getpid(), start), space: space}, err
}

// Space names where process IDs mean what they mean to this process: its PID
// namespace on this machine. The first one of each machine has the same number,
// and several machines may share an engine. What names the machine is not told to
// others as it is (machine-id(5)).
func Space() (string, error) {
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

// started is when a process started: field 22 of proc_pid_stat(5).
func started(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The name may hold anything, but ends at the last parenthesis.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 {
		return "", fmt.Errorf("read when process %d started: %q is no stat line", pid, stat)
	}
	return fields[19], nil
}

// ended reports whether a maker has certainly ended. What can't be found out
// counts as alive: what it left is removed another time.
func ended(maker string) bool {
	text, start, _ := strings.Cut(maker, ":")
	pid, err := strconv.Atoi(text)
	if err != nil || pid <= 0 || start == "" {
		return false
	}
	now, err := started(pid)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		// With hidepid another user's process is not there either (proc(5)).
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}
	return err == nil && now != start
}
