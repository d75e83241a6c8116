//go:build !linux

package cli

import "syscall"

// dieWithParent does nothing: no session has a door here.
func dieWithParent(*syscall.SysProcAttr) {}
