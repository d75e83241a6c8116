package cli

import "syscall"

// dieWithParent has a process killed when this one has ended, also while it is
// stopped and can't see that.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
