package egressd

import "golang.org/x/sys/unix"

// detach leaves the process group of `bawn run`: keys of its terminal, such as
// Ctrl-C, are for the guest. Until then this process is in the foreground with
// it, where the vault may ask for its passphrase. A process that was started in
// a session of its own has left already, and could not (setpgid(2)).
func detach() error {
	if unix.Getpgrp() == unix.Getpid() {
		return nil
	}
	return unix.Setpgid(0, 0)
}
