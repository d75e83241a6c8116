//go:build !linux

package launch

import "syscall"

// DieWithParent does nothing: no session has a socket here.
func DieWithParent(*syscall.SysProcAttr) {}
