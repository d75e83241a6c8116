// Package landlock knows which rights each version of Landlock's interface
// has, so that a ruleset asks for exactly what this kernel enforces.
// Source: the kernel's Documentation/userspace-api/landlock.rst.
package landlock

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights over the hierarchy below a path.
const (
	Execute    = unix.LANDLOCK_ACCESS_FS_EXECUTE
	WriteFile  = unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	ReadFile   = unix.LANDLOCK_ACCESS_FS_READ_FILE
	ReadDir    = unix.LANDLOCK_ACCESS_FS_READ_DIR
	Truncate   = unix.LANDLOCK_ACCESS_FS_TRUNCATE
	IoctlDev   = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	ReadOnly   = Execute | ReadFile | ReadDir
	FileRights = Execute | WriteFile | ReadFile | Truncate | IoctlDev // all a rule on a file may hold
)

// Scopes: the reach of a domain outside of itself that is refused (ABI 6).
const (
	scopeAbstractUnix = 1 << 0
	scopeSignal       = 1 << 1
)

// Attr is struct landlock_ruleset_attr.
type Attr struct{ FS, Net, Scoped uint64 }

// fsRights is the number of file system rights of each ABI, from ABI 1.
var fsRights = []int{13, 14, 15, 15, 16}

// ABI asks the kernel for its version; 0 with an error means that there is no
// Landlock here or that it is switched off.
func ABI() (int, error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch errno {
	case 0:
		return int(v), nil
	case unix.ENOSYS:
		return 0, errors.New("the kernel has no Landlock (CONFIG_SECURITY_LANDLOCK)")
	case unix.EOPNOTSUPP:
		return 0, errors.New("the kernel has Landlock switched off; add \"landlock\" to the kernel's lsm= parameter")
	}
	return 0, fmt.Errorf("ask for the Landlock version: %w", errno)
}

// Handled returns the ruleset attribute for an ABI and its size: all file
// system rights that the ABI knows, and both scopes if it has them. TCP rights
// are not used: the network namespace decides there.
func Handled(abi int) (Attr, uintptr) {
	if abi < 1 {
		return Attr{}, 0
	}
	a := Attr{FS: 1<<fsRights[min(abi, len(fsRights))-1] - 1}
	size := unsafe.Sizeof(a.FS)
	if abi >= 4 {
		size += unsafe.Sizeof(a.Net)
	}
	if abi >= 6 {
		a.Scoped = scopeAbstractUnix | scopeSignal
		size = unsafe.Sizeof(a)
	}
	return a, size
}

// RestrictFlags returns the flags of landlock_restrict_self(2): from ABI 7 on
// the kernel's audit log, where it is on, names what Landlock refuses to the
// programs a guest executes.
func RestrictFlags(abi int) int {
	const logNewExecOn = 1 << 1 // LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON
	if abi >= 7 {
		return logNewExecOn
	}
	return 0
}

// TruncateABI is the first version that handles Truncate (Linux 6.2).
const TruncateABI = 3

// ScopeABI is the first version that can confine signals (Linux 6.12).
const ScopeABI = 6

// ScopeThread permanently puts the calling thread, and everything that it
// starts, into a domain of its own. Its members signal each other and connect
// to each other's abstract sockets only; the other threads of this process are
// outside too. It restricts nothing else. The thread must be locked, must have
// given up new privileges, and the kernel must have ScopeABI.
func ScopeThread() error {
	ruleset, err := ScopeRuleset()
	if err != nil {
		return err
	}
	defer unix.Close(ruleset)
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return fmt.Errorf("restrict the thread by Landlock: %w", errno)
	}
	return nil
}

// ScopeRuleset opens the ruleset of ScopeThread's domains, which the caller
// closes, for who restricts itself later (landlock_restrict_self(2)).
func ScopeRuleset() (int, error) {
	// Below a domain that has to do with files, one that does not grant
	// LANDLOCK_ACCESS_FS_REFER refuses to move files between directories, though
	// it has nothing else to do with them. So this one does.
	attr := Attr{FS: unix.LANDLOCK_ACCESS_FS_REFER, Scoped: scopeAbstractUnix | scopeSignal}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return -1, fmt.Errorf("create a Landlock ruleset: %w", errno)
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, errors.Join(fmt.Errorf("open the root: %w", err), unix.Close(int(ruleset)))
	}
	defer unix.Close(root)
	rule := NewPathBeneath(unix.LANDLOCK_ACCESS_FS_REFER)
	*rule.FD() = int32(root)
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, ruleset, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(rule)), 0, 0, 0); errno != 0 {
		return -1, errors.Join(fmt.Errorf("allow moving files: %w", errno), unix.Close(int(ruleset)))
	}
	return int(ruleset), nil
}

// PathBeneath builds struct landlock_path_beneath_attr, which is packed: the
// rights, then the descriptor of the path, to be filled in later at FD.
type PathBeneath [12]byte

// NewPathBeneath sets the rights.
func NewPathBeneath(rights uint64) *PathBeneath {
	p := new(PathBeneath)
	*(*uint64)(unsafe.Pointer(&p[0])) = rights
	return p
}

// FD points at the descriptor.
func (p *PathBeneath) FD() *int32 { return (*int32)(unsafe.Pointer(&p[8])) }
