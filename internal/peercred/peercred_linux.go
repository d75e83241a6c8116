package peercred

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// of reads SO_PEERCRED and SO_PEERPIDFD (unix(7), socket(7)).
func of(fd int) (*Peer, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return nil, err
	}
	if cred.Pid <= 0 {
		return nil, errors.New("it is in a pid namespace that is not below ours")
	}
	p := &Peer{PID: int(cred.Pid), UID: int(cred.Uid)}
	pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if errors.Is(err, unix.ENOPROTOOPT) { // before Linux 6.5: as good as can be
		pidfd, err = unix.PidfdOpen(p.PID, 0)
	}
	if err != nil {
		return nil, err
	}
	p.fd = os.NewFile(uintptr(pidfd), "pidfd")
	return p, nil
}

// lives returns an error if the peer has ended: its number may then have been
// another's while we looked.
func (p *Peer) lives() error {
	if err := unix.PidfdSendSignal(int(p.fd.Fd()), 0, nil, 0); err != nil {
		return p.refuse(fmt.Sprintf("it has ended while it was looked at (%v)", err))
	}
	return nil
}

// A process is what matters of one.
type process struct {
	parent     int
	namespaces [len(kinds)]string
	filters    int // of seccomp
}

// kinds are the namespaces that every sandbox of ours with namespaces has of
// its own.
var kinds = [...]string{"user", "pid", "mnt"}

// look reads /proc/PID (proc_pid_status(5), namespaces(7)).
func look(pid int) (process, error) {
	var who process
	for i, kind := range kinds {
		ns, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/" + kind)
		if err != nil { // also of one that hides it: a guest could
			return who, err
		}
		who.namespaces[i] = ns
	}
	return who, who.readStatus(pid)
}

// listener is what a descriptor by which one answers system calls of others
// shows as (seccomp_unotify(2)).
const listener = "anon_inode:seccomp notify"

// supervises reports whether a process holds such a descriptor.
func supervises(pid int) (bool, error) {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd/"
	fds, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	for _, fd := range fds {
		to, err := os.Readlink(dir + fd.Name())
		if err != nil && !errors.Is(err, os.ErrNotExist) { // closed meanwhile
			return false, err
		}
		if to == listener {
			return true, nil
		}
	}
	return false, nil
}

func parentOf(pid int) (int, error) {
	var who process
	err := who.readStatus(pid)
	return who.parent, err
}

func (who *process) readStatus(pid int) error {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return err
	}
	defer f.Close()
	return who.read(bufio.NewScanner(f))
}

// read takes the fields that matter from a status file.
func (who *process) read(lines *bufio.Scanner) error {
	fields := map[string]*int{"PPid": &who.parent, "Seccomp": &who.filters, "Seccomp_filters": &who.filters}
	found := 0
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		p := fields[name]
		if p == nil {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil {
			return fmt.Errorf("%s is %q; want a number", name, value)
		}
		*p = n
		found++
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if want := len(fields) - 1; found < want { // Seccomp_filters is of Linux 5.9
		return fmt.Errorf("%d of %d fields are there", found, want)
	}
	return nil
}

// differs says in what other is more confined than we are, or "". It does not
// look at no_new_privs, which hosts of sessions have set as well.
func (us *process) differs(other process) string {
	for i, kind := range kinds {
		if other.namespaces[i] != us.namespaces[i] {
			return "it has a " + kind + " namespace of its own"
		}
	}
	if other.filters > us.filters {
		return "it has a seccomp filter that this process has not"
	}
	return ""
}
