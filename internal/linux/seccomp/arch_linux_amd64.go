package seccomp

import "golang.org/x/sys/unix"

const (
	auditArch    = unix.AUDIT_ARCH_X86_64
	lastReviewed = 469 // file_setattr, Linux 6.17
)

// Calls of the old amd64 table that arm64 never had, beside the *at form that
// takes the same arguments one place later.
var (
	openLegacy    = []Call{{unix.SYS_OPEN, "open"}}
	creatLegacy   = []Call{{unix.SYS_CREAT, "creat"}}
	mknodLegacy   = []Call{{unix.SYS_MKNOD, "mknod"}}
	namesLegacy   = []Call{{unix.SYS_MKDIR, "mkdir"}, {unix.SYS_MKNOD, "mknod"}, {unix.SYS_RENAME, "rename"}, {unix.SYS_RENAMEAT, "renameat"}, {unix.SYS_LINK, "link"}, {unix.SYS_UNLINK, "unlink"}, {unix.SYS_RMDIR, "rmdir"}, {unix.SYS_SYMLINK, "symlink"}}
	chmodLegacy   = []Call{{unix.SYS_CHMOD, "chmod"}}
	machineLegacy = []Call{
		{unix.SYS_IOPL, "iopl"}, {unix.SYS_IOPERM, "ioperm"}, {unix.SYS_MODIFY_LDT, "modify_ldt"},
		{unix.SYS_USELIB, "uselib"}, {unix.SYS__SYSCTL, "_sysctl"}, {unix.SYS_SYSFS, "sysfs"},
		{unix.SYS_CREATE_MODULE, "create_module"}, {unix.SYS_QUERY_MODULE, "query_module"}, {unix.SYS_GET_KERNEL_SYMS, "get_kernel_syms"},
	}
)
