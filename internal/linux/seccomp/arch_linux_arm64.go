package seccomp

import "golang.org/x/sys/unix"

const (
	auditArch    = unix.AUDIT_ARCH_AARCH64
	lastReviewed = 469 // file_setattr, Linux 6.17
)

// arm64 came after the *at calls and has none of the old table.
var (
	openLegacy    []Call
	creatLegacy   []Call
	mknodLegacy   []Call
	namesLegacy   = []Call{{unix.SYS_RENAMEAT, "renameat"}}
	chmodLegacy   []Call
	machineLegacy []Call
)
