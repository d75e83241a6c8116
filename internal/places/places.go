//go:build linux || darwin

// Package places says where Bawn keeps what is its own, by the XDG Base
// Directory Specification.
package places

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Names in Runtime.
const (
	HostsSocket = "hosts.sock" // where session hosts reach the relay
	APISocket   = "relay.sock" // where the API is served, also to bawn approvals, approve and deny
)

// RelayStopped is the file in State that says that the user has stopped the relay:
// while it is there a relay starts only when the user asks for one.
const RelayStopped = "relay.stopped"

// State is the directory of what outlives a session: $XDG_STATE_HOME/bawn,
// else ~/.local/state/bawn.
func State(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "bawn"), nil
	}
	home := getenv("HOME")
	if !filepath.IsAbs(home) {
		return "", fmt.Errorf("no state directory: HOME is %q; want an absolute path", home)
	}
	return filepath.Join(home, ".local", "state", "bawn"), nil
}

// Runtime is the directory of what lives as long as a session:
// $XDG_RUNTIME_DIR/bawn. It is run in state if that variable names no directory, or
// one that is open to others. Under sudo the variable may still name another user's
// directory.
func Runtime(getenv func(string) string, state string) string {
	// A guest has a /dev of its own, in which there is nothing to be hidden.
	if d := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(d) && !strings.HasPrefix(filepath.Clean(d)+"/", "/dev/") {
		if info, err := os.Stat(d); err == nil && private(info) {
			return filepath.Join(d, "bawn")
		}
	}
	return filepath.Join(state, "run")
}

func private(dir fs.FileInfo) bool {
	sys, ok := dir.Sys().(*syscall.Stat_t)
	return ok && dir.IsDir() && dir.Mode().Perm() == 0o700 && sys.Uid == uint32(os.Geteuid())
}
