// Package sockowner finds the program behind a TCP connection of a sandbox, from
// outside: by the connections of the sandbox's network namespace and the
// descriptors of its processes (proc_pid_net(5), proc_pid_fd(5)). Its answer is
// for a human to read. A guest chooses its arguments, and may hand a connection to
// another process: nothing is decided by it.
package sockowner

import (
	"encoding/hex"
	"net/netip"
	"path"
	"slices"
	"strings"
)

// A Program is a process of a guest. Its texts are the guest's: they have to be
// escaped before they are shown.
type Program struct {
	Name string // the last part of the executable's path
	From string // the command of the session that has led to it, "" where it is that
}

// inodeOf returns the inode of the socket that is bound to from in the text of
// /proc/PID/net/tcp or tcp6, "" where the text has none.
func inodeOf(table string, from netip.AddrPort) string {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 10 {
			continue
		}
		if at, ok := readAddr(f[1]); ok && at == from && f[9] != "0" {
			return f[9]
		}
	}
	return ""
}

// readAddr reads "0100007F:1F90": words in the machine's order, here that of
// little-endian machines, and a port.
func readAddr(s string) (netip.AddrPort, bool) {
	host, port, ok := strings.Cut(s, ":")
	raw, err1 := hex.DecodeString(host)
	p, err2 := hex.DecodeString(port)
	if !ok || err1 != nil || err2 != nil || len(p) != 2 || len(raw) != 4 && len(raw) != 16 {
		return netip.AddrPort{}, false
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	a, _ := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(a.Unmap(), uint16(p[0])<<8|uint16(p[1])), true
}

// shells run commands of others: a human knows those by their text.
var shells = []string{"sh", "bash", "dash", "zsh", "ash", "busybox", "env", "timeout", "nice", "xargs"}

// describe makes a Program of a chain of command lines, from the process itself to
// the first one of the session.
func describe(exe string, chain [][]string) Program {
	p := Program{Name: path.Base(exe)}
	for i := len(chain) - 2; i > 0; i-- { // below the session's own command, which is the last
		if c := chain[i]; len(c) > 0 && !slices.Contains(shells, path.Base(c[0])) {
			p.From = strings.Join(c, " ")
			return p
		}
	}
	if last := chain[len(chain)-1]; len(chain) > 1 && len(last) > 0 {
		p.From = strings.Join(last, " ")
	}
	return p
}
