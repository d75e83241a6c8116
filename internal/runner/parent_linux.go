package runner

import (
	"fmt"
	"os"
	"strings"
)

// parent returns the parent of a process, or 0 (proc_pid_stat(5), field 4).
func parent(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	var state string
	var ppid int
	rest := string(text[strings.LastIndexByte(string(text), ')')+1:])
	if _, err := fmt.Sscan(rest, &state, &ppid); err != nil {
		return 0
	}
	return ppid
}
