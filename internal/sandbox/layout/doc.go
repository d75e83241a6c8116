// Package layout plans the guest's view: it makes a Plan of a request and of facts
// about the machine. The plan is plain data: mounts, protected and denied names,
// private git directories, sockets, the network, limits. Making it changes
// nothing. Every provider on Linux carries such a plan out in its own way, and
// package supervise keeps its rules while the guest runs.
package layout
