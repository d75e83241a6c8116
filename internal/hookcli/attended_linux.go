package hookcli

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn/internal/shell/invocation"
)

// maxAncestors is how far the agent is away from its hook: shells, timeouts and
// wrappers lie between.
const maxAncestors = 6

// attended reports whether the agent that called this hook has a human before
// it: a terminal, and no flag that says it is to run without asking. The hook
// itself has none, since agents start theirs in sessions of their own
// (setsid(2)). Where it is wrong the agent does not ask, and denies.
func attended() bool {
	pid := os.Getppid()
	for range maxAncestors {
		p, ok := processOf(pid)
		switch {
		case !ok:
			return false
		case p.terminal && invocation.NameOf(p.argv[0]) == "":
			return !slices.ContainsFunc(p.argv, unattended)
		}
		pid = p.parent
	}
	return false
}

// unattended reports whether a word of an agent's command line has it print an
// answer and end.
func unattended(word string) bool {
	word, _, _ = strings.Cut(word, "=")
	return slices.Contains([]string{"-p", "--print", "--prompt", "exec", "run"}, word)
}

// An ancestor is a process that this one descends from.
type ancestor struct {
	parent   int
	terminal bool
	argv     []string
}

// processOf reads a process's name and parent (proc_pid_stat(5)).
func processOf(pid int) (p ancestor, ok bool) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return p, false
	}
	line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil || len(line) == 0 {
		return p, false
	}
	p.argv = strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 5 {
		return p, false
	}
	parent, err := strconv.Atoi(fields[1])
	p.parent, p.terminal = parent, fields[4] != "0"
	return p, err == nil
}
