package seatbelt

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// A usage is what the processes of a session use together.
type usage struct {
	pids     []int
	memoryKB int64
}

// measure adds up the processes of some groups and all that descend from them,
// in what "ps -axo pid=,ppid=,pgid=,rss=" prints. A line that can't be read is
// left out.
func measure(text string, groups map[int]bool) usage {
	var u usage
	in := map[int]bool{}
	rows := rowsOf(text)
	for found := true; found; {
		found = false
		for _, r := range rows {
			if !in[r.pid] && (groups[r.group] || in[r.parent]) {
				in[r.pid], found = true, true
				u.pids = append(u.pids, r.pid)
				u.memoryKB += int64(r.memoryKB)
			}
		}
	}
	return u
}

type row struct{ pid, parent, group, memoryKB int }

func rowsOf(text string) []row {
	var rows []row
	for line := range strings.Lines(text) {
		var n [4]int
		fields := strings.Fields(line)
		ok := len(fields) == len(n)
		for i := range n {
			if ok {
				v, err := strconv.Atoi(fields[i])
				n[i], ok = v, err == nil && v >= 0
			}
		}
		if ok && n[0] > 1 {
			rows = append(rows, row{n[0], n[1], n[2], n[3]})
		}
	}
	return rows
}

// over says which limit a session is above, or nothing.
func (u usage) over(r bawn.Resources) *sandbox.Hit {
	switch {
	case r.MemoryMB > 0 && u.memoryKB > r.MemoryMB<<10:
		return &sandbox.Hit{Rule: "limits:memory", Killed: true, Remedy: "raise it with --memory",
			Reason: fmt.Sprintf("the session used %d MiB of memory; its limit is %d MiB, and it was ended", u.memoryKB>>10, r.MemoryMB)}
	case r.PIDs > 0 && int64(len(u.pids)) > r.PIDs:
		return &sandbox.Hit{Rule: "limits:pids", Killed: true, Remedy: "raise it with --pids",
			Reason: fmt.Sprintf("the session had %d processes; its limit is %d, and it was ended", len(u.pids), r.PIDs)}
	}
	return nil
}
