// Package engine runs a real container engine for tests: a dockerd with its own
// containerd, in its own network namespace, so that the host's firewall and
// bridges stay unchanged. All its data is below one temporary directory. Its
// images are made on the spot from programs of this machine; no registry is
// asked.
//
// One engine serves a whole test binary: [Shared] starts it, and TestMain ends
// it by [Stop]. If the binary is killed, the kernel sends the engine SIGTERM
// (PR_SET_PDEATHSIG). What is left even then (the directory; after kill -9 of
// the engine also containers) is removed when the next engine starts: the
// directory's name says who made it.
package engine
