// Package engine runs a real container engine for tests: a dockerd with a
// containerd of its own, in a network namespace of its own, so that the
// host's firewall and bridges stay as they are, with all its data below one
// temporary directory. Its images are made on the spot from programs of this
// machine; no registry is asked.
//
// One engine serves a whole test binary: [Shared] starts it, and TestMain ends
// it by [Stop]. Where the binary is killed the engine gets SIGTERM from the
// kernel (PR_SET_PDEATHSIG), and what even that leaves (the directory; after
// kill -9 of the engine also containers) is removed when the next engine
// starts: the directory's name says who made it.
package engine
