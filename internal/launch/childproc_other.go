//go:build !linux

package launch

import "syscall"

// DieWithParent does nothing: no session has a door here.
func DieWithParent(*syscall.SysProcAttr) {}
