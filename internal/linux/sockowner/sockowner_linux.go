package sockowner

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
)

// Bounds of a search.
const (
	maxTable     = 4 << 20
	maxProcesses = 4096
	maxLinks     = 1 << 16
	maxTime      = 100 * time.Millisecond
	maxCommand   = 4096 // bytes of a command line that are read
)

// Find returns the program that holds the connection from an address of the guest
// whose first process is root, a PID of this machine's. It reports false where the
// program has gone, can't be read, or is not found in time.
func Find(root int, from netip.AddrPort) (Program, bool) {
	if root <= 1 || !from.IsValid() {
		return Program{}, false
	}
	from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	inode := ""
	for _, table := range []string{"tcp", "tcp6"} {
		if inode == "" {
			inode = inodeOf(read(fmt.Sprintf("/proc/%d/net/%s", root, table), maxTable), from)
		}
	}
	if inode == "" {
		return Program{}, false
	}
	s := search{socket: "socket:[" + inode + "]", end: time.Now().Add(maxTime)}
	return s.among(root)
}

// A search looks through a guest's processes.
type search struct {
	socket string
	end    time.Time
	links  int
}

// among looks from the youngest process to the oldest: the connecting one was
// started last.
func (s *search) among(root int) (Program, bool) {
	parents := map[int]int{}
	all := descendants(root, parents)
	for i := len(all) - 1; i >= 0; i-- {
		pid := all[i]
		if !s.holds(pid) {
			continue
		}
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil {
			return Program{}, false
		}
		var chain [][]string
		for at := pid; at != root && at != 0; at = parents[at] {
			if c := command(at); at == pid || len(c) > 0 { // Bawn's own processes in the sandbox can't be read
				chain = append(chain, c)
			}
		}
		if len(chain) == 0 {
			return Program{}, false
		}
		return describe(strings.TrimSuffix(exe, " (deleted)"), chain), true
	}
	return Program{}, false
}

// holds reports whether a process has the socket.
func (s *search) holds(pid int) bool {
	dir, err := os.Open(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return false
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			if s.links++; s.links > maxLinks || time.Now().After(s.end) {
				return false
			}
			if to, err := os.Readlink(dir.Name() + "/" + name); err == nil && to == s.socket {
				return true
			}
		}
		if err != nil {
			return false
		}
	}
}

// descendants lists the processes below root, parents first.
func descendants(root int, parents map[int]int) (all []int) {
	for list := []int{root}; len(list) > 0 && len(all) < maxProcesses; list = list[1:] {
		for _, child := range children(list[0]) {
			if _, known := parents[child]; !known {
				parents[child] = list[0]
				all, list = append(all, child), append(list, child)
			}
		}
	}
	return all
}

func children(pid int) (all []int) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	for _, t := range tasks {
		for field := range strings.FieldsSeq(read(fmt.Sprintf("/proc/%d/task/%s/children", pid, t.Name()), maxTable)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// command is the command line of a process.
func command(pid int) []string {
	text := strings.TrimRight(read(fmt.Sprintf("/proc/%d/cmdline", pid), maxCommand), "\x00")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\x00")
}

// read returns at most n bytes of a file, and nothing where it can't be read.
func read(name string, n int64) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, n)) // lines read before an error count
	return string(text)
}
