// Package kernel holds what several providers ask of this machine's kernel: what
// control groups and networks can do here, a guest's network and its sockets,
// terminals, the limits that were reached, and what to do where the kernel refuses.
package kernel
