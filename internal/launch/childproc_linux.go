package launch

import "syscall"

// DieWithParent has a process killed when this one has ended, also while it is
// stopped and can't see that.
func DieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
