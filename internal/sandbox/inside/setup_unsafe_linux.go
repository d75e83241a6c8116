package inside

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/executor"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/ipc"
	"github.com/bawn-dev/bawn/internal/linux/landlock"
	"github.com/bawn-dev/bawn/internal/linux/seccomp"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// network brings lo up, makes the network by name and hands its sockets out.
func (s *Setup) network(conn *ipc.Conn) error {
	if s.Loopback {
		if err := kernel.BringUpLoopback(); err != nil {
			return step("network", err)
		}
	}
	if s.Network == nil {
		return nil
	}
	files, err := kernel.MakeNetwork(s.Network)
	if err != nil {
		return step("network", err)
	}
	for len(files) > 0 {
		n := min(len(files), intent.MaxFiles)
		if err := conn.Send(&report{Sockets: n}, files[:n]...); err != nil {
			return step("hand out the network", err)
		}
		for _, f := range files[:n] {
			f.Close() // the guest has none of them
		}
		files = files[n:]
	}
	return nil
}

// open opens what the host needs of this sandbox.
func (s *Setup) open(out *handed) ([]*os.File, error) {
	if s.Stream {
		return nil, nil
	}
	root, err := os.OpenFile("/", unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, step("open the root", err)
	}
	out.Root = true
	if !s.Mounts {
		return []*os.File{root}, nil
	}
	mounts, err := os.Open("/proc/self/ns/mnt")
	if err != nil {
		return nil, step("open the mount namespace", err)
	}
	out.Mounts = true
	return []*os.File{root, mounts}, nil
}

// restrict takes from every thread what a guest may not have. It returns the
// listener of the filter, if somebody is to serve that.
func (s *Setup) restrict() (listener *os.File, err error) {
	for _, l := range layout.Rlimits(s.Limits) {
		if !s.own(l) {
			continue
		}
		if err := unix.Prlimit(0, l.Resource, &unix.Rlimit{Cur: l.Value, Max: l.Value}, nil); err != nil {
			return nil, step("limit "+l.Name, err)
		}
	}
	if s.KeepCapabilities {
		return nil, nil
	}
	if err := giveUpPrivileges(); err != nil {
		return nil, err
	}
	if err := restrictByLandlock(s.Landlock); err != nil {
		return nil, err
	}
	if err := dropCapabilities(); err != nil {
		return nil, err
	}
	return loadFilter(s.Filter)
}

// own reports whether this process may have a limit itself, which then costs no
// command anything. Others would end it, a program of several threads, instead of
// what they are meant for. In gVisor the executor can set none: a process whose
// memory is closed can't be asked to trace there.
func (s *Setup) own(l layout.Rlimit) bool {
	return s.Stream || l.Resource == unix.RLIMIT_CORE || l.Resource == unix.RLIMIT_FSIZE
}

// limits are those that the executor sets for each command.
func (s *Setup) limits() []executor.Rlimit {
	var list []executor.Rlimit
	for _, l := range layout.Rlimits(s.Limits) {
		if !s.own(l) {
			list = append(list, executor.Rlimit{Resource: l.Resource, Value: l.Value})
		}
	}
	return list
}

// giveUpPrivileges takes new privileges from every thread. Where the program was started
// without them, as by bwrap, all threads are: they begin with what their maker has.
func giveUpPrivileges() error {
	if given, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err == nil && given == 1 {
		return nil
	}
	if errno := everyThread(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); errno != 0 {
		return threadsStep("give up new privileges", errno)
	}
	return nil
}

// threadsStep is the error of a step that everyThread did not do.
func threadsStep(name string, errno syscall.Errno) error {
	if errno == unix.ENOTSUP { // syscall.AllThreadsSyscall
		return step(name, fmt.Errorf("this bawn is linked with a C library, whose threads it can't restrict (%w); build it with CGO_ENABLED=0", errno))
	}
	return step(name, errno)
}

// everyThread does a system call on every thread of the process, of which there
// are some before main begins. It waits until each of them has run.
func everyThread(nr, a, b, c uintptr) syscall.Errno {
	_, _, errno := syscall.AllThreadsSyscall6(nr, a, b, c, 0, 0, 0)
	return errno
}

// restrictByLandlock puts every thread into a domain of its own that allows
// what l says: all of them the same. No scope is stated, which would keep the
// threads from each other; the executor states it for all commands.
func restrictByLandlock(l layout.Landlock) error {
	if l.ABI == 0 {
		return nil
	}
	if abi, err := landlock.ABI(); err != nil || abi < l.ABI {
		return step("restrict by Landlock", errors.Join(err, errors.New("this kernel has an older Landlock than was planned with")))
	}
	attr, size := landlock.Handled(l.ABI)
	attr.Scoped = 0
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return step("create a Landlock ruleset", errno)
	}
	defer unix.Close(int(ruleset))
	for _, r := range l.Rules() {
		if err := allow(ruleset, r.Path, r.Rights&attr.FS); err != nil {
			return step("allow "+r.Path, err)
		}
	}
	if errno := everyThread(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, uintptr(landlock.RestrictFlags(l.ABI)), 0); errno != 0 {
		return threadsStep("restrict by Landlock", errno)
	}
	return nil
}

// allow adds one rule. What is not there needs none.
func allow(ruleset uintptr, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= landlock.FileRights
	}
	rule := landlock.NewPathBeneath(rights)
	*rule.FD() = int32(fd)
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, ruleset, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(rule)), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// dropCapabilities permanently drops all of them from every thread: ambient ones
// go with the permitted ones (capabilities(7)). Without CAP_SETPCAP the bounding
// set stays, from which nothing can be had any more once new privileges were
// given up (prctl(2), PR_SET_NO_NEW_PRIVS).
func dropCapabilities() error {
	const last = 63 // the kernel answers EINVAL above its own last one
	for i := range uintptr(last + 1) {
		has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, i, 0, 0, 0)
		if err != nil {
			break
		}
		if has == 0 {
			continue // an engine has dropped most: to ask every thread takes a while
		}
		if errno := everyThread(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, i, 0); errno != 0 && errno != unix.EPERM {
			return step("drop a capability for good", errno)
		}
	}
	header := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	none := new([2]unix.CapUserData)
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)), uintptr(unsafe.Pointer(none)), 0); errno != 0 {
		return step("drop capabilities", errno)
	}
	return nil
}

// loadFilter puts every thread under one filter (SECCOMP_FILTER_FLAG_TSYNC,
// seccomp(2)).
func loadFilter(f Filter) (listener *os.File, err error) {
	if f == FilterNone {
		return nil, nil
	}
	rules := seccomp.Guest(f.supervised())
	if f == FilterPrograms {
		rules = append(rules, seccomp.Programs()...)
	}
	filter, err := seccomp.Compile(rules)
	if err != nil {
		return nil, step("write the seccomp filter", err)
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_TSYNC)
	if f.supervised() {
		// Not elsewhere: gVisor knows TSYNC alone.
		flags |= unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH | unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno == 0 && !f.supervised() && fd != 0 {
		errno = unix.ESRCH // it is the number of a thread that can't be put under the filter
	}
	if errno != 0 {
		return nil, step("load the seccomp filter", errno)
	}
	if f.supervised() {
		return os.NewFile(fd, "listener"), nil
	}
	if fd != 0 { // the number of a thread that another filter keeps from having this one
		return nil, step("load the seccomp filter", unix.ESRCH)
	}
	return nil, nil
}
