package rawproc

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// extent is a part of the address space.
type extent struct{ start, end uintptr }

// unshared lists the parts of this process's memory that a forked child does
// not get: all private writable memory except the process's stack, which holds
// its command line, and keep. Neighbours count as one even with holes between
// them.
func unshared(keep extent) []extent {
	text, err := readMaps()
	if err != nil {
		return nil // the child gets more than it needs, which only costs time
	}
	var list []extent
	open := false
	for line := range strings.Lines(text) {
		e, perms, ok := parseMapping(line)
		switch {
		case !ok, e.start < keep.end && keep.start < e.end, perms[3] != 'p', perms[1] != 'w' && perms[0] == 'r', strings.HasSuffix(line, "]\n") && !strings.HasSuffix(line, "[heap]\n"):
			open = false
		case open:
			list[len(list)-1].end = e.end
		default:
			list = append(list, e)
			open = true
		}
	}
	return list
}

// parseMapping reads "START-END PERMS ..." (proc_pid_maps(5)).
func parseMapping(line string) (e extent, perms string, ok bool) {
	span, rest, ok1 := strings.Cut(line, " ")
	from, to, ok2 := strings.Cut(span, "-")
	perms, _, ok3 := strings.Cut(rest, " ")
	start, err1 := strconv.ParseUint(from, 16, 64)
	end, err2 := strconv.ParseUint(to, 16, 64)
	if !ok1 || !ok2 || !ok3 || err1 != nil || err2 != nil || len(perms) != 4 {
		return extent{}, "", false
	}
	return extent{uintptr(start), uintptr(end)}, perms, true
}

func readMaps() (string, error) {
	fd, err := unix.Open("/proc/self/maps", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	buf := make([]byte, 8<<10)
	for n := 0; ; {
		got, err := unix.Read(fd, buf[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || got == 0 {
			return string(buf[:n]), err
		}
		if n += got; n == len(buf) {
			buf = append(buf, make([]byte, len(buf))...)
		}
	}
}
