// Package kernel asks this machine's kernel for several providers: what control
// groups and networks can do here, a guest's network and its sockets, terminals,
// reached limits, and what to do where the kernel refuses.
package kernel
